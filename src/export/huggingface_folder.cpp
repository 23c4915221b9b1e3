#include "export/huggingface_folder.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "checkpoint/weights_folder.h"
#include "core/dtype.h"
#include "core/durable_file.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/output_folder.h"
#include "data/tokenizer.h"
#include "export/model_card.h"
#include "export/python_files.h"
#include "export/tokenizer_json.h"
#include "model/gpt2_tensors.h"
#include "model/huggingface_config.h"
#include "record/run_data.h"
#include "record/run_files.h"
#include "record/run_text.h"

namespace bamtrain {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxTokenizer = int64_t{256} << 20;

void write_text(const std::string& path, std::string_view text) {
  DurableFile file(path);
  file.write(text.data(), static_cast<int64_t>(text.size()));
  file.finish();
}

void write_json(const std::string& path, const Json& json) {
  std::string text;
  try {
    text = json.dump(2) + "\n";
  } catch (const nlohmann::json::exception& e) {
    throw Error::fault(ExitCode::checkpoint, path,
                       std::string("text that is not valid UTF-8: ") + e.what(),
                       "use names in UTF-8");
  }
  write_text(path, text);
}

SpecialTokens special_tokens(const HuggingfaceRequest& request, const RunConfig& c,
                             const Tokenizer* tokenizer) {
  SpecialTokens tokens;
  tokens.document_start = request.document_start;
  if (!tokens.document_start) {
    tokens.document_start = document_start(c, tokenizer ? tokenizer->sha256() : "");
  }
  if (tokens.document_start && *tokens.document_start >= c.model.vocab) {
    throw Error(ExitCode::usage, "--document-start",
                "a token id below model.vocab = " + std::to_string(c.model.vocab),
                std::to_string(*tokens.document_start), "give the BOS id that begins a document");
  }
  if (c.model.attention.document_mask && !tokens.document_start) {
    throw Error(ExitCode::config, "data.document_start",
                "the BOS id that begins a document, since model.attention.document_mask is true",
                "neither this key nor a manifest next to the shards of data.train",
                "give --document-start");
  }
  tokens.bos = tokens.document_start;
  if (tokenizer && tokenizer->bos() >= 0) tokens.bos = tokenizer->bos();
  if (tokenizer && tokenizer->eos() >= 0) tokens.eos = tokenizer->eos();
  if (!tokens.eos) tokens.eos = tokens.document_start;
  return tokens;
}

/// The padding token: the tokenizer's own, else the unknown token (which no text contains with byte
/// fallback), else EOS, else BOS. -1 if there is none.
int32_t padding(const Tokenizer& tokenizer) {
  const int32_t choices[] = {tokenizer.pad(), tokenizer.unknown(), tokenizer.eos(),
                             tokenizer.bos()};
  const auto* const found =
      std::find_if(std::begin(choices), std::end(choices), [](int32_t id) { return id >= 0; });
  return found == std::end(choices) ? -1 : *found;
}

/// Generation ends at the end of a document, or where the next one begins.
Json generation_config(const SpecialTokens& tokens, const Tokenizer* tokenizer) {
  Json j = Json::object();
  if (tokens.bos) j["bos_token_id"] = *tokens.bos;
  Json ends = Json::array();
  if (tokens.eos) ends.push_back(*tokens.eos);
  if (tokens.document_start && tokens.document_start != tokens.eos) {
    ends.push_back(*tokens.document_start);
  }
  if (!ends.empty()) j["eos_token_id"] = ends;
  if (tokenizer && padding(*tokenizer) >= 0) {
    j["pad_token_id"] = padding(*tokenizer);
  } else if (!ends.empty()) {
    j["pad_token_id"] = ends[0];
  }
  return j;
}

/// The settings that tokenizer.json does not hold. The text of a special token is encoded like any
/// other text, as in training.
Json tokenizer_config(const Tokenizer& tokenizer, bool adds_bos) {
  Json j = {{"tokenizer_class", "PreTrainedTokenizerFast"},
            {"add_bos_token", adds_bos},
            {"add_eos_token", false},
            {"clean_up_tokenization_spaces", false},
            {"split_special_tokens", true},
            {"padding_side", "left"}};
  j[kTokenizerSha256] = tokenizer.sha256();
  if (tokenizer.unknown() >= 0) j["unk_token"] = tokenizer.piece(tokenizer.unknown());
  if (padding(tokenizer) >= 0) j["pad_token"] = tokenizer.piece(padding(tokenizer));
  if (tokenizer.bos() >= 0) j["bos_token"] = tokenizer.piece(tokenizer.bos());
  if (tokenizer.eos() >= 0) j["eos_token"] = tokenizer.piece(tokenizer.eos());
  return j;
}

/// A tokenizer included with the model.
struct Companion {
  std::string path;
  Tokenizer tokenizer;
  bool adds_bos = false;
  TokenizerJson fast = {};
};

void require_sentencepiece(const Tokenizer& tokenizer, const std::string& path) {
  if (tokenizer.sentencepiece() != nullptr) return;
  throw Error(ExitCode::usage, "--sentencepiece", "a SentencePiece model",
              path + ", a byte-level BPE", "leave the option out: it already has a tokenizer.json");
}

void require_fast(const TokenizerJson& fast, const std::string& path) {
  if (fast.json) return;
  throw Error::fault(ExitCode::data, path,
                     "tokenizer.json cannot represent this tokenizer, since " + fast.left_out,
                     "--sentencepiece copies its file, which AutoTokenizer does not read, and "
                     "--no-tokenizer leaves it out");
}

/// Copies a SentencePiece model. Without a tokenizer.json it gets a name from which transformers
/// does not build another tokenizer.
void write_tokenizer(const std::string& at, const Companion& c) {
  if (c.tokenizer.sentencepiece()) {
    const InputFile original(c.path, ExitCode::io, "check the file");
    write_text(at + (c.fast.json ? "tokenizer.model" : "sentencepiece.model"),
               original.text(kMaxTokenizer));
  }
  if (!c.fast.json) return;
  write_text(at + "tokenizer.json", c.fast.json->dump() + "\n");
  write_json(at + "tokenizer_config.json", tokenizer_config(c.tokenizer, c.adds_bos));
}

/// The parameters in GPT-2's layout, stored in `memory`.
std::vector<NamedTensor> gpt2_model(const ModelConfig& c, const ParameterLayout& layout,
                                    const Tensor& master_weights,
                                    std::vector<std::vector<float>>* memory) {
  std::vector<NamedTensor> out;
  for (const Gpt2Tensor& t : gpt2_tensors(c.layers, c.tied)) {
    std::vector<float> values;
    for (const std::string& name : t.parts) {
      const Parameter& p = *layout.find(name);
      const float* const part = master_weights.slice(0, p.offset, p.size).ptr<float>();
      values.insert(values.end(), part, part + p.size);
    }
    std::vector<int64_t> shape = layout.find(t.parts[0])->shape;
    shape[0] *= static_cast<int64_t>(t.parts.size());
    if (t.transposed) {
      values = transposed(values, shape[0], shape[1]);
      std::swap(shape[0], shape[1]);
    }
    memory->push_back(std::move(values));
    out.push_back({t.name, Dtype::f32, shape, memory->back().data()});
  }
  return out;
}

void write_model(const HuggingfaceRequest& request, const std::string& folder, const RunConfig& c,
                 const ParameterLayout& layout, const Tensor& master_weights) {
  std::vector<std::vector<float>> laid_out;
  std::vector<NamedTensor> tensors = is_gpt2(c.model, c.data.sequence_length)
                                         ? gpt2_model(c.model, layout, master_weights, &laid_out)
                                         : model_tensors(layout, master_weights);
  std::vector<std::vector<bf16>> rounded;
  for (NamedTensor& t : tensors) {
    const Parameter* const p = layout.find(t.name);
    if (!request.rounded || (p && is_mechanism(p->group))) continue;  // kept in fp32
    const float* const values = static_cast<const float*>(t.data);
    int64_t size = 1;
    for (const int64_t dim : t.shape) size *= dim;
    rounded.emplace_back(static_cast<size_t>(size));
    for (size_t n = 0; n < rounded.back().size(); ++n) rounded.back()[n] = bf16(values[n]);
    t.dtype = Dtype::bf16;
    t.data = rounded.back().data();
  }
  write_weights(folder, tensors, request.max_shard_bytes);
}

}  // namespace

