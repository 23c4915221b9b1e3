#include "export/huggingface_folder.h"

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
#include "model/huggingface_config.h"
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
    throw Error(ExitCode::checkpoint, path, "text in UTF-8", e.what(), "use names in UTF-8");
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
                std::to_string(*tokens.document_start), "give the id that begins a document");
  }
  if (c.model.attention.document_mask && !tokens.document_start) {
    throw Error(ExitCode::config, "data.document_start",
                "the id of the token that begins a document, since "
                "model.attention.document_mask is true",
                "neither this key nor a manifest beside the shards of data.train",
                "give --document-start");
  }
  tokens.bos = tokens.document_start;
  if (tokenizer && tokenizer->bos() >= 0) tokens.bos = tokenizer->bos();
  if (tokenizer && tokenizer->eos() >= 0) tokens.eos = tokenizer->eos();
  if (!tokens.eos) tokens.eos = tokens.document_start;
  return tokens;
}

/// Where text ends: at the end of a document, or where the next one begins.
Json generation_config(const SpecialTokens& tokens) {
  Json j = Json::object();
  if (tokens.bos) j["bos_token_id"] = *tokens.bos;
  Json ends = Json::array();
  if (tokens.eos) ends.push_back(*tokens.eos);
  if (tokens.document_start && tokens.document_start != tokens.eos) {
    ends.push_back(*tokens.document_start);
  }
  if (!ends.empty()) j["eos_token_id"] = ends;
  if (!ends.empty()) j["pad_token_id"] = ends[0];
  return j;
}

Json tokenizer_config(const Tokenizer& tokenizer, const SpecialTokens& tokens) {
  Json j = {{"tokenizer_class", "LlamaTokenizer"},
            {"legacy", true},
            {"add_bos_token", tokenizer.bos() >= 0 && tokens.document_start == tokenizer.bos()},
            {"add_eos_token", false},
            {"clean_up_tokenization_spaces", false}};
  if (tokenizer.bos() >= 0) j["bos_token"] = tokenizer.piece(tokenizer.bos());
  if (tokenizer.eos() >= 0) j["eos_token"] = tokenizer.piece(tokenizer.eos());
  return j;
}

void write_model(const HuggingfaceRequest& request, const std::string& folder,
                 const ParameterLayout& layout, const Tensor& masters) {
  std::vector<NamedTensor> tensors = model_tensors(layout, masters);
  std::vector<std::vector<bf16>> rounded;
  for (size_t i = 0; request.rounded && i < tensors.size(); ++i) {
    const Parameter& p = layout.all()[i];
    if (is_mechanism(p.group)) continue;  // kept in fp32
    const float* values = static_cast<const float*>(tensors[i].data);
    rounded.emplace_back(static_cast<size_t>(p.size));
    for (size_t n = 0; n < rounded.back().size(); ++n) rounded.back()[n] = bf16(values[n]);
    tensors[i].dtype = Dtype::bf16;
    tensors[i].data = rounded.back().data();
  }
  write_weights(folder, tensors, request.max_shard_bytes);
}

}  // namespace

void write_huggingface_folder(const HuggingfaceRequest& request, const Checkpoint& checkpoint,
                              const RunConfig& c, const Json& resolved,
                              const ParameterLayout& layout, const Tensor& masters) {
  std::optional<Tokenizer> tokenizer;
  TokenizerSource source = {"--tokenizer", request.tokenizer, tokenizer_sha256(checkpoint),
                            ", or leave it out with --no-tokenizer"};
  if (request.with_tokenizer && (!source.path.empty() || !source.sha256.empty())) {
    source.path = tokenizer_path(source, c);
    tokenizer.emplace(open_tokenizer(source, c));
  }
  const SpecialTokens tokens = special_tokens(request, c, tokenizer ? &*tokenizer : nullptr);
  const int64_t T = c.data.sequence_length;
  const bool llama = is_llama(c.model, T);
  const std::string card = model_card(checkpoint, c, resolved, layout, {llama, request.as_trained});
  OutputFolder folder(request.output, [](const std::string& path) {
    throw Error(ExitCode::io, path, "an empty folder, or nothing yet", "a folder with content",
                "choose another --output, or empty it");
  });
  const std::string at = folder.path() + "/";
  write_json(at + "config.json",
             huggingface_config(c.model, T, request.rounded ? Dtype::bf16 : Dtype::f32, tokens));
  write_json(at + "generation_config.json", generation_config(tokens));
  write_text(at + "README.md", card);
  if (!llama) {
    for (const EmbeddedFile& file : python_files())
      write_text(at + std::string(file.name), file.text);
  }
  if (tokenizer) {
    const InputFile original(source.path, ExitCode::io, "check the file");
    write_text(at + "tokenizer.model", original.text(kMaxTokenizer));
    write_json(at + "tokenizer_config.json", tokenizer_config(*tokenizer, tokens));
  }
  write_model(request, folder.path(), layout, masters);
  folder.commit();
}

}  // namespace bamtrain
