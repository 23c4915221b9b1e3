// A tokenizer's model ("m"), or text ("t") for a valid one. The text must have the same ids however
// it is encoded, and decode back to itself.

#include "data/tokenizer.h"

#include <cstdio>
#include <vector>

#include "core/utf8.h"
#include "data_tools/train_tokenizer.h"
#include "target.h"

using namespace bamtrain;
using namespace bamtrain::fuzz;

namespace {

/// A small tokenizer, of the kind that splits text.
Tokenizer trained(const Folder& folder) {
  TrainTokenizerOptions options;
  options.input.paths = {folder.write("text",
                                      "The lord of the tower, the lady of the lake\n"
                                      "and 12 of 345 words, caf\u00e9 and na\u00efve.\n")};
  options.input.kind = DocumentKind::line;
  options.input.format = "txt";
  options.output = folder.path() + "/trained.model";
  options.vocab = 290;
  std::FILE* log = std::tmpfile();
  train_tokenizer(options, log);
  std::fclose(log);
  return Tokenizer::open(options.output);
}

void check_text(const Tokenizer& tokenizer, const std::string& bytes) {
  static Tokenizer::Cache cache(256);
  const std::string text = replace_invalid_utf8(bytes);
  const std::vector<int32_t> ids = tokenizer.encode(text);
  std::vector<int32_t> cached;
  tokenizer.encode(text, &cache, &cached);
  require(cached == ids, "the same ids with a cache");
  std::string joined;
  for (size_t i = 0; i < ids.size(); ++i) {
    require(ids[i] >= 0 && ids[i] < tokenizer.vocab(), "ids of the vocabulary");
    joined += tokenizer.bytes(ids[i], i == 0);
  }
  // U+2581 is SentencePiece's own mark for a space.
  if (!tokenizer.is_exact() || text.find("\u2581") != std::string::npos) return;
  require(tokenizer.decode(ids) == text, "the text again");
  require(joined == text, "the text again, id by id");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  const Input in(data, size);
  if (in.kind == 't') {
    static const Tokenizer tokenizer = trained(folder);
    accepts([&] { check_text(tokenizer, in.rest); });
    return 0;
  }
  const std::string path = folder.write("input.model", in.rest);
  accepts([&] {
    const Tokenizer tokenizer = Tokenizer::open(path);
    const std::vector<int32_t> ids = tokenizer.encode("The lady of 12 lakes, na\u00efve.");
    tokenizer.decode(ids);
    for (int32_t id = 0; id < std::min<int64_t>(tokenizer.vocab(), 1000); ++id) {
      tokenizer.piece(id);
      tokenizer.bytes(id, true);
    }
  });
  return 0;
}
