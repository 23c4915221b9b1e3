#pragma once
// Runs that differ in their seed alone, as one.

#include <string>
#include <vector>

#include "report/chart.h"
#include "report/report.h"

namespace bamtrain {

struct SeedGroup {
  std::string name;  // different for each group
  std::vector<size_t> runs;
};

/// All runs, each in one group, by its first one's place. Together are those of one recipe and
/// different seeds; of those that were evaluated, at the same step, on the same data, by the same
/// number of last tokens. A group of several is called by what its names have in common.
std::vector<SeedGroup> seed_groups(const Runs& runs);

/// `chart` of the runs (a series' style is its run's place) with one line for each group, whose
/// style is the group's place. Its points are the means where each of its runs has a value, its
/// spread their standard deviation (n - 1) to both sides: of the losses where the chart is of
/// those, so that a perplexity is exp(mean - deviation), exp(mean), exp(mean + deviation). Lines
/// with a measured x and points without a line stay as they are, in the group's style and name. A
/// name says of how many seeds: "bam (3 seeds)"; a faint line has no spread.
Chart with_seeds(const Chart& chart, const Runs& runs, const std::vector<SeedGroup>& groups);

}  // namespace bamtrain
