// Published byte-level BPEs on real text: the checks of tests/data/byte_pair_model.cpp for small
// ones.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/sha256.h"
#include "data/tokenizer.h"
#include "data/tokenizers.h"
#include "data_tools/document_text.h"
#include "data_tools/inputs.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;
using Json = nlohmann::json;

std::vector<std::string> documents_in(const std::string& path) {
  InputOptions options;
  options.paths = {path};
  options.kind = path.ends_with(".xz") ? DocumentKind::jsonl : DocumentKind::file;
  Inputs inputs(options);
  std::vector<std::string> documents;
  RawDocument raw;
  TextCounts counts;
  while (inputs.next(&raw)) {
    document_text(std::move(raw), path, inputs.kind(), "text", InvalidUtf8::error,
                  &documents.emplace_back(), &counts);
  }
  return documents;
}

TEST_CASE("published byte-level BPEs have the ids of tokenizers and tiktoken on real text") {
  if (shared_data("fineweb/docs.jsonl.xz").empty()) return;
  const Json all = golden("corpora.json");  // from scripts/tokenizer_golden.py
  for (const auto& [file, corpora] : all.items()) {
    INFO(file);
    const Tokenizer tokenizer = Tokenizer::open(shared_data("tokenizer/" + file));
    Tokenizer::Cache cache;
    for (const auto& [corpus, expected] : corpora.items()) {
      INFO(corpus);
      const auto parts = corpus == "texts"
                             ? golden("golden.json")["texts"].get<std::vector<std::string>>()
                             : documents_in(shared_data(corpus));
      std::string bytes;
      int64_t count = 0;
      for (const std::string& part : parts) {
        std::vector<int32_t> ids;
        tokenizer.encode(part, &cache, &ids);
        bytes.append(reinterpret_cast<const char*>(ids.data()), 4 * ids.size());
        count += static_cast<int64_t>(ids.size());
        REQUIRE((tokenizer.decode(ids) == part));  // in parentheses: not printed
      }
      CHECK(parts.size() == expected["documents"].get<size_t>());
      CHECK(count == expected["ids"].get<int64_t>());
      CHECK(sha256_hex(bytes) == expected["sha256"].get<std::string>());
    }
  }
}

}  // namespace
}  // namespace bamtrain
