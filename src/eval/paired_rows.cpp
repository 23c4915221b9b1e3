#include "eval/paired_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/holm.h"
#include "core/paired_difference.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

ordered_json number_or_null(const std::optional<double>& x) {
  return x ? ordered_json(*x) : ordered_json();
}

}  // namespace

void PairedRows::add(const std::string& protocol, size_t row, std::string targets,
                     std::vector<Cluster> clusters) {
  std::erase_if(clusters, [](const Cluster& c) { return c.count == 0; });
  const bool finite = std::all_of(clusters.begin(), clusters.end(),
                                  [](const Cluster& c) { return std::isfinite(c.sum); });
  if (finite) rows_.push_back({protocol, row, std::move(targets), std::move(clusters)});
}

void PairedRows::write(int64_t training_length, ordered_json* result) const {
  for (const char* protocol : {"windows", "last"}) {
    write_differences(protocol, training_length, result);
  }
  write_sums(result);
}

void PairedRows::write_differences(const std::string& protocol, int64_t training_length,
                                   ordered_json* result) const {
  const auto length_of = [&](const Row& r) { return (*result)[protocol][r.row]["length"]; };
  const auto baseline = std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) {
    return r.protocol == protocol && length_of(r) == training_length;
  });
  if (baseline == rows_.end()) return;
  std::vector<std::pair<size_t, PairedDifference>> losses, perplexities;  // by place of the row
  std::vector<std::optional<double>> p;
  for (const Row& r : rows_) {
    if (r.protocol != protocol || r.row == baseline->row || r.targets != baseline->targets)
      continue;
    losses.emplace_back(r.row, paired_difference(r.clusters, baseline->clusters));
    perplexities.emplace_back(r.row, paired_difference_of_exp(r.clusters, baseline->clusters));
    p.push_back(losses.back().second.p);
  }
  const std::vector<std::optional<double>> corrected = holm(p);
  for (size_t i = 0; i < losses.size(); ++i) {
    const PairedDifference &loss = losses[i].second, &perplexity = perplexities[i].second;
    (*result)[protocol][losses[i].first]["difference"] = {
        {"from_length", training_length},
        {"loss", loss.value},
        {"loss_error", number_or_null(loss.error)},
        {"perplexity", perplexity.value},
        {"perplexity_error", number_or_null(perplexity.error)},
        {"p", number_or_null(loss.p)},
        {"p_holm", number_or_null(corrected[i])}};
  }
}

void PairedRows::write_sums(ordered_json* result) const {
  size_t all = 0;
  for (const Row& r : rows_) all += r.clusters.size();
  if (all > kMostSums) return;
  ordered_json counts = ordered_json::object();
  for (const Row& r : rows_) {
    std::string sums, numbers;
    for (const Cluster& c : r.clusters) {
      sums += fmt::format("{}{}", sums.empty() ? "" : " ", c.sum);
      numbers += fmt::format("{}{}", numbers.empty() ? "" : " ", c.count);
    }
    ordered_json& row = (*result)[r.protocol][r.row];
    row["targets"] = r.targets;
    row["sums"] = std::move(sums);
    counts[r.targets] = std::move(numbers);
  }
  if (!counts.empty()) (*result)["target_counts"] = std::move(counts);
}

}  // namespace bamtrain
