// bamtrain eval --task choice, cloze or requests: how likely a model finds texts behind their
// contexts.

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/eval.h"
#include "commands/eval_result.h"
#include "commands/task_settings.h"
#include "commands/trained.h"
#include "core/standard_output.h"
#include "core/utf8.h"
#include "eval/choice_scores.h"
#include "model/text_model.h"
#include "prompts/choice_file.h"
#include "prompts/request_file.h"
#include "record/run_files.h"
#include "record/run_text.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

constexpr int64_t kMostShots = 1000;

struct Settings {
  std::string file, format, shots_file, tokenizer;
  int64_t shots = 0;
  bool bos = true;
};

void check_shots(const Settings& s) {
  if ((s.shots > 0) != !s.shots_file.empty()) {
    throw Error(ExitCode::usage, "--task-set", "shots=K with shots_file=FILE, or neither",
                s.shots > 0 ? "shots alone" : "shots_file without shots", "give both");
  }
  std::error_code ignored;
  if (s.shots > 0 && std::filesystem::equivalent(s.file, s.shots_file, ignored)) {
    throw Error(ExitCode::usage, "--task-set shots_file", "another file than that of the examples",
                s.shots_file, "an example would be asked behind its own answer: name another file");
  }
}

Settings settings_of(const EvalArguments& arguments) {
  std::vector<std::string> known = {"file", "bos", "tokenizer"};
  if (arguments.task == "choice") known.insert(known.end(), {"format", "shots", "shots_file"});
  Settings s;
  for (const auto& [key, value] :
       task_settings(arguments.task_settings, arguments.task, known, "downstream")) {
    if (key == "file") s.file = value;
    if (key == "format") s.format = value;
    if (key == "shots") s.shots = integer_setting(key, value, 0, kMostShots);
    if (key == "shots_file") s.shots_file = value;
    if (key == "bos") s.bos = word_setting(key, value, "auto", "never");
    if (key == "tokenizer") s.tokenizer = value;
  }
  if (s.file.empty()) {
    throw Error(ExitCode::usage, "--task-set", "file=FILE, with the examples", "none", "give it");
  }
  check_shots(s);
  if (!arguments.lengths.empty() || arguments.seed) {
    throw Error(ExitCode::usage, arguments.seed ? "--seed" : "--lengths",
                "nothing: the examples of " + arguments.task + " are those of the file", "a value",
                "remove it");
  }
  return s;
}

/// What is asked of a model, as texts; as ids in `requests`.
struct Prompts {
  ordered_json task;
  const ChoiceFormat* format = nullptr;  // of choice
  std::vector<ChoiceExample> examples;   // of choice
  std::vector<TextRequest> texts;        // of the others
  std::vector<EncodedRequest> requests;
  std::vector<std::string> places;  // FILE:LINE of each request
};

Prompts read_prompts(const EvalArguments& arguments, const Settings& s) {
  const int64_t most = arguments.samples.value_or(INT64_MAX);
  Prompts p;
  p.task = {{"task", arguments.task}, {"file", s.file}, {"bos", s.bos ? "auto" : "never"}};
  if (arguments.task == "choice") {
    const ChoiceFormat* format =
        s.format.empty() ? nullptr : &choice_format(s.format, "--task-set format");
    ChoiceFile file = read_choice_file(s.file, format, most);
    lead_in(&file, s.shots_file, s.shots);
    p.task.update({{"sha256", file.sha256}, {"format", file.format->name}, {"shots", s.shots}});
    if (s.shots > 0) p.task["shots_file"] = s.shots_file;
    p.format = file.format;
    p.examples = std::move(file.examples);
  } else {
    RequestFile file =
        arguments.task == "cloze" ? read_cloze_file(s.file, most) : read_request_file(s.file, most);
    p.task["sha256"] = file.sha256;
    p.texts = std::move(file.requests);
  }
  return p;
}

