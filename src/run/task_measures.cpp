#include "run/task_measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "data/task_values.h"
#include "dist/together.h"
#include "eval/task_bleu.h"
#include "eval/task_scores.h"
#include "ops/host_copy.h"
#include "record/run_files.h"
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
    share.sum = [&comm](double* values, int64_t n) { comm.all_reduce_sum(values, n); };
  }
  return share;
}

const Tensor kNoMasters;

/// To plan with.
ScoredModel model_of(const RunConfig& c, Backend& backend, const Tensor& masters = kNoMasters) {
  return {c.model, c.data.sequence_length, backend, activation_dtype(c.train.precision), masters};
}

std::string with_error(const ordered_json& row, const char* name) {
  if (row[name].is_null() || !std::isfinite(row[name].get<double>())) return "not finite";
  const ordered_json& error = row[std::string(name) + "_error"];
  return fmt::format("{:.4f}{}", row[name].get<double>(),
                     error.is_null() ? "" : plus_minus(error.get<double>(), 4));
}

}  // namespace

bool tasks_due(const RunConfig& c, int64_t step) {
  return std::any_of(c.eval.tasks.begin(), c.eval.tasks.end(),
                     [&](const TaskEvaluation& e) { return is_due(e, c, step); });
}

ordered_json measure_tasks(const Trainer& trainer, Backend& beside, const RunConfig& c,
                           Communicator& comm, int64_t step) {
  ordered_json out = ordered_json::object();
  const ScoredModel model = model_of(c, beside, trainer.masters());
  for (const TaskEvaluation& e : c.eval.tasks) {
    if (!is_due(e, c, step)) continue;
    for (const int64_t length : e.request.lengths) {
      out[result_at(e.request.name, length)] =
          score_task(e.request, length, TaskSet::select, model, share_of(comm), [](double) {});
    }
  }
  return out;
}

void measure_tasks_at_end(const RunConfig& c, Backend& backend, Communicator& comm,
                          const std::string& folder, Results* results,
                          const std::function<void(const std::string&)>& tell) {
  const bool first = comm.rank() == 0;
  const ParameterLayout layout(c.model, c.data.sequence_length);
  Arena arena;
  Tensor masters;
  arena.add("weights.masters", &masters, backend.parameter_dtype(), {layout.elements()});
  std::string weights;  // what identifies them
  int64_t step = 0;
  together(comm, [&] { arena.commit(backend.memory()); });
  {
    HostCopy host(backend, masters, HostCopy::Contents::undefined);
    on_first_rank(comm, [&] {
      const Checkpoint checkpoint = open_checkpoint(folder);
      step = checkpoint.step;
      weights = checkpoint_files::verify_manifest(folder).at(checkpoint_files::kModel).sha256;
      read_tensors(SafetensorsFile::open(checkpoint.model_file()),
                   model_tensors(layout, host.tensor()));
    });
    if (comm.size() > 1) comm.broadcast(host.tensor().data, host.tensor().bytes(), 0);
    host.upload();
  }
  const ScoredModel model = model_of(c, backend, masters);
  for (const TaskEvaluation& e : c.eval.tasks) {
    const TaskRequest& r = e.request;
    ordered_json of = request_values(r);
    of.update({{"precision", name_of(model.activations)}, {"weights", weights}});
    for (const int64_t length : r.lengths) {
      const std::string name = result_at(r.name, length);
      const bool known = comm.any(first && results->has(name, of));
      if (known) continue;
      ordered_json row = score_task(r, length, TaskSet::test, model, share_of(comm), [](double) {});
      std::string bleu;
      if (r.bleu) {
        const HostCopy host(backend, masters, HostCopy::Contents::downloaded);
        row["bleu"] =
            task_bleu(r, length, c.model, c.data.sequence_length, host.tensor(), share_of(comm));
        bleu = fmt::format(" bleu {:.4f}", row["bleu"].get<double>());
      }
      on_first_rank(comm, [&] {
        tell(fmt::format("{} of step {}: exact match {} accuracy {} loss {}{}\n", name, step,
                         with_error(row, "exact_match"), with_error(row, "accuracy"),
                         with_error(row, "loss"), bleu));
        row["step"] = step;
        row["of"] = of;
        results->set(name, std::move(row));
        results->write();
      });
    }
  }
}

TaskMemory task_memory(const RunConfig& c, Backend& backend) {
  TaskMemory m;
  for (const TaskEvaluation& e : c.eval.tasks) {
    const int64_t bytes = task_scores_bytes(e.request, model_of(c, backend));
    if (e.every > 0) m.beside = std::max(m.beside, bytes);
    m.after = std::max(m.after, bytes);
  }
  if (m.after > 0) {
    m.after += ParameterLayout(c.model, c.data.sequence_length).elements() *
               static_cast<int64_t>(size_of(backend.parameter_dtype()));
  }
  return m;
}

void check_tasks(const RunConfig& c, Backend& backend) {
  for (size_t i = 0; i < c.eval.tasks.size(); ++i) {
    try {
      check_task_request(c.eval.tasks[i].request, model_of(c, backend));
    } catch (const Error& e) {
      throw e.as(ExitCode::config, fmt::format("eval.tasks[{}]", i), "change the entry");
    }
  }
}

}  // namespace bamtrain
