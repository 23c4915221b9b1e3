// RULER's tasks against length and depth, or prompts from a file.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/checked.h"
#include "core/error.h"
#include "core/sha256.h"
#include "eval/greedy_decoding.h"
#include "eval/recall.h"
#include "eval/retrieval_scores.h"
#include "eval/text_evaluation.h"
#include "model/incremental_decoder.h"
#include "prompts/prompt_file.h"
#include "prompts/ruler.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

constexpr int64_t kSamples = 500;        // RULER's, per length
constexpr int64_t kSamplesOfDepth = 25;  // per depth, if depths are set
constexpr int64_t kTokensOfFile = 128;

/// The prompts of one part.
class Prompts {
 public:
  virtual ~Prompts() = default;
  /// Upper bounds: ids of the longest prompt, prompts, tokens of an answer.
  struct Size {
    int64_t longest = 0, prompts = 0, most = 1;
  };
  virtual Size size() const = 0;
  virtual RecallPrompts read() const = 0;
  /// As TextEvaluation::texts.
  virtual std::vector<ordered_json> texts() const = 0;
};

/// Settings common to all prompts of a request.
struct RulerRequest {
  const HaystackText* haystack = nullptr;
  int64_t depths = 0;   // 0: RULER's own
  int64_t samples = 0;  // per length, or per length and depth
  int64_t tokens = 0;   // of an answer; 0: RULER's
  TextIds ids;
};

class RulerPrompts final : public Prompts {
 public:
  /// Errors as ruler_prompts.
  RulerPrompts(const TextTaskPart& part, const RulerRequest& request, uint64_t seed)
      : part_(part), request_(request) {
    const auto cache = std::make_shared<Tokenizer::Cache>();
    const TokenCount count = [ids = request.ids, cache](const std::string& text) {
      std::vector<int32_t> read;
      ids.tokenizer.encode(text, cache.get(), &read);
      return std::ssize(read) + (ids.document_start ? 1 : 0);
    };
    const int64_t sets = std::max<int64_t>(1, request.depths);
    check_texts_fit(sets * request.samples, *part.length);
    for (int64_t i = 0; i < sets; ++i) {
      NeedleOptions needles = {.text = request.haystack};
      if (request.depths > 0) needles.depth = depth_of(i, request.depths);
      sets_.push_back(ruler_prompts(part.task, needles, *part.length, seed, count));
      sets_.back().require_room(i * request.samples, request.samples);
    }
    own_tokens_ = prompt(0).tokens_to_generate;
  }

  Size size() const override {
    return {*part_.length - own_tokens_, std::ssize(sets_) * request_.samples, most()};
  }
  RecallPrompts read() const override {
    RecallPrompts out;
    out.most = most();
    for (int64_t i = 0; i < std::ssize(sets_) * request_.samples; ++i) {
      out.add(prompt(i), request_.ids.tokenizer, request_.ids.document_start,
              fmt::format("{} at {}", part_.task, *part_.length));
    }
    return out;
  }
  std::vector<ordered_json> texts() const override {
    std::vector<ordered_json> out;
    for (int64_t i = 0; i < std::ssize(sets_) * request_.samples; ++i) {
      ordered_json& text =
          out.emplace_back(ordered_json{{"task", part_.task}, {"length", *part_.length}});
      if (request_.depths > 0) text["depth"] = depth_of(i / request_.samples, request_.depths);
      const TextPrompt p = prompt(i);
      text.update({{"input", p.text}, {"outputs", p.outputs}});
    }
    return out;
  }

 private:
  int64_t most() const { return request_.tokens > 0 ? request_.tokens : own_tokens_; }
  /// Numbered across all depths, so that no two share a needle.
  TextPrompt prompt(int64_t i) const {
    return sets_[static_cast<size_t>(i / request_.samples)].prompt(i);
  }

  TextTaskPart part_;
  RulerRequest request_;
  std::vector<PromptSet> sets_;  // by depth
  int64_t own_tokens_ = 0;
};

class FilePrompts final : public Prompts {
 public:
  /// REQUIRES: prompts and file outlive it.
  FilePrompts(const std::vector<TextPrompt>& prompts, const std::string& file, bool any,
              const TextIds& ids)
      : texts_(prompts), file_(file) {
    prompts_.any = any;
    prompts_.most = prompts[0].tokens_to_generate;
    for (const TextPrompt& p : prompts) {
      prompts_.add(p, ids.tokenizer, ids.document_start, file);
    }
  }
  Size size() const override {
    return {prompts_.longest(), std::ssize(prompts_.ids), prompts_.most};
  }
  RecallPrompts read() const override { return prompts_; }
  std::vector<ordered_json> texts() const override {
    std::vector<ordered_json> out;
    for (const TextPrompt& p : texts_) {
      out.push_back({{"task", file_}, {"input", p.text}, {"outputs", p.outputs}});
    }
    return out;
  }

 private:
  const std::vector<TextPrompt>& texts_;
  const std::string& file_;
  RecallPrompts prompts_;
};