void encode(Prompts* p, RequestEncoder* encoder) {
  const std::string file = p->task["file"];
  const auto add = [&](const std::string& context, const std::string& continuation, int64_t line) {
    p->places.push_back(fmt::format("{}:{}", file, line));
    p->requests.push_back(encoder->encode(context, continuation, p->places.back()));
  };
  for (const ChoiceExample& e : p->examples) {
    for (size_t i = 0; i < e.choices(); ++i) add(e.context(i), e.continuation(i), e.line);
  }
  for (const TextRequest& t : p->texts) add(t.context, t.continuation, t.line);
}

/// Nothing is cut: Error (ExitCode::config) where the model knows no text as long as the longest.
void check_lengths(const Prompts& p, const Network& network) {
  const size_t longest = longest_request(p.requests);
  const int64_t tokens = std::ssize(p.requests[longest].ids);
  try {
    network.check_length(tokens - 1);
  } catch (const Error& e) {
    throw e.with(
        fmt::format("the longest text, {} tokens, is that of {}", tokens, p.places[longest]));
  }
}

void require_finite(const Prompts& p, std::span<const Likelihood> found,
                    const std::string& checkpoint) {
  for (size_t i = 0; i < found.size(); ++i) {
    const double x = found[i].logprob;
    if (std::isfinite(x)) continue;
    throw Error(ExitCode::nonfinite, checkpoint, "finite log-likelihoods",
                fmt::format("{} at {}", std::isnan(x) ? "NaN" : "infinity", p.places[i]),
                "see whether --precision fp32 gives numbers; if not, an earlier checkpoint");
  }
}

/// Of the continuation.
int64_t tokens_of(const EncodedRequest& request) { return std::ssize(request.ids) - request.begin; }

