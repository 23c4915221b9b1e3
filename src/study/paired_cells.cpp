#include "study/paired_cells.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/holm.h"
#include "core/json.h"
#include "train/metric_name.h"

namespace bamtrain {

namespace {

/// Whether both runs read the same batches in the same order.
bool share_data_order(const StudyRun& a, const StudyRun& b) {
  if (a.inputs.training != b.inputs.training) return false;
  for (const char* key : {"seed", "data.train", "data.sequence_length", "data.shuffle",
                          "data.document_start", "train.tokens_per_step"}) {
    const nlohmann::json *const x = find_value(a.resolved, key), *const y =
                                                                     find_value(b.resolved, key);
    if ((x == nullptr) != (y == nullptr) || (x != nullptr && *x != *y)) return false;
  }
  return true;
}

/// The row of a result that gave the metric "last@512/perplexity"; null if there is none, or the
/// result is another than the metric's.
const LengthPerplexity* row_of(const std::optional<PerplexityResult>& result,
                               const std::string& metric, double value) {
  if (!result) return nullptr;
  const std::string number = metric.substr(metric.rfind('/') + 1);
  for (const auto& [protocol, rows] :
       {std::pair("windows", &result->windows), std::pair("last", &result->last)}) {
    for (const LengthPerplexity& row : *rows) {
      if (metric != result_at(protocol, row.length) + "/" + number) continue;
      return value == (number == "loss" ? row.loss : row.perplexity) ? &row : nullptr;
    }
  }
  return nullptr;
}

/// Whether the metric is a loss or perplexity against length, which documents pair.
bool is_perplexity_by_length(const std::string& metric) {
  const bool of_lengths =
      std::any_of(kPerplexityResults.begin(), kPerplexityResults.end(),
                  [&](const std::string& protocol) { return metric.starts_with(protocol + "@"); });
  return of_lengths && (metric.ends_with("/loss") || metric.ends_with("/perplexity"));
}

}  // namespace

bool PairedCell::is_significant() const { return p_holm && *p_holm < kSignificance; }

std::optional<PairedCell> PairedCells::cell(const std::vector<const DoneRun*>& row,
                                            const std::vector<const DoneRun*>& reference,
                                            const std::string& metric) {
  std::vector<double> values, others;
  for (const DoneRun* const d : row) {
    const auto other = std::find_if(reference.begin(), reference.end(), [&](const DoneRun* r) {
      return r->run->repeats == d->run->repeats && share_data_order(*r->run, *d->run);
    });
    if (other == reference.end()) continue;
    const auto a = d->results.metric(metric), b = (*other)->results.metric(metric);
    if (!a || !b) continue;
    values.push_back(a->value);
    others.push_back(b->value);
  }
  if (values.size() > 1) {
    return PairedCell{paired_difference(std::span<const double>(values), others), false, {}};
  }
  if (row.size() != 1 || reference.size() != 1 || !is_perplexity_by_length(metric)) {
    return std::nullopt;
  }
  return by_document(*row[0], *reference[0], metric);
}

std::optional<PairedCell> PairedCells::by_document(const DoneRun& run, const DoneRun& reference,
                                                   const std::string& metric) {
  const LengthPerplexity* rows[2];
  const DoneRun* const runs[] = {&run, &reference};
  for (size_t i = 0; i < 2; ++i) {
    const auto value = runs[i]->results.metric(metric);
    if (!value) return std::nullopt;
    rows[i] = row_of(perplexity(*runs[i]), metric, value->value);
    if (rows[i] != nullptr && !rows[i]->targets.empty()) continue;
    note(runs[i]->run->row, "its perplexity.json lacks the sums by document of these results");
    return std::nullopt;
  }
  if (!have_same_targets(*rows[0], *rows[1])) {
    note(run.run->row, "it scores other targets than " + reference.run->row);
    return std::nullopt;
  }
  const std::vector<Cluster>&a = rows[0]->clusters, &b = rows[1]->clusters;
  return PairedCell{
      metric.ends_with("/loss") ? paired_difference(a, b) : paired_difference_of_exp(a, b),
      true,
      {}};
}

const std::optional<PerplexityResult>& PairedCells::perplexity(const DoneRun& run) {
  const auto [at, is_new] = perplexities_.emplace(run.run->folder, std::nullopt);
  const std::string path = run.run->folder + "/perplexity.json";
  std::error_code ignored;
  if (!is_new || !std::filesystem::exists(path, ignored)) return at->second;
  try {
    at->second = read_perplexity(perplexity_json(path), path);
  } catch (const Error& e) {  // means over seeds need no such file
    note(run.run->row, e.what());
  }
  return at->second;
}

void PairedCells::note(const std::string& row, const std::string& why) {
  const bool noted = std::any_of(notes_.begin(), notes_.end(),
                                 [&](const std::string& n) { return n.starts_with(row + ": "); });
  if (!noted) notes_.push_back(row + ": " + why);
}

}  // namespace bamtrain
