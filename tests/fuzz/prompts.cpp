// Benchmark records, one per line: questions with choices ("c"), passages with a last word ("z") or
// requests ("r").

#include "core/utf8.h"
#include "prompts/choice_file.h"
#include "prompts/request_file.h"
#include "target.h"

using namespace bamtrain;
using namespace bamtrain::fuzz;

namespace {

void check_question(const ChoiceExample& e) {
  require(e.choices() >= 1 && e.gold < e.choices(), "a right choice among those that are there");
  require(e.characters.size() == e.choices(), "a size for each choice");
  for (size_t i = 0; i < e.choices(); ++i) {
    require(e.characters[i] >= 1 && !e.continuation(i).empty(), "choices that say something");
    require(first_invalid_utf8(e.context(i) + e.continuation(i)) == std::string::npos,
            "prompts in UTF-8");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  const Input in(data, size);
  const std::string path = folder.write("records.jsonl", in.rest);
  accepts([&] {
    if (in.kind == 'c') {
      ChoiceFile file = read_choice_file(path, nullptr, INT64_MAX);
      prepend_few_shot(&file, path, 1);
      for (const ChoiceExample& e : file.examples) check_question(e);
    } else {
      const RequestFile file =
          in.kind == 'z' ? read_cloze_file(path, INT64_MAX) : read_request_file(path, INT64_MAX);
      for (const TextRequest& r : file.requests) {
        require(!r.continuation.empty(), "continuations that say something");
      }
    }
  });
  return 0;
}
