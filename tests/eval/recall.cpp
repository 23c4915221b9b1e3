// Recall of text that a model is known to generate.

#include "eval/recall.h"

#include <algorithm>

#include "catch.h"
#include "core/element.h"
#include "data/tokenizers.h"
#include "eval/small_model.h"
#include "model/incremental_decoder.h"

using namespace bamtrain;
using bamtrain::testing::kStart;
using bamtrain::testing::SmallModel;

namespace {

const Tokenizer& tokenizer() {
  static const Tokenizer t = Tokenizer::open(bamtrain::testing::golden_path("digits.json"));
  return t;
}

/// The text after the prompt, up to an id that ends a text.
std::string written_text(const SmallModel& m, std::vector<int32_t> ids, int64_t most) {
  IncrementalDecoder text(m.config, SmallModel::kTrained, *m.backend, m.master_weights.dtype,
                          kStart, std::ssize(ids) + most);
  text.commit(m.master_weights);
  std::string out;
  Tensor logits = text.append(ids);
  for (int64_t n = 0; n < most; ++n) {
    int32_t best = 0;
    for (int32_t id = 1; id < tokenizer().vocab(); ++id) {
      if (get(logits, id) > get(logits, best)) best = id;
    }
    if (best == kStart || best == tokenizer().eos()) break;
    out += tokenizer().bytes(best, false);
    logits = text.append({&best, 1});
  }
  return out;
}

}  // namespace

TEST_CASE("recall is the share of references in what is written") {
  // Ids beyond the tokenizer's are never generated.
  const SmallModel m("bam", false, make_reference_backend(), Dtype::f64, tokenizer().vocab() + 90);
  RecallPrompts prompts;
  prompts.most = 9;
  std::vector<std::string> texts;
  for (const char* prompt : {"The grass is green.", "Here we go.", "What is it?"}) {
    const TextPrompt p = {prompt, {"?"}, 9};
    prompts.add(p, tokenizer(), kStart, "test");
    CHECK(prompts.ids.back()[0] == kStart);
    texts.push_back(written_text(m, prompts.ids.back(), prompts.most));
    REQUIRE(texts.back().size() > 2);
  }
  CHECK(prompts.longest() == 1 + std::ssize(tokenizer().encode("The grass is green.")));
  prompts.references = {
      {texts[0]}, {"\x01no", texts[1].substr(1)}, {"\x01no", "\x02no", texts[2], texts[2]}};
  const auto got = recalls(prompts, tokenizer(), m.model(), kStart, TaskShare{}, [](double) {});
  CHECK(got == std::vector<double>{1, 0.5, 0.5});
  prompts.most = 1;
  CHECK(recalls(prompts, tokenizer(), m.model(), kStart, TaskShare{}, [](double) {})[0] == 0);
}
