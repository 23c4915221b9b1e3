#include "commands/retrieval.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "commands/eval_result.h"
#include "commands/load_checkpoint.h"
#include "core/clustered_mean.h"
#include "core/utf8.h"
#include "eval/retrieval_scores.h"
#include "model/causal_lm.h"
#include "model/incremental_decoder.h"
#include "prompts/ruler.h"
#include "record/run_data.h"
#include "record/run_files.h"
#include "record/run_text.h"
#include "report/heat_map.h"
#include "report/retrieval_maps.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

/// "exact match" for "exact_match".
std::string in_words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

void print_retrieval_row(const ordered_json& row, const std::vector<std::string>& names) {
  const ordered_json& tokens = row["tokens"];
  std::string line =
      row.contains("length") ? fmt::format("length {:>7} ", row["length"].get<int64_t>()) : "";
  line += fmt::format("{:>9.{}f} tokens", tokens.get<double>(), tokens.is_number_integer() ? 0 : 1);
  for (const std::string& name : names) {
    const ordered_json& error = row[name + "_error"];
    line += fmt::format("  {} {:.4f}{}", in_words(name), row[name].get<double>(),
                        error.is_null() ? "" : plus_minus(error.get<double>(), 4));
  }
  fmt::print("  {}\n", line);
}

}  // namespace

// --- the model ----------------------------------------------------------------------------------

RetrievalModel::RetrievalModel(const EvalArguments& arguments, const std::string& tokenizer,
                               bool writes)
    : checkpoint_(load_checkpoint(arguments.checkpoint)),
      config_(trained_config(checkpoint_, arguments.overrides)) {
  check_causal_lm(config_.model);
  if (writes) check_incremental_decoding(config_.model);
  const std::string sha256 = tokenizer_sha256(checkpoint_);
  tokenizer_ = std::make_unique<Tokenizer>(
      open_tokenizer({"--task-set tokenizer", training_tokenizer(config_, tokenizer, sha256),
                      sha256, run_folder(checkpoint_)},
                     config_));
  document_start_ = bamtrain::document_start(config_, *tokenizer_);
  backend_ = eval_backend(arguments, config_);
  precision_ = arguments.precision.value_or(config_.train.precision);
}

void RetrievalModel::check_memory(int64_t bytes) const {
  bamtrain::check_memory(backend_->memory(), {config_.model, config_.data.sequence_length}, bytes,
                         "memory of the model and its KV cache (--lengths)",
                         "lower --samples, or leave the longest out");
}

void RetrievalModel::load() {
  const ParameterLayout layout(config_.model, config_.data.sequence_length);
  master_weights_ = load_master_weights(checkpoint_, layout, *backend_, arena_);
}

ordered_json RetrievalModel::facts(const ordered_json& task, int64_t samples, uint64_t seed) const {
  ordered_json facts = checkpoint_facts(checkpoint_, config_);
  facts.update({{"tokenizer", tokenizer_->sha256()},
                {"task", task},
                {"samples", samples},
                {"seed", seed},
                {"precision", computed_in(precision_)},
                {"training_length", config_.data.sequence_length}});
  return facts;
}

// --- the result ---------------------------------------------------------------------------------

RetrievalResult::RetrievalResult(const std::string& output, ordered_json facts,
                                 std::vector<TextTaskPart> parts, std::vector<std::string> names,
                                 int64_t depths)
    : output_(output),
      facts_(std::move(facts)),
      parts_(std::move(parts)),
      names_(std::move(names)),
      depths_(depths) {
  check_output(output_);
  for (const TextTaskPart& p : parts_) {
    if (std::find(tasks_.begin(), tasks_.end(), p.task) == tasks_.end()) tasks_.push_back(p.task);
  }
  for (ordered_json& row : rows_before(output_, facts_, {"scores", "depths"})) {
    if (!is_retrieval_row(row, names_, depths_) || !row.value("task", ordered_json()).is_string() ||
        !row.value("tokens", ordered_json()).is_number()) {
      continue;
    }
    const auto length = row.find("length");
    if (length != row.end() && !is_row_length(*length)) continue;
    const auto task = row["task"].get<std::string>();
    if (std::find(tasks_.begin(), tasks_.end(), task) == tasks_.end()) {
      if (!is_ruler_task(task)) continue;
      tasks_.push_back(task);  // from an earlier call with other tasks
    }
    const Place place =
        place_of(task, length == row.end() ? std::nullopt : std::optional(length->get<int64_t>()));
    rows_[place] = std::move(row);
  }
}

RetrievalResult::Place RetrievalResult::place_of(const std::string& task,
                                                 std::optional<int64_t> length) const {
  const auto found = std::find(tasks_.begin(), tasks_.end(), task);
  return {static_cast<size_t>(found - tasks_.begin()), length};
}

void RetrievalResult::put(size_t part, const ordered_json& scores) {
  const TextTaskPart& p = parts_[part];
  ordered_json row = {{"task", p.task}};
  if (p.length) row["length"] = *p.length;
  row.update(scores);
  rows_[place_of(part)] = std::move(row);
  write();
}

ordered_json RetrievalResult::whole() const {
  ordered_json result = facts_;
  std::vector<std::vector<ordered_json>> of_tasks(tasks_.size());
  result["scores"] = ordered_json::array();
  for (const auto& [place, row] : rows_) {
    result["scores"].push_back(row);
    of_tasks[place.first].push_back(row);
  }
  if (depths_ == 0) return result;
  result["depths"] = ordered_json::array();
  for (size_t task = 0; task < tasks_.size(); ++task) {
    if (of_tasks[task].empty()) continue;
    for (const ordered_json& cell : depth_means(of_tasks[task], names_)) {
      ordered_json mean = {{"task", tasks_[task]}};
      mean.update(cell);
      result["depths"].push_back(std::move(mean));
    }
  }
  return result;
}

void RetrievalResult::write() const {
  if (!output_.empty()) write_result(output_, whole());
}

TaskProgress RetrievalResult::progress(size_t part) const {
  const TextTaskPart& p = parts_[part];
  const std::string what =
      printable(p.task) + (p.length ? fmt::format(" at {}", *p.length) : std::string());
  return line_.progress(what);
}

void RetrievalResult::finish() {
  write();
  line_.clear();
  print();
}

void RetrievalResult::print() const {
  const auto samples = facts_["samples"].get<int64_t>();
  const std::string prompts =
      fmt::format("{} {}{}", samples, samples == 1 ? "prompt" : "prompts",
                  depths_ > 0 ? fmt::format(" at each of {} depths", depths_) : "");
  const std::vector<HeatMap> maps =
      retrieval_maps(nlohmann::json::parse(whole().dump()), {"the result", ExitCode::internal, ""});
  for (size_t task = 0; task < tasks_.size(); ++task) {
    fmt::print("{}, {}\n", printable(tasks_[task]), prompts);
    for (const auto& [place, row] : rows_) {
      if (place.first == task) print_retrieval_row(row, names_);
    }
    if (depths_ > 0) fmt::print("{}", terminal_heat_map(maps[task]));
  }
  fmt::print("±: standard error over prompts; seed variance not included\n");
}

}  // namespace bamtrain
