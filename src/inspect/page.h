#pragma once
// An inspection as a page that a person reads: report/page.h.

#include <string>
#include <utility>
#include <vector>

#include "inspect/inspection.h"
#include "report/run.h"

namespace bamtrain {

struct InspectedModel {
  std::string name;  // of the checkpoint
  std::vector<std::pair<std::string, std::string>> facts;
  std::string prompt;               // as it is shown, in UTF-8
  std::vector<std::string> tokens;  // what each of its own is called
  MechanismValues parameters;       // of the model's mechanisms, by name
};

std::string inspection_html(const InspectedModel& model, const InspectionRequest& request,
                            const Inspection& found);

/// The maps of a page take this many bytes together at most: theirs are means over larger blocks
/// where there are many.
inline constexpr int64_t kMostMapBytes = int64_t{12} << 20;

}  // namespace bamtrain
