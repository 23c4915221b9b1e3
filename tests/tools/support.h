#pragma once
// Helpers shared by the tests of text, tokenizers and bamdata.

#include <lzma.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "catch.h"
#include "data/files.h"

namespace bamtrain::testing {

/// The path of a file with real data; empty (with a message) if it is missing.
inline std::string shared_data(const std::string& name) {
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  const std::string path = std::string(source ? source : ".") + "/../shared/data/" + name;
  std::error_code code;
  if (std::filesystem::exists(path, code)) return path;
  std::printf("skipped: %s is not there\n", path.c_str());
  return "";
}

/// Enough English for a tokenizer with a few hundred entries; all sentences differ.
inline std::vector<std::string> sample_sentences() {
  const std::vector<std::string> subjects = {"The old sailor", "A quiet river", "Her brother",
                                             "The committee",  "Every winter",  "My neighbour"};
  const std::vector<std::string> verbs = {"remembered", "crossed",  "painted",
                                          "followed",   "measured", "described"};
  const std::vector<std::string> objects = {"the northern hills",          "two wooden houses",
                                            "an unfinished letter, twice", "the long road (again)",
                                            "3 maps of the coast",         "nothing at all"};
  std::vector<std::string> sentences;
  for (const auto& s : subjects) {
    for (const auto& v : verbs) {
      for (const auto& o : objects) sentences.push_back(s + " " + v + " " + o + ".");
    }
  }
  return sentences;
}

/// A model that SentencePiece trains on sample_sentences(), with {vocab_size 500, model_type bpe}
/// and these settings.
inline std::string trained_model(const std::unordered_map<std::string, std::string>& settings) {
  class Sentences : public sentencepiece::SentenceIterator {
   public:
    bool done() const override { return at_ == lines_.size(); }
    void Next() override { ++at_; }
    const std::string& value() const override { return lines_[at_]; }
    sentencepiece::util::Status status() const override { return {}; }

   private:
    std::vector<std::string> lines_ = sample_sentences();
    size_t at_ = 0;
  } sentences;
  std::unordered_map<std::string, std::string> all = settings;
  all.insert({"vocab_size", "500"});
  all.insert({"model_type", "bpe"});
  all.insert({"minloglevel", "2"});
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(all, &sentences, &model);
  INFO(status.ToString());
  REQUIRE(status.ok());
  return model;
}

/// Settings like Llama's: byte fallback and no normalisation.
inline std::unordered_map<std::string, std::string> llama_settings() {
  return {{"byte_fallback", "true"},
          {"normalization_rule_name", "identity"},
          {"remove_extra_whitespaces", "false"},
          {"allow_whitespace_only_pieces", "true"},
          {"split_digits", "true"}};
}

/// The path of a small tokenizer of Llama's kind.
inline std::string small_tokenizer(const TemporaryFolder& folder) {
  const std::string path = folder.file("small.model");
  write_bytes(path, trained_model(llama_settings()));
  return path;
}

inline std::string zstd_of(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const size_t n = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3);
  REQUIRE_FALSE(ZSTD_isError(n));
  out.resize(n);
  return out;
}

inline std::string xz_of(const std::string& text) {
  std::string out(lzma_stream_buffer_bound(text.size()), '\0');
  size_t n = 0;
  REQUIRE(lzma_easy_buffer_encode(
              1, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const uint8_t*>(text.data()),
              text.size(), reinterpret_cast<uint8_t*>(out.data()), &n, out.size()) == LZMA_OK);
  out.resize(n);
  return out;
}

inline std::string gzip_of(const std::string& text) {
  z_stream stream = {};
  constexpr int kGzipAlone = 16, kMemory = 8;
  REQUIRE(::deflateInit2(&stream, 1, Z_DEFLATED, MAX_WBITS + kGzipAlone, kMemory,
                         Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

/// The tokens of a uint16 shard, read without code of src/data.
inline std::vector<int32_t> uint16_tokens(const std::string& path) {
  const std::string bytes = read_bytes(path);
  REQUIRE(bytes.size() >= 1024);
  std::vector<int32_t> ids;
  for (size_t i = 1024; i + 1 < bytes.size(); i += 2) {
    ids.push_back(static_cast<unsigned char>(bytes[i]) | static_cast<unsigned char>(bytes[i + 1])
                                                             << 8);
  }
  return ids;
}

/// Splits token ids into documents: each begins with `bos`.
inline std::vector<std::vector<int32_t>> split_at(const std::vector<int32_t>& ids, int32_t bos) {
  std::vector<std::vector<int32_t>> documents;
  REQUIRE((ids.empty() || ids.front() == bos));
  for (int32_t id : ids) {
    if (id == bos) documents.emplace_back();
    documents.back().push_back(id);
  }
  return documents;
}

/// Names in a folder, sorted.
inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Returns f(log) with a log that is discarded.
template <class F>
auto without_log(F&& f) {
  std::FILE* log = std::fopen("/dev/null", "w");
  REQUIRE(log != nullptr);
  struct Close {
    std::FILE* file;
    ~Close() { std::fclose(file); }
  } close{log};
  return f(log);
}

}  // namespace bamtrain::testing
