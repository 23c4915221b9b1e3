#include "data/tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/input_file.h"
#include "core/json.h"
#include "core/sha256.h"
#include "core/utf8.h"
#include "data/byte_pair_model.h"
#include "data/huggingface_tokenizer.h"
#include "data/sentencepiece_model.h"
#include "data/tiktoken_file.h"

namespace bamtrain {
namespace {

constexpr const char* kKinds =
    "a SentencePiece model, a tokenizer.json, tiktoken's ranks or a tekken.json";
constexpr const char* kTokenizerRemedy = "give the tokenizer's original file";

std::string read_file(const std::string& path) {
  const InputFile file(path, ExitCode::io, "check the path");
  const auto refuse = [&](const std::string& found) {
    throw Error(ExitCode::data, path, kKinds, found, kTokenizerRemedy);
  };
  if (file.bytes() == 0) refuse("an empty file");
  if (file.bytes() > Tokenizer::kMostBytes) {
    refuse("a file of more than " + std::to_string(Tokenizer::kMostBytes) + " bytes");
  }
  return file.text(Tokenizer::kMostBytes);
}

/// Also after a byte order mark, which the JSON reader then reports.
bool begins_like_json(std::string_view bytes) {
  if (constexpr std::string_view kMark = "\xEF\xBB\xBF"; bytes.starts_with(kMark)) {
    bytes.remove_prefix(kMark.size());
  }
  const size_t at = bytes.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && bytes[at] == '{';
}

/// Checks for the first vocabulary entry, a message whose first field is its text: each a tag and a
/// length.
bool begins_like_sentencepiece(std::string_view bytes) {
  constexpr char kFirstField = '\x0A';
  return bytes.size() > 3 && bytes[0] == kFirstField && bytes[2] == kFirstField;
}

BytePairDefinition read_json(const std::string& bytes, const std::string& path) {
  const nlohmann::json json = parse_json(bytes, {path, ExitCode::data, kTokenizerRemedy});
  if (json.contains("model")) return read_huggingface_tokenizer(json, path);
  if (json.contains("config") && json.contains("vocab")) return read_tekken(json, path);
  throw Error(ExitCode::data, path, kKinds, "JSON with neither \"model\" nor \"vocab\"",
              kTokenizerRemedy);
}

std::unique_ptr<const TokenizerModel> model_of(const std::string& bytes, const std::string& path) {
  if (begins_like_json(bytes)) {
    return std::make_unique<BytePairModel>(read_json(bytes, path), path);
  }
  if (begins_like_ranks(bytes)) {
    return std::make_unique<BytePairModel>(read_tiktoken_file(bytes, path), path);
  }
  if (path.ends_with(".json")) read_json(bytes, path);
  try {
    return std::make_unique<SentencePieceModel>(bytes, path);
  } catch (const Error&) {
    if (begins_like_sentencepiece(bytes)) throw;
  }
  constexpr size_t kShown = 40;
  throw Error(ExitCode::data, path, kKinds,
              "a file that begins with \"" + printable(bytes.substr(0, kShown)) + "\"",
              kTokenizerRemedy);
}

}  // namespace

Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::open(const std::string& path) {
  const std::string bytes = read_file(path);
  Tokenizer t;
  t.model_ = model_of(bytes, path);
  t.path_ = path;
  t.sha256_ = sha256_hex(bytes);
  return t;
}

bool Tokenizer::begins_like_tokenizer(const std::string& path) {
  try {
    const InputFile file(path, ExitCode::io, "check the path");
    if (file.bytes() > kMostBytes) return false;
    std::string start(static_cast<size_t>(std::min<int64_t>(file.bytes(), 1024)), '\0');
    file.read(0, start.data(), static_cast<int64_t>(start.size()));
    return begins_like_sentencepiece(start) || begins_like_ranks(start) ||
           (begins_like_json(start) && (start.find("\"version\"") != std::string::npos ||
                                        start.find("\"pattern\"") != std::string::npos));
  } catch (const Error&) {
    return false;
  }
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  encode(text, nullptr, &ids);
  return ids;
}

void Tokenizer::encode(std::string_view text, Cache* cache, std::vector<int32_t>* ids) const {
  model_->encode(text, cache, ids);
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids) const {
  for (const int32_t id : ids) check_id(id);
  return model_->decode(ids);
}

std::string Tokenizer::bytes(int32_t id, bool first) const {
  check_id(id);
  return model_->bytes(id, first);
}

Tokenizer::Kind Tokenizer::kind(int32_t id) const {
  check_id(id);
  return model_->kind(id);
}

std::string Tokenizer::piece(int32_t id) const {
  check_id(id);
  return model_->piece(id);
}

const SentencePieceModel* Tokenizer::sentencepiece() const {
  return dynamic_cast<const SentencePieceModel*>(model_.get());
}

const BytePairModel* Tokenizer::byte_pairs() const {
  return dynamic_cast<const BytePairModel*>(model_.get());
}

void Tokenizer::check_id(int32_t id) const {
  if (id >= 0 && id < vocab()) return;
  throw Error(ExitCode::data, "token id " + std::to_string(id),
              "an id below the vocabulary of " + std::to_string(vocab()), std::to_string(id),
              "use the tokenizer that made these tokens");
}

}  // namespace bamtrain
