#include "commands/begun_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/document.h"
#include "config/reader.h"
#include "core/error.h"
#include "model/length_options.h"
#include "run/init_from_lengths.h"

namespace bamtrain {

namespace {

/// with_lengths_of; its errors name the folder of `source`.
nlohmann::json lengths_of(const nlohmann::json& open, const nlohmann::json& source,
                          const std::string& folder, const TakenLengths& taken = {}) {
  try {
    return with_lengths_of(open, source, taken);
  } catch (const Error& e) {
    throw e.at(folder + ": " + e.where());
  }
}

}  // namespace

RunConfig begun_config(const std::string& file, const std::vector<std::string>& overrides) {
  RunConfig c = read_run_config(file, overrides);
  const nlohmann::json state = resumed_state(c);
  if (!c.names_version && state.is_object() && state.contains("config")) {
    c = read_run_config(file, overrides, config_version_of(state["config"]));
  }
  nlohmann::json resolved = resolved_json(c);
  nlohmann::json& attention = resolved["model"]["attention"];
  const nlohmann::json open = attention;
  if (state.is_object()) {
    attention = lengths_of(open, resumed_attention(state), c.out_dir);
  } else if (!c.init_from.folder.empty()) {
    const auto is_new = [&c](const char* part) {
      const auto& names = c.init_from.absent;
      return std::find(names.begin(), names.end(), part) != names.end();
    };
    const SourceAttention source = source_attention(c.init_from);
    attention = lengths_of(open, source.attention, c.init_from.folder,
                           {!is_new("prior"), !is_new("scale"), source.T});
  }
  if (attention == open) return c;
  try {
    RunConfig begun = read_run_config_text(resolved.dump(), "init_from.folder", {});
    begun.names_version = c.names_version;
    return begun;
  } catch (const Error& e) {
    if (e.code() != ExitCode::config) throw;
    throw e.as(ExitCode::config, e.where(),
               "lower data.sequence_length: the number comes from " + c.init_from.folder +
                   "; or set another one here, if the weights allow it");
  }
}

}  // namespace bamtrain
