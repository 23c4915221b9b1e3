#include "eval/generate.h"

#include <algorithm>

#include "core/element.h"
#include "core/error.h"
#include "core/utf8.h"
#include "eval/text_stream.h"

namespace bamtrain {

Prompt::Prompt(const Tokenizer& tokenizer, std::optional<int64_t> document_start,
               const std::string& text, const std::string& where)
    : empty(text.empty()) {
  const size_t bad = first_invalid_utf8(text);
  if (bad != std::string_view::npos) {
    throw Error::fault(ExitCode::data, where, "not valid UTF-8 at byte " + std::to_string(bad),
                       "convert it to UTF-8");
  }
  if (document_start) ids.push_back(static_cast<int32_t>(*document_start));
  const std::vector<int32_t> of_text = tokenizer.encode(text);
  ids.insert(ids.end(), of_text.begin(), of_text.end());
  if (ids.empty()) {
    throw Error(ExitCode::data, where, "text: neither the shards nor the tokenizer have a BOS id",
                "an empty prompt", "give some text, or set data.document_start");
  }
}

void generate(IncrementalDecoder& model, const Tokenizer& tokenizer,
              std::optional<int64_t> document_start, const Prompt& prompt,
              const GenerationLimits& limits, const Rng& rng,
              const std::function<void(const std::string&)>& show) {
  require(limits.max_tokens >= 1 && prompt.longest(limits) <= model.longest(),
          "a model planned for the prompt and what follows it");
  Sampler sampler(limits.sampling, rng);
  TextStream stream(limits.stops);
  std::vector<double> logits(static_cast<size_t>(std::min(model.vocab(), tokenizer.vocab())));
  const auto show_some = [&show](const std::string& text) {
    if (!text.empty()) show(text);
  };
  model.clear();
  Tensor next = model.append(prompt.ids);
  bool first = prompt.empty;
  for (int64_t n = 0; n < limits.max_tokens && !stream.stopped(); ++n) {
    for (size_t id = 0; id < logits.size(); ++id) logits[id] = get(next, static_cast<int64_t>(id));
    const int32_t token = sampler.draw(logits, static_cast<uint64_t>(n));
    if (token == document_start || token == tokenizer.eos()) break;
    show_some(stream.add(tokenizer.bytes(token, first)));
    first = false;
    if (n + 1 < limits.max_tokens && !stream.stopped()) next = model.append({&token, 1});
  }
  show_some(stream.finish());
}

}  // namespace bamtrain