class NeedleEvaluation final : public TextEvaluation {
 public:
  NeedleEvaluation(const TextTaskRequest& r, const TextIds& ids)
      : TextEvaluation(r, ids), file_(r.options.text("file")), prompts_(parts_.size()) {
    const std::string& haystack = r.options.text("haystack");
    if (!haystack.empty()) {
      require_text_task();
      haystack_ = HaystackText::read(haystack);
      haystack_sha256_ = sha256_file(haystack);
    }
    if (!file_.empty()) {
      read_file();
      return;
    }
    depths_ = integer("depths");
    samples_ = r.samples.value_or(depths_ > 0 ? kSamplesOfDepth : kSamples);
  }

  ordered_json facts() const override {
    ordered_json task = {{"task", "niah"}};
    if (file_.empty()) {
      task["depths"] = depths_ > 0 ? ordered_json(depths_) : ordered_json("ruler");
    } else {
      task.update({{"file", file_}, {"sha256", file_sha256_}});
      if (matches_any()) task["match"] = "any";
    }
    const std::string& haystack = request_.options.text("haystack");
    if (!haystack.empty()) {
      task.update({{"haystack", haystack}, {"haystack_sha256", haystack_sha256_}});
    }
    const int64_t tokens = integer("tokens");
    task["tokens"] = tokens > 0 ? ordered_json(tokens) : ordered_json();
    if (!file_.empty() && tokens == 0) task["tokens"] = kTokensOfFile;
    return task;
  }
  int64_t samples() const override { return samples_; }
  int64_t depths() const override { return depths_; }
  std::vector<ordered_json> texts(size_t part) const override { return prompts(part).texts(); }

  void check(size_t part, const ScoredModel& model) const override {
    check_incremental_decoding(model.config);
    const TextTaskPart& p = parts_[part];
    const Prompts::Size size = prompts(part).size();
    // Validation during training draws other prompts, which may not fit where these barely do.
    if (p.length) RulerPrompts(p, ruler_request(), seed(TaskSet::select));
    check_text_length(size.longest + size.most - 1,
                      p.task + (p.length ? fmt::format(" at {}", *p.length) : ""), model);
  }
  int64_t bytes(size_t part, const ScoredModel& model) const override {
    const Prompts::Size size = prompts(part).size();
    return checked_add(greedy_decode_bytes(size.longest, size.prompts, size.most, model),
                       texts_bytes(size.prompts, size.longest), "samples");
  }
  ordered_json score(size_t part, TaskSet set, const ScoredModel& model, const TaskShare& share,
                     const TaskProgress& progress) const override {
    const RecallPrompts read = set == TaskSet::test || !file_.empty()
                                   ? prompts(part).read()
                                   : RulerPrompts(parts_[part], ruler_request(), seed(set)).read();
    double tokens = 0;
    for (const auto& ids : read.ids) tokens += static_cast<double>(ids.size());
    ordered_json row = {{"tokens", tokens / static_cast<double>(read.ids.size())}};
    const std::vector<double> found =
        recalls(read, ids_.tokenizer, model, ids_.document_start, share, progress);
    row.update(retrieval_row({{"recall", found}}, depths_));
    return row;
  }

 private:
  void read_file() {
    const int64_t tokens = integer("tokens");
    of_file_ = read_prompts(file_, tokens > 0 ? tokens : kTokensOfFile);
    file_sha256_ = sha256_file(file_);
    if (request_.samples && *request_.samples < std::ssize(of_file_)) {
      of_file_.resize(static_cast<size_t>(*request_.samples));
    }
    samples_ = std::ssize(of_file_);
  }
  void require_text_task() const {
    for (const TextTaskPart& p : parts_) {
      const NeedleTask* const task = find_needle_task(p.task);
      if (task != nullptr && task->haystack == HaystackKind::text) return;
    }
    throw Error(ExitCode::config, "{haystack}", "no text: no task here hides needles in one",
                request_.options.text("haystack"), "leave it out");
  }
  bool matches_any() const { return request_.options.text("match") == "any"; }
  RulerRequest ruler_request() const {
    return {haystack_ ? &*haystack_ : nullptr, depths_, samples_, integer("tokens"), ids_};
  }
  uint64_t seed(TaskSet set) const {
    return set == TaskSet::test ? request_.seed : Rng(request_.seed, "eval.niah.select").bits(0);
  }
  /// Created on first use: finding how many words fit takes a search.
  const Prompts& prompts(size_t part) const {
    std::unique_ptr<Prompts>& p = prompts_[part];
    if (!p && file_.empty()) {
      p = std::make_unique<RulerPrompts>(parts_[part], ruler_request(), seed(TaskSet::test));
    } else if (!p) {
      p = std::make_unique<FilePrompts>(of_file_, file_, matches_any(), ids_);
    }
    return *p;
  }

  std::string file_, file_sha256_, haystack_sha256_;
  std::optional<HaystackText> haystack_;
  std::vector<TextPrompt> of_file_;
  int64_t depths_ = 0, samples_ = 0;
  mutable std::vector<std::unique_ptr<Prompts>> prompts_;  // by part
};

}  // namespace

std::unique_ptr<TextEvaluation> needle_evaluation(const TextTaskRequest& r, const TextIds& ids) {
  return std::make_unique<NeedleEvaluation>(r, ids);
}

}  // namespace bamtrain
