#include "report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/faults.h"
#include "report/section.h"
#include "report/seeds.h"

namespace bamtrain {

namespace {

constexpr const char* kEvaluate =
    "bamtrain eval --checkpoint RUN/checkpoint-NNNNNNNN --lengths ... --output "
    "RUN/perplexity.json, "
    "or eval.lengths in the config of the next run";
constexpr const char* kBinsRemedy =
    "run bamtrain eval with a length above 1,024 in --lengths, --output RUN/perplexity.json";
constexpr const char* kPositionsRemedy =
    "run bamtrain eval --positions ... --output RUN/perplexity.json";
constexpr const char* kShortRemedy = "run bamtrain eval --text short --output RUN/perplexity.json";
constexpr const char* kTrain = "let the run log its first step, or name other runs";
constexpr const char* kValidate = "set data.val and eval.every in the config of the next run";
constexpr const char* kTask =
    "set a task in data.val, and eval.every, in the config of the next run";
constexpr const char* kAttention =
    "set data.val, and eval.attention above 0, in the config of the next run";

struct FixedChart {
  const char *name, *lacks, *remedy;
};

// All charts whose names do not depend on the runs.
constexpr FixedChart kFixed[] = {
    {"perplexity", "perplexity of windows", kEvaluate},
    {"perplexity-last", "perplexity of last tokens", kEvaluate},
    {"perplexity-bins", "perplexity by position, in two bins or more", kBinsRemedy},
    {"perplexity-positions", "perplexity of each position", kPositionsRemedy},
    {"perplexity-short", "perplexity of whole documents", kShortRemedy},
    {"loss", "logged losses", kTrain},
    {"validation-loss", "validation losses", kValidate},
    {"accuracy", "validation passes of a task", kTask},
    {"exact-match", "validation passes of a task", kTask},
    {"loss-time", "logged losses", kTrain},
    {"gradient-norm", "logged gradient norms", kTrain},
    {"learning-rate", "logged learning rates", kTrain},
    {"tokens-per-second", "logged rates", kTrain},
    {"matrix-rate", "logged MFU (share of the measured peak)",
     "lower log.every so that a line follows the measurement, or name other runs"},
    {"data-wait", "logged waits for data", kTrain},
    {"attention-entropy", "records of attention", kAttention},
    {"attention-support", "records of attention", kAttention},
    {"attention-live-tiles", "records of nonzero blocks", kAttention},
    {"bam-parameters", "parameters of the prior bam", "name runs with the prior bam"},
};

std::string list_of(const std::vector<NamedChart>& charts) {
  std::string out;
  for (const NamedChart& c : charts) out += (out.empty() ? "" : ", ") + c.name;
  return out.empty() ? "no figures" : out;
}

}  // namespace

std::vector<NamedChart> charts_of(const Runs& runs) {
  std::vector<NamedChart> out;
  std::set<std::string> names;
  for (const auto& of :
       {perplexity_charts, task_charts, training_charts, attention_charts, mechanism_charts}) {
    for (NamedChart& c : of(runs)) {
      if (!has_points(c.chart)) continue;
      const std::string name = c.name;
      for (int n = 2; !names.insert(c.name).second; ++n) c.name = fmt::format("{}-{}", name, n);
      out.push_back(std::move(c));
    }
  }
  return out;
}

std::vector<std::string> fixed_chart_names() {
  std::vector<std::string> out;
  for (const FixedChart& f : kFixed) out.emplace_back(f.name);
  return out;
}

Chart chart_of(const Runs& runs, const std::string& name) {
  std::vector<NamedChart> charts = charts_of(runs);
  const auto at = std::find_if(charts.begin(), charts.end(),
                               [&](const NamedChart& c) { return c.name == name; });
  if (at != charts.end()) return with_seeds(at->chart, runs, seed_groups(runs));
  for (const FixedChart& f : kFixed) {
    if (name != f.name) continue;
    throw Error::fault(
        ExitCode::usage, "--figure " + name,
        fmt::format("these runs have no {} (they have {})", f.lacks, list_of(charts)), f.remedy);
  }
  std::vector<std::string> known;
  for (const NamedChart& c : charts) known.push_back(c.name);
  throw unknown_name(ExitCode::usage, "--figure", "figure", name, known,
                     "these runs have " + list_of(charts));
}

}  // namespace bamtrain