void write_huggingface_folder(const HuggingfaceRequest& request, const Checkpoint& checkpoint,
                              const RunConfig& c, const Json& resolved,
                              const ParameterLayout& layout, const Tensor& master_weights) {
  std::optional<Companion> companion;
  TokenizerSource source = {"--tokenizer", request.tokenizer, tokenizer_sha256(checkpoint),
                            run_folder(checkpoint), ", or leave it out with --no-tokenizer"};
  if (request.with_tokenizer && (!source.path.empty() || !source.sha256.empty())) {
    source.path = tokenizer_path(source, c);
    companion = {source.path, open_tokenizer(source, c)};
  }
  const Tokenizer* const tokenizer = companion ? &companion->tokenizer : nullptr;
  const SpecialTokens tokens = special_tokens(request, c, tokenizer);
  CardOptions options;
  if (companion) {
    companion->adds_bos = tokenizer->bos() >= 0 && tokens.document_start == tokenizer->bos();
    if (request.sentencepiece) {
      require_sentencepiece(*tokenizer, source.path);
      companion->fast.left_out = "--sentencepiece was given";
    } else {
      companion->fast = tokenizer_json(*tokenizer, companion->adds_bos);
      require_fast(companion->fast, source.path);
    }
    const std::string& left_out = companion->fast.left_out;
    options.tokenizer = {tokenizer->sentencepiece() ? "SentencePiece" : "byte-level BPE",
                         std::filesystem::path(source.path).filename().string(), tokenizer->vocab(),
                         tokenizer->sha256(), left_out};
  }
  const int64_t T = c.data.sequence_length;
  options.own_code = !is_llama(c.model, T) && !is_gpt2(c.model, T);
  options.as_trained = request.as_trained;
  const std::string card = model_card(checkpoint, c, resolved, layout, options);
  OutputFolder folder(request.output, [](const std::string& path) {
    throw Error(ExitCode::io, path, "an empty or new folder", "a folder with content",
                "choose another --output, or empty it");
  });
  const std::string at = folder.path() + "/";
  write_json(at + "config.json",
             huggingface_config(c.model, T, request.rounded ? Dtype::bf16 : Dtype::f32, tokens));
  const bool in_transformers = companion && companion->fast.json;
  write_json(at + "generation_config.json",
             generation_config(tokens, in_transformers ? tokenizer : nullptr));
  write_text(at + "README.md", card);
  if (options.own_code) {
    for (const EmbeddedFile& file : python_files())
      write_text(at + std::string(file.name), file.text);
  }
  if (companion) write_tokenizer(at, *companion);
  write_model(request, folder.path(), c, layout, master_weights);
  folder.commit();
}

}  // namespace bamtrain
