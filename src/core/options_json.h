#pragma once
// Options (core/options.h) as JSON, in the form that config/option.h reads.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/options.h"

namespace bamtrain {

/// A value of the option `spec`.
nlohmann::ordered_json option_json(const OptionSpec& spec, const OptionValue& value);

/// Every option in the declared order.
nlohmann::ordered_json options_json(const std::vector<OptionSpec>& specs, const Options& options);

}  // namespace bamtrain
