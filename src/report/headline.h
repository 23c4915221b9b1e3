#pragma once
// The first words of a report: how each run extrapolates, or else the loss that it has reached.

#include <string>

#include "report/report.h"

namespace bamtrain {

/// More runs are named by the lowest and the highest of them.
inline constexpr size_t kMostNamed = 8;

/// "rope: +55 % at 16x; bam: +3.1 %": the change of perplexity from the training length to the
/// longest measured length, a multiple of it. The protocol is that of each window's last tokens if
/// all evaluated runs have it at these lengths, else that of whole windows. Runs that differ only
/// in their seed are one: both perplexities are exp of a mean loss. A run without these lengths has
/// its last validation loss, else its last smoothed loss, with the step. As text, not HTML.
std::string headline(const Runs& runs);

/// The sentence that says what the changes in the headline are; "" if there are none.
std::string headline_note(const Runs& runs);

}  // namespace bamtrain
