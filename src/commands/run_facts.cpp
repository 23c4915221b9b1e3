#include "commands/run_facts.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "config/reader.h"
#include "core/with_commas.h"
#include "model/parameters.h"
#include "record/progress.h"
#include "report/axis.h"

namespace bamtrain {

namespace {

std::string model_text(const ModelConfig& m) {
  std::string heads = fmt::format("{} heads", m.heads);
  if (m.kv_heads != m.heads) heads += fmt::format(" ({} of keys and values)", m.kv_heads);
  return fmt::format("{} layers, width {}, {}, vocabulary {}", m.layers, with_commas(m.width),
                     heads, with_commas(m.vocab));
}

/// "a, b", skipping empty parts.
std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() || part.empty() ? "" : ", ") + part;
  return out;
}

std::string processes_text(const StartFacts& start) {
  if (start.processes == 0) return "";
  const std::string threads = start.threads == 0   ? ""
                              : start.threads == 1 ? " of 1 thread"
                                                   : fmt::format(" of {} threads", start.threads);
  return with_commas(start.processes) + threads;
}

}  // namespace

std::vector<RunFact> run_facts(const RunConfig* config, const RunRecord& record) {
  std::vector<RunFact> out;
  const auto add = [&out](const char* name, const std::string& value) {
    if (!value.empty()) out.push_back({name, value});
  };
  const StartFacts start = record.start.value_or(StartFacts());
  int64_t parameters = start.parameters;
  std::string precision = start.precision;
  if (config != nullptr) {
    const RunConfig& c = *config;
    const nlohmann::ordered_json resolved = resolved_json(c);
    const AttentionConfig& attention = c.model.attention;
    const ParameterLayout layout(c.model, c.data.sequence_length);
    if (parameters == 0) {
      for (const Parameter& p : layout.all()) parameters += p.size;
    }
    if (precision.empty()) precision = resolved["train"]["precision"];
    add("model", model_text(c.model));
    add("attention", fmt::format("{}, scale {}, normalizer {}", attention.prior.names(),
                                 attention.scale.name(), attention.normalizer.name()));
    add("parameters", with_commas(parameters));
    add("training",
        fmt::format("{} steps of {} tokens, sequences of {}", with_commas(c.train.steps),
                    with_commas(c.train.tokens_per_step), with_commas(c.data.sequence_length)));
    add("optimizer", fmt::format("{}, lr {}, {}", resolved["optimizer"]["name"].get<std::string>(),
                                 number_text(c.optimizer.lr, 4),
                                 resolved["schedule"]["name"].get<std::string>()));
  } else if (parameters > 0) {
    add("parameters", with_commas(parameters));
  }
  add("precision", precision);
  add("hardware", joined({start.gpu.empty() ? start.processor : start.gpu, start.host}));
  add("processes", processes_text(start));
  const std::vector<HistoryLine>& lines = record.metrics.lines();
  if (!lines.empty() && std::isfinite(lines.back().seconds)) {
    add("total time", format_duration(lines.back().seconds));
  }
  add("last start", start.started);
  add("program", joined({start.version.empty() ? "" : "bamtrain " + start.version, start.commit,
                         start.compiler, start.libraries}));
  return out;
}

}  // namespace bamtrain
