#include "run/task_measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "core/checked.h"
#include "data/task_values.h"
#include "dist/collective.h"
#include "eval/mean_json.h"
#include "eval/task_bleu.h"
#include "eval/task_scores.h"
#include "model/causal_lm.h"
#include "ops/host_copy.h"
#include "record/progress_line.h"
#include "record/run_files.h"
#include "record/run_text.h"
#include "train/metric_name.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

bool is_due(const TaskEvaluation& e, const RunConfig& c, int64_t step) {
  return e.every > 0 && (step % e.every == 0 || step == last_step(c.train));
}

TaskShare share_of(Communicator& comm) {
  TaskShare share{comm.rank(), comm.size()};
  if (comm.size() > 1) {
    share.sum = [&comm](double* values, int64_t n) { comm.sum(values, n); };
  }
  return share;
}

const Tensor kNoMasters;

/// An error of a task of texts, with the config key that caused it.
Error at_entry(const Error& e, const std::string& entry) {
  const std::string key = key_in_braces(e.where());
  return key.empty() ? e.with("requested by " + entry) : e.at(entry + "." + key);
}

}  // namespace

/// A result of an entry.
struct TaskMeasures::Part {
  std::string result;
  std::function<ordered_json(const ScoredModel&, TaskSet, const TaskShare&, const TaskProgress&)>
      score;
  int64_t length = 0;  // for a task that is trained
};

TaskMeasures::TaskMeasures(const RunConfig& config, Backend& backend) : config_(config) {
  const ScoredModel model = this->model(backend, kNoMasters);
  texts_.resize(config.eval.tasks.size());
  for (size_t i = 0; i < texts_.size(); ++i) {
    const std::string entry = fmt::format("eval.tasks[{}]", i);
    const auto* const of_texts = std::get_if<TextTaskRequest>(&config.eval.tasks[i].request);
    if (of_texts == nullptr) {
      try {
        check_task_request(std::get<TaskRequest>(config.eval.tasks[i].request), model);
      } catch (const Error& e) {
        throw e.as(ExitCode::config, entry, "change the entry");
      }
      continue;
    }
    check_causal_lm(config.model);
    const Tokenizer& tokenizer = this->tokenizer(i, of_texts->options.text("tokenizer"));
    try {
      texts_[i] = open_text_evaluation(*of_texts, {tokenizer, document_start(config, tokenizer)});
      for (size_t part = 0; part < texts_[i]->parts().size(); ++part) {
        texts_[i]->check(part, model);
      }
    } catch (const Error& e) {
      throw at_entry(e, entry);
    }
  }
}

const Tokenizer& TaskMeasures::tokenizer(size_t entry, const std::string& path) {
  std::unique_ptr<Tokenizer>& t = tokenizers_[path];
  if (!t) {
    const std::string sha256 = training_tokenizer_sha256(config_);
    const TokenizerSource source = {fmt::format("eval.tasks[{}].tokenizer", entry),
                                    training_tokenizer(config_, path, sha256),
                                    sha256,
                                    config_.out_dir,
                                    "",
                                    ExitCode::config};
    t = std::make_unique<Tokenizer>(open_tokenizer(source, config_));
  }
  return *t;
}

ScoredModel TaskMeasures::model(Backend& backend, const Tensor& master_weights) const {
  return {config_.model, config_.data.sequence_length, backend,
          activation_dtype(config_.train.precision), master_weights};
}

std::vector<TaskMeasures::Part> TaskMeasures::parts_of_entry(size_t entry) const {
  std::vector<Part> parts;
  if (const TextEvaluation* texts = texts_[entry].get()) {
    for (size_t i = 0; i < texts->parts().size(); ++i) {
      parts.push_back({texts->parts()[i].result,
                       [texts, i, entry](const ScoredModel& model, TaskSet set,
                                         const TaskShare& share, const TaskProgress& progress) {
                         try {
                           return texts->score(i, set, model, share, progress);
                         } catch (const Error& e) {
                           throw at_entry(e, fmt::format("eval.tasks[{}]", entry));
                         }
                       }});
    }
    return parts;
  }
  const auto& r = std::get<TaskRequest>(config_.eval.tasks[entry].request);
  for (const int64_t length : r.lengths) {
    parts.push_back({result_at(r.name, length),
                     [&r, length](const ScoredModel& model, TaskSet set, const TaskShare& share,
                                  const TaskProgress& progress) {
                       return score_task(r, length, set, model, share, progress);
                     },
                     length});
  }
  return parts;
}

bool TaskMeasures::due(int64_t step) const {
  const auto& tasks = config_.eval.tasks;
  return std::any_of(tasks.begin(), tasks.end(),
                     [&](const TaskEvaluation& e) { return is_due(e, config_, step); });
}

ordered_json TaskMeasures::measure(
    const Tensor& master_weights, Backend& beside, Communicator& comm, int64_t step,
    const std::function<TaskProgress(const std::string&)>& progress_of) const {
  ordered_json out = ordered_json::object();
  const ScoredModel model = this->model(beside, master_weights);
  for (size_t i = 0; i < texts_.size(); ++i) {
    if (!is_due(config_.eval.tasks[i], config_, step)) continue;
    for (const Part& part : parts_of_entry(i)) {
      ordered_json row =
          part.score(model, TaskSet::select, share_of(comm), progress_of(part.result));
      row.erase("answers");  // one per line of a file; results.json has them
      out[part.result] = std::move(row);
    }
  }
  return out;
}

