#pragma once
// An inspection as an HTML page (report/page.h).

#include <string>
#include <utility>
#include <vector>

#include "inspect/inspection.h"
#include "report/run.h"

namespace bamtrain {

struct InspectedModel {
  std::string name;  // the checkpoint's name
  std::vector<std::pair<std::string, std::string>> facts;
  std::string prompt;               // as displayed, in UTF-8
  std::vector<std::string> tokens;  // display names of the prompt's tokens
  MechanismValues parameters;       // parameters of the model's mechanisms, by name
};

std::string inspection_html(const InspectedModel& model, const InspectionRequest& request,
                            const Inspection& found);

/// Limit on the total bytes of a page's maps; many maps are averaged over larger blocks.
inline constexpr int64_t kMostMapBytes = int64_t{12} << 20;

}  // namespace bamtrain
