// bamtrain eval --task niah: RULER's tasks, against length and depth; or prompts of a file.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "commands/retrieval.h"
#include "commands/task_settings.h"
#include "core/join.h"
#include "core/nearest.h"
#include "core/sha256.h"
#include "eval/continuations.h"
#include "eval/recall.h"
#include "eval/retrieval_scores.h"
#include "prompts/prompt_file.h"
#include "prompts/ruler.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

constexpr int64_t kMostDepths = 1000, kMostTokens = 4096;
constexpr int64_t kSamples = 500;        // RULER's, at each length
constexpr int64_t kSamplesOfDepth = 25;  // where there are depths
constexpr int64_t kTokensOfFile = 128;

struct Settings {
  std::vector<std::string> names;
  std::string file, haystack, tokenizer;
  int64_t depths = 0;             // 0: RULER's own
  std::optional<int64_t> tokens;  // of an answer; none: RULER's
};

/// Those of "a,b"; all of "all".
std::vector<std::string> names_of(const std::string& text) {
  const std::vector<std::string> known = ruler_tasks();
  if (text == "all") return known;
  std::vector<std::string> names;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, end - at);
    at = end + 1;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error(ExitCode::usage, "--task-set name", "all, or of " + join(known), name,
                  did_you_mean(name, known, "use one of them"));
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

Settings settings_of(const EvalArguments& arguments) {
  Settings s;
  const std::vector<std::string> keys = {"name",   "file",   "haystack",
                                         "depths", "tokens", "tokenizer"};
  for (const auto& [key, value] :
       task_settings(arguments.task_settings, "niah", keys, "retrieval")) {
    if (key == "name") s.names = names_of(value);
    if (key == "file") s.file = value;
    if (key == "haystack") s.haystack = value;
    if (key == "depths") s.depths = integer_setting(key, value, 2, kMostDepths);
    if (key == "tokens") s.tokens = integer_setting(key, value, 1, kMostTokens);
    if (key == "tokenizer") s.tokenizer = value;
  }
  if (s.names.empty() == s.file.empty()) {
    throw Error(ExitCode::usage, "--task-set", "name=TASK, or file=FILE of RULER's prompts",
                s.file.empty() ? "neither" : "both", "give one of them");
  }
  if (s.file.empty()) return s;
  const char* const other = !arguments.lengths.empty() ? "--lengths"
                            : arguments.seed           ? "--seed"
                            : s.depths > 0             ? "--task-set depths"
                            : !s.haystack.empty()      ? "--task-set haystack"
                                                       : nullptr;
  if (other == nullptr) return s;
  throw Error(ExitCode::usage, other, "nothing: the prompts are those of the file", "a value",
              "remove it");
}

/// The prompts of one part of the result.
class Prompts {
 public:
  virtual ~Prompts() = default;
  /// Ids of the longest and how many there are, at the most; tokens of an answer.
  struct Size {
    int64_t longest = 0, prompts = 0, most = 1;
  };
  virtual Size size() const = 0;
  virtual RecallPrompts read() const = 0;
};

class RulerPrompts final : public Prompts {
 public:
  /// Errors as ruler_prompts, said of options.
  RulerPrompts(const RetrievalPart& part, const Settings& s, const HaystackText* haystack,
               int64_t samples, uint64_t seed, const RetrievalModel& model)
      : part_(part), tokens_(s.tokens), samples_(samples), model_(model) {
    const int64_t sets = std::max<int64_t>(1, s.depths);
    const auto cache = std::make_shared<Tokenizer::Cache>();
    const TokenCount count = [&model, cache](const std::string& text) {
      std::vector<int32_t> ids;
      model.tokenizer().encode(text, cache.get(), &ids);
      return std::ssize(ids) + (model.document_start() ? 1 : 0);
    };
    for (int64_t i = 0; i < sets; ++i) {
      NeedleOptions needles = {.text = haystack};
      if (s.depths > 0) needles.depth = depth_of(i, s.depths);
      try {
        sets_.push_back(ruler_prompts(part.name, needles, *part.length, seed, count));
      } catch (const Error& e) {
        throw as_option(e);
      }
    }
    own_tokens_ = prompt(0).tokens_to_generate;
  }

  Size size() const override {
    return {*part_.length - own_tokens_, std::ssize(sets_) * samples_, most()};
  }
  RecallPrompts read() const override {
    RecallPrompts out;
    out.most = most();
    for (int64_t i = 0; i < std::ssize(sets_) * samples_; ++i) {
      out.add(prompt(i), model_.tokenizer(), model_.document_start(),
              fmt::format("{} at {}", part_.name, *part_.length));
    }
    return out;
  }

