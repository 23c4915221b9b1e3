#include "record/named_checkpoint.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint/manifest.h"
#include "core/error.h"
#include "record/run_files.h"

namespace bamtrain {

bool is_run_folder(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::is_directory(folder, ignored) &&
         !std::filesystem::exists(folder + "/" + checkpoint_files::kManifest, ignored) &&
         newest_step(folder);
}

Checkpoint open_named_checkpoint(const std::string& folder, const Warn& tell) {
  if (!is_run_folder(folder)) return open_checkpoint(folder);
  std::optional<Checkpoint> newest =
      newest_checkpoint(folder, [&tell](const std::string& text) { tell("warning: " + text); });
  require(newest.has_value(), "a run's folder with a checkpoint");
  check_run_state(*newest);
  const nlohmann::json best = newest->state.value("best", nlohmann::json());
  if (best.is_null()) {
    tell(folder + ": newest checkpoint, " + checkpoint_name(newest->step));
    return *newest;
  }
  const auto step = best["step"].get<int64_t>();
  tell(folder + ": best checkpoint by " + best["metric"].get<std::string>() + ", " +
       checkpoint_name(step));
  if (step == newest->step) return *newest;
  try {
    return open_checkpoint(folder + "/" + checkpoint_name(step));
  } catch (const Error& e) {
    throw e.or_else("name the newest, " + newest->folder);
  }
}

}  // namespace bamtrain
