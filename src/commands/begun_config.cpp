#include "commands/begun_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

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

RunConfig begun_config(const RunConfig& c) {
  nlohmann::json resolved = resolved_json(c);
  nlohmann::json& attention = resolved["model"]["attention"];
  const nlohmann::json open = attention;
  bool resumes = false;
  const nlohmann::json before = resumed_attention(c, &resumes);
  if (resumes) {
    attention = lengths_of(open, before, c.out_dir);
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
    return read_run_config_text(resolved.dump(), "init_from.folder", {});
  } catch (const Error& e) {
    if (e.code() != ExitCode::config) throw;
    throw e.as(ExitCode::config, e.where(),
               "lower data.sequence_length: the number comes from " + c.init_from.folder +
                   "; or set another one here, if the weights allow it");
  }
}

}  // namespace bamtrain
