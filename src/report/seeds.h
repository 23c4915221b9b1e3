#pragma once
// Groups runs that differ only in their seed.

#include <string>
#include <vector>

#include "report/chart.h"
#include "report/report.h"

namespace bamtrain {

struct SeedGroup {
  std::string name;  // unique
  std::vector<size_t> runs;
};

/// All runs, each in one group, ordered by each group's first run. A group has one recipe and
/// different seeds. Its evaluated runs also share the step, the data and the number of last tokens.
/// A group of several runs is named by the common part of their names.
std::vector<SeedGroup> seed_groups(const Runs& runs);

/// Merges `chart` of the runs, whose series have their run's index as style, to one line per group,
/// with the group's index as style. Points are the means where each run of the group has a value;
/// the spread is their standard deviation (n - 1) to both sides. If chart.of_losses, both are
/// computed on the losses, so a perplexity is exp(mean - deviation), exp(mean), exp(mean +
/// deviation). Lines with a measured x and points without a line remain, in the group's style and
/// name. Bars show differences from the first run only if it is alone in its group. Names state the
/// number of seeds: "bam (3 seeds)". A faint line has no spread.
Chart with_seeds(const Chart& chart, const Runs& runs, const std::vector<SeedGroup>& groups);

}  // namespace bamtrain