void TaskMeasures::measure_at_end(Backend& backend, Communicator& comm, const std::string& folder,
                                  Results* results,
                                  const std::function<void(const std::string&)>& tell) const {
  const RunConfig& c = config_;
  const bool first = comm.rank() == 0;
  const ParameterLayout layout(c.model, c.data.sequence_length);
  Arena arena;
  Tensor master_weights;
  arena.add("weights.masters", &master_weights, backend.parameter_dtype(), {layout.elements()});
  std::string weights;  // their SHA-256
  int64_t step = 0;
  run_on_all_ranks(comm, [&] { arena.commit(backend.memory()); });
  {
    HostCopy host(backend, master_weights, HostCopy::Contents::undefined);
    run_on_rank_zero(comm, [&] {
      const Checkpoint checkpoint = open_checkpoint(folder);
      step = checkpoint.step;
      weights = checkpoint_files::verify_manifest(folder).at(checkpoint_files::kModel).sha256;
      read_tensors(SafetensorsFile::open(checkpoint.model_file()),
                   model_tensors(layout, host.tensor()));
    });
    if (comm.size() > 1) comm.broadcast(host.tensor().data, host.tensor().bytes(), 0);
    host.upload();
  }
  const ScoredModel model = this->model(backend, master_weights);
  const ProgressLine line(first);
  for (size_t i = 0; i < texts_.size(); ++i) {
    ordered_json of;  // the settings of the results, which rank 0 compares and writes
    run_on_rank_zero(comm, [&] {
      if (const TextEvaluation* texts = texts_[i].get()) {
        of = texts->facts();  // reads files
        of.update({{"samples", texts->samples()},
                   {"seed", texts->request().seed},
                   {"tokenizer", texts->ids().tokenizer.sha256()}});
      } else {
        of = request_values(c.eval.tasks[i].trained());
      }
      of.update({{"precision", computed_in(c.train.precision)}, {"weights", weights}});
    });
    for (const Part& part : parts_of_entry(i)) {
      const bool known = comm.any(first && results->has(part.result, of));
      if (known) continue;
      ordered_json row =
          part.score(model, TaskSet::test, share_of(comm), line.progress(part.result));
      const auto* const trained = std::get_if<TaskRequest>(&c.eval.tasks[i].request);
      if (trained != nullptr && trained->bleu) {
        const HostCopy host(backend, master_weights, HostCopy::Contents::downloaded);
        put_number(&row, "bleu",
                   task_bleu(*trained, part.length, c.model, c.data.sequence_length, host.tensor(),
                             share_of(comm)),
                   std::nullopt);
      }
      run_on_rank_zero(comm, [&] {
        line.clear();
        tell(fmt::format("{} of step {}:{}\n", part.result, step, numbers_line(row)));
        row["step"] = step;
        row["of"] = of;
        results->set(part.result, std::move(row));
        results->write();
      });
    }
  }
}

int64_t TaskMeasures::bytes(size_t entry, const ScoredModel& model) const {
  const TextEvaluation* const texts = texts_[entry].get();
  if (texts == nullptr) return task_scores_bytes(config_.eval.tasks[entry].trained(), model);
  int64_t most = 0;
  for (size_t part = 0; part < texts->parts().size(); ++part) {
    most = std::max(most, texts->bytes(part, model));
  }
  return most;
}

namespace {

/// Runs f, whose errors concern the memory of an entry.
template <class F>
void of_entry(size_t entry, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    throw e.as(ExitCode::device, fmt::format("memory of eval.tasks[{}]", entry),
               "leave its longest texts out, or lower its samples");
  }
}

}  // namespace

TaskMeasures::Memory TaskMeasures::memory(Backend& backend) const {
  Memory m;
  const ScoredModel model = this->model(backend, kNoMasters);
  const int64_t master_weights =
      ParameterLayout(config_.model, config_.data.sequence_length).elements() *
      static_cast<int64_t>(size_of(backend.parameter_dtype()));
  for (size_t i = 0; i < texts_.size(); ++i) {
    of_entry(i, [&] {
      const int64_t bytes = this->bytes(i, model);
      if (config_.eval.tasks[i].every > 0) m.beside = std::max(m.beside, bytes);
      m.of_entries.push_back(checked_add(bytes, master_weights, "memory"));
      m.after = std::max(m.after, m.of_entries.back());
    });
  }
  return m;
}

void TaskMeasures::check_fits(const Memory& memory, Backend& backend) {
  for (size_t i = 0; i < memory.of_entries.size(); ++i) {
    of_entry(i, [&] { backend.memory().check_fits(memory.of_entries[i]); });
  }
}

std::vector<Fact> TaskMeasures::facts() const {
  std::vector<Fact> facts;
  for (size_t i = 0; i < texts_.size(); ++i) {
    if (!texts_[i]) continue;
    ordered_json of = texts_[i]->facts();
    of["tokenizer"] = texts_[i]->ids().tokenizer.sha256();
    facts.push_back({fmt::format("eval.tasks[{}]", i), of.dump(), ExitCode::data,
                     "give every process the same files"});
  }
  return facts;
}

std::string numbers_line(const ordered_json& row) {
  std::string line;
  for (const auto& [name, value] : row.items()) {
    if (!row.contains(name + "_error")) continue;
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    if (!value.is_number() || !std::isfinite(value.get<double>())) {
      line += fmt::format(" {} not finite", words);
      continue;
    }
    const ordered_json& error = row[name + "_error"];
    line += fmt::format(" {} {:.4f}{}", words, value.get<double>(),
                        error.is_null() ? "" : plus_minus(error.get<double>(), 4));
  }
  return line;
}

}  // namespace bamtrain