 private:
  int64_t most() const { return tokens_.value_or(own_tokens_); }
  /// Numbered through all depths, so that no two have the same needle.
  TextPrompt prompt(int64_t i) const {
    try {
      return sets_[static_cast<size_t>(i / samples_)].prompt(i);
    } catch (const Error& e) {
      throw as_option(e);
    }
  }

  RetrievalPart part_;
  std::optional<int64_t> tokens_;
  int64_t samples_;  // of each set
  const RetrievalModel& model_;
  std::vector<PromptSet> sets_;  // of each depth
  int64_t own_tokens_ = 0;
};

class FilePrompts final : public Prompts {
 public:
  FilePrompts(const std::vector<TextPrompt>& prompts, const std::string& file,
              const RetrievalModel& model) {
    prompts_.most = prompts[0].tokens_to_generate;
    for (const TextPrompt& p : prompts) {
      prompts_.add(p, model.tokenizer(), model.document_start(), file);
    }
  }
  Size size() const override {
    return {prompts_.longest(), std::ssize(prompts_.ids), prompts_.most};
  }
  RecallPrompts read() const override { return prompts_; }

 private:
  RecallPrompts prompts_;
};

std::vector<TextPrompt> read_file(const Settings& s, std::optional<int64_t> samples) {
  if (s.file.empty()) return {};
  std::vector<TextPrompt> prompts = read_prompts(s.file, s.tokens.value_or(kTokensOfFile));
  if (samples && *samples < std::ssize(prompts)) prompts.resize(static_cast<size_t>(*samples));
  return prompts;
}

ordered_json task_of(const Settings& s) {
  ordered_json task = {{"task", "niah"}};
  if (s.file.empty()) {
    task["depths"] = s.depths > 0 ? ordered_json(s.depths) : ordered_json("ruler");
  } else {
    task.update({{"file", s.file}, {"sha256", sha256_file(s.file)}});
  }
  if (!s.haystack.empty()) {
    task.update({{"haystack", s.haystack}, {"haystack_sha256", sha256_file(s.haystack)}});
  }
  task["tokens"] = s.tokens ? ordered_json(*s.tokens) : ordered_json();
  if (!s.file.empty()) task["tokens"] = s.tokens.value_or(kTokensOfFile);
  return task;
}

ordered_json score(const RecallPrompts& prompts, int64_t depths, const RetrievalModel& model,
                   const TaskProgress& progress) {
  double tokens = 0;
  for (const auto& ids : prompts.ids) tokens += static_cast<double>(ids.size());
  ordered_json row = {{"tokens", tokens / static_cast<double>(prompts.ids.size())}};
  row.update(retrieval_row({{"recall", recalls(prompts, model.tokenizer(), model.scored(),
                                               model.document_start(), TaskShare{}, progress)}},
                           depths));
  return row;
}

}  // namespace

int run_eval_niah(const EvalArguments& arguments) {
  const Settings s = settings_of(arguments);
  const std::vector<TextPrompt> of_file = read_file(s, arguments.samples);
  std::optional<HaystackText> haystack;
  if (!s.haystack.empty()) haystack = HaystackText::read(s.haystack);
  std::vector<RetrievalPart> parts;
  if (!s.file.empty()) parts.push_back({s.file, std::nullopt});
  for (const std::string& name : s.names) {
    for (const int64_t length : sorted_lengths(arguments.lengths)) parts.push_back({name, length});
  }
  const int64_t samples =
      s.file.empty() ? arguments.samples.value_or(s.depths > 0 ? kSamplesOfDepth : kSamples)
                     : std::ssize(of_file);
  const uint64_t seed = arguments.seed.value_or(0);
  RetrievalModel model(arguments, s.tokenizer, true);
  RetrievalResult result(arguments.output, model.facts(task_of(s), samples, seed), parts,
                         {"recall"}, s.depths);

  std::vector<std::unique_ptr<Prompts>> prompts(parts.size());
  int64_t bytes = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (result.has(i)) continue;
    if (s.file.empty()) {
      prompts[i] = std::make_unique<RulerPrompts>(parts[i], s, haystack ? &*haystack : nullptr,
                                                  samples, seed, model);
    } else {
      prompts[i] = std::make_unique<FilePrompts>(of_file, s.file, model);
    }
    const Prompts::Size size = prompts[i]->size();
    model.check_text(
        size.longest + size.most - 1,
        parts[i].name + (parts[i].length ? fmt::format(" at {}", *parts[i].length) : ""));
    bytes =
        std::max(bytes, continuations_bytes(size.longest, size.prompts, size.most, model.scored()));
  }
  if (bytes > 0) {
    model.check_memory(bytes);
    model.load();
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (result.has(i)) continue;
    result.put(i, score(prompts[i]->read(), s.depths, model, result.progress(i)));
  }
  result.finish();
  return 0;
}

}  // namespace bamtrain
