#include "config/validate.h"

#include <nlohmann/json.hpp>

#include "config/config_checks.h"
#include "config/keys.h"
#include "config/max_retrieval.h"

namespace bamtrain {

void validate(const RunConfig& config, const Origin& origin, ConfigUse use) {
  RunConfig scratch = config;
  for (const Key& key : all_keys()) key.set(scratch, nlohmann::json(key.get(config)), origin);
  if (config.model.kind == ModelKind::max_retrieval) check_max_retrieval(config, origin);
  check_model(config, origin, use);
  check_data(config, origin, use);
  check_training(config, origin, use);
  check_evaluation(config, origin, use);
  check_parameter_names(config, origin, use);
}

void validate(const RunConfig& config) { validate(config, Origin{}); }

}  // namespace bamtrain