std::vector<ChoiceAnswer> answers_of(const Prompts& p, std::span<const Likelihood> found) {
  std::vector<ChoiceAnswer> answers;
  size_t request = 0;
  for (const ChoiceExample& e : p.examples) {
    ChoiceAnswer answer = {{}, e.characters, {}, e.gold, e.group};
    for (size_t i = 0; i < e.choices(); ++i, ++request) {
      answer.logprobs.push_back(found[request].logprob);
      answer.tokens.push_back(tokens_of(p.requests[request]));
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

void put(ordered_json* row, const char* name, double value, const std::optional<double>& error) {
  (*row)[name] = value;
  (*row)[std::string(name) + "_error"] = error ? ordered_json(*error) : ordered_json();
}

ordered_json row_of(const ChoiceScores& s, const ChoiceFormat& format) {
  ordered_json row;
  row["examples"] = s.accuracy.count;
  put(&row, "acc", s.accuracy.mean, s.accuracy.error);
  if (!format.normalized) return row;
  put(&row, "acc_norm", s.by_character.mean, s.by_character.error);
  put(&row, "acc_token", s.by_token.mean, s.by_token.error);
  return row;
}

ordered_json row_of(const ClozeScores& s) {
  ordered_json row;
  row["examples"] = s.accuracy.count;
  put(&row, "acc", s.accuracy.mean, s.accuracy.error);
  put(&row, "perplexity", std::exp(s.loss.mean), s.loss.error_of_exp());
  put(&row, "loss", s.loss.mean, s.loss.error);
  return row;
}

/// "  acc 0.2500 +- 0.0125  acc_norm 0.3000 +- 0.0132".
std::string text_of(const ordered_json& row) {
  std::string text;
  for (const char* name : {"acc", "acc_norm", "acc_token", "perplexity"}) {
    if (!row.contains(name)) continue;
    const ordered_json& error = row[std::string(name) + "_error"];
    const int decimals = std::string_view(name) == "perplexity" ? 3 : 4;
    text += fmt::format("  {} {:.{}f}{}", name, row[name].get<double>(), decimals,
                        error.is_null() ? "" : plus_minus(error.get<double>(), decimals));
  }
  return text;
}

void print_scores(const ordered_json& result) {
  const ordered_json& scores = result["scores"];
  const ordered_json& task = result["task"];
  const std::string name = task.value("format", task["task"].get<std::string>());
  const auto examples = scores["examples"].get<int64_t>();
  fmt::print("{}, {} {}\n{}\n", name, examples, examples == 1 ? "example" : "examples",
             text_of(scores));
  if (result.contains("groups")) {
    for (const ordered_json& row : result["groups"]) {
      fmt::print("  {} ({}){}\n", printable(row["group"].get<std::string>()),
                 row["examples"].get<int64_t>(), text_of(row));
    }
  }
  fmt::print(
      "+-: the standard error of sampling the examples; models of other seeds differ besides\n");
}

/// {"logprob", "is_greedy", "tokens"} for each request, a line each.
std::string lines_of(const Prompts& p, std::span<const Likelihood> found) {
  std::string lines;
  for (size_t i = 0; i < found.size(); ++i) {
    const ordered_json line = {{"logprob", found[i].logprob},
                               {"is_greedy", found[i].greedy},
                               {"tokens", tokens_of(p.requests[i])}};
    lines += line.dump() + "\n";
  }
  return lines;
}

}  // namespace

int run_eval_prompts(const EvalArguments& arguments) {
  const Settings settings = settings_of(arguments);
  check_output(arguments.output);
  Prompts prompts = read_prompts(arguments, settings);
  const Checkpoint checkpoint = open_checkpoint(arguments.checkpoint);
  const RunConfig c = trained_config(checkpoint, arguments.overrides);
  check_text_model(c.model);
  const Tokenizer tokenizer =
      open_tokenizer({"--task-set tokenizer", settings.tokenizer, tokenizer_sha256(checkpoint)}, c);
  const std::optional<int64_t> start = document_start(c, tokenizer);
  RequestEncoder encoder(tokenizer, start, settings.bos);
  encode(&prompts, &encoder);

  const std::unique_ptr<Backend> backend = eval_backend(arguments, c);
  const Dtype activations = activation_dtype(arguments.precision.value_or(c.train.precision));
  check_lengths(prompts, *make_network(c.model, c.data.sequence_length, *backend, activations));
  const ParameterLayout layout(c.model, c.data.sequence_length);
  Arena arena;
  const Tensor masters = load_masters(checkpoint, layout, *backend, arena);
  const ProgressLine line;
  const std::vector<Likelihood> found = likelihoods(
      prompts.requests, {c.model, c.data.sequence_length, *backend, activations, masters}, start,
      TaskShare{}, [&](double share) { line.show(arguments.task, share); });
  line.clear();
  require_finite(prompts, found, checkpoint.folder);

  if (arguments.task == "requests") {
    const std::string lines = lines_of(prompts, found);
    if (arguments.output.empty()) {
      fmt::print("{}", lines);
      flush_standard_output();
    }
    write_output(arguments.output, lines);
    return 0;
  }
  ordered_json result = checkpoint_facts(checkpoint, c);
  result.update({{"tokenizer", tokenizer.sha256()},
                 {"task", prompts.task},
                 {"precision", name_of(activations)},
                 {"training_length", c.data.sequence_length}});
  if (arguments.task == "cloze") {
    result["scores"] = row_of(cloze_scores(found));
  } else {
    const std::vector<ChoiceAnswer> answers = answers_of(prompts, found);
    result["scores"] = row_of(choice_scores(answers), *prompts.format);
    for (const auto& [group, scores] : scores_by_group(answers)) {
      ordered_json row = {{"group", group}};
      row.update(row_of(scores, *prompts.format));
      result["groups"].push_back(std::move(row));
    }
  }
  // Printed first: numbers that took hours are not lost where no file takes them.
  print_scores(result);
  write_output(arguments.output, result.dump(2) + "\n");
  return 0;
}

}  // namespace bamtrain
