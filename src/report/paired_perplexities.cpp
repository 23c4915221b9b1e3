#include "report/paired_perplexities.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/holm.h"
#include "core/join.h"

namespace bamtrain {

namespace {

constexpr const char* kNoSums = "no sums by document, as in older files: evaluate again";

const LengthPerplexity* row_at(const std::vector<LengthPerplexity>& rows, int64_t length) {
  const auto at = std::find_if(rows.begin(), rows.end(),
                               [&](const LengthPerplexity& row) { return row.length == length; });
  return at == rows.end() ? nullptr : &*at;
}

bool has_sums(const std::vector<LengthPerplexity>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const LengthPerplexity& row) { return !row.targets.empty(); });
}

}  // namespace

bool PerplexityDifference::is_significant() const { return p_holm && *p_holm < kSignificance; }

PairedPerplexities::PairedPerplexities(const Runs& runs, Rows rows) {
  if (rows == &PerplexityResult::positions) return;  // means without sums by document
  std::vector<size_t> evaluated;
  for (size_t n = 0; n < runs.size(); ++n) {
    const auto& result = runs[n].record->perplexity;
    if (result && !((*result).*rows).empty()) evaluated.push_back(n);
  }
  const bool by_length = rows == &PerplexityResult::windows || rows == &PerplexityResult::last;
  if (evaluated.size() > 1) {
    pair_runs(runs, rows);
  } else if (evaluated.size() == 1 && runs.size() == 1 && by_length) {
    pair_lengths(runs[0], rows);
  }
}

const PerplexityDifference* PairedPerplexities::of(size_t run, const LengthPerplexity& row) const {
  const auto at = differences_.find({run, row.length});
  return at == differences_.end() ? nullptr : &at->second;
}

void PairedPerplexities::pair_runs(const Runs& runs, Rows rows) {
  const PerplexityResult* first = nullptr;
  std::map<int64_t, std::vector<std::pair<size_t, int64_t>>> columns;  // by length
  std::vector<std::string> unpaired;
  for (size_t n = 0; n < runs.size(); ++n) {
    const auto& result = runs[n].record->perplexity;
    if (!result || ((*result).*rows).empty()) continue;
    if (first == nullptr) {
      first = &*result;
      baseline_ = runs[n].name;
      if (!has_sums(first->*rows)) unpaired.push_back(fmt::format("{} ({})", baseline_, kNoSums));
      continue;
    }
    bool any = false;
    for (const LengthPerplexity& row : (*result).*rows) {
      const LengthPerplexity* const other = row_at(first->*rows, row.length);
      if (other == nullptr || result->data_fingerprint != first->data_fingerprint ||
          !have_same_targets(row, *other)) {
        continue;
      }
      any = true;
      differences_[{n, row.length}] = {paired_difference_of_exp(row.clusters, other->clusters),
                                       std::nullopt};
      columns[row.length].emplace_back(n, row.length);
    }
    if (any) continue;
    if (!has_sums((*result).*rows)) {
      unpaired.push_back(fmt::format("{} ({})", runs[n].name, kNoSums));
    } else if (has_sums(first->*rows)) {
      unpaired.push_back(runs[n].name + " (other targets)");
    }
  }
  for (const auto& [length, column] : columns) correct(column);
  if (unpaired.empty()) return;
  notes_.push_back("No paired difference from " + baseline_ + ": " + join(unpaired, "; ") + ".");
}

void PairedPerplexities::pair_lengths(const ReportedRun& run, Rows rows) {
  const PerplexityResult& result = *run.record->perplexity;
  const std::vector<LengthPerplexity>& all = result.*rows;
  if (all.size() < 2) return;
  baseline_ = fmt::format("length {}", result.training_length);
  const LengthPerplexity* const trained = row_at(all, result.training_length);
  if (trained == nullptr) {
    notes_.push_back(
        fmt::format("No differences between lengths: the training length, {}, is not among them.",
                    result.training_length));
    return;
  }
  std::vector<std::pair<size_t, int64_t>> family;
  for (const LengthPerplexity& row : all) {
    if (&row == trained || !have_same_targets(row, *trained)) continue;
    differences_[{0, row.length}] = {paired_difference_of_exp(row.clusters, trained->clusters),
                                     std::nullopt};
    family.emplace_back(0, row.length);
  }
  correct(family);
  if (family.size() + 1 == all.size()) return;
  notes_.push_back(
      has_sums(all)
          ? fmt::format("Lengths without a difference score other targets than {}: they are not "
                        "comparable.",
                        baseline_)
          : fmt::format("No differences between lengths: {}.", kNoSums));
}

void PairedPerplexities::correct(const std::vector<std::pair<size_t, int64_t>>& family) {
  std::vector<std::optional<double>> p;
  for (const auto& key : family) p.push_back(differences_.at(key).difference.p);
  const std::vector<std::optional<double>> corrected = holm(p);
  for (size_t i = 0; i < family.size(); ++i) differences_.at(family[i]).p_holm = corrected[i];
}

}  // namespace bamtrain
