#include "report/run.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.h"
#include "core/input_file.h"
#include "core/json.h"
#include "core/line_reader.h"
#include "record/provenance.h"

namespace bamtrain {

namespace {

using nlohmann::json;

constexpr const char* kOfStarts = "restore the file from a copy, or remove it";

/// "fmt 9.1.0, CUDA 12.4" from an object of versions.
std::string listed(const JsonObject& versions) {
  std::string out;
  for (const auto& [name, version] : versions.value().items()) {
    out += (out.empty() ? "" : ", ") + name + " " + versions.text(name.c_str());
  }
  return out;
}

/// Whether the file exists. True if its folder cannot be searched: opening it then reports why.
bool present(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) || error;
}

/// The value in a file; nullopt if there is no file.
std::optional<json> value_in(const std::string& path, int64_t most, const char* remedy) {
  if (!present(path)) return std::nullopt;
  const InputFile file(path, ExitCode::io, remedy);
  return parse_json(file.text(most), {path, ExitCode::io, remedy});
}

}  // namespace

void JsonLines::read(const std::function<void(const JsonObject&)>& line) {
  if (!present(path_)) return;
  const InputFile file(path_, ExitCode::io, "check the file's permissions");
  LineReader lines(file, bytes_);
  for (std::string_view text; lines.next(&text);) {
    const json value = parse_run_line(text, path_, lines_ + 1);
    line({value, place_of_line(path_, lines_ + 1)});
    ++lines_;
    bytes_ = lines.offset();
  }
}

std::optional<StartFacts> read_start(const json& value, const std::string& where) {
  const JsonPlace place = {where, ExitCode::io, kOfStarts};
  if (!value.is_array()) place.refuse("a list of the run's starts", value.dump());
  if (value.empty()) return std::nullopt;
  const JsonObject entry(value.back(), place);
  const auto text = [&](const char* key) {
    return entry.has(key) && !entry.value()[key].is_null() ? entry.text(key) : "";
  };
  const auto count = [&](const char* key) { return entry.has(key) ? entry.count(key) : 0; };
  StartFacts start;
  start.version = text("version");
  start.commit = text("commit");
  start.compiler = text("compiler");
  if (entry.has("libraries")) start.libraries = listed(entry.object("libraries"));
  start.host = text("host");
  start.processor = text("processor");
  start.gpu = text("gpu");
  start.started = text("started");
  start.precision = text("precision");
  start.device = text("device");
  start.processes = count("processes");
  start.threads = count("threads");
  start.parameters = count("parameters");
  return start;
}

RunReader::RunReader(const std::string& folder)
    : folder_(folder), metrics_(folder + "/metrics.jsonl"), samples_(folder + "/samples.jsonl") {
  if (present(metrics_.path())) return;
  throw Error::fault(ExitCode::io, folder,
                     present(folder) ? "not a run's folder: no metrics.jsonl" : "no such folder",
                     "name the out_dir of a training run");
}

const RunRecord& RunReader::update() {
  metrics_.read([&](const JsonObject& line) {
    Metrics m = metrics_of(line);
    if (!record_.metrics.lines().empty()) {
      require_later(m.line.step, record_.metrics.lines().back().step, false, line.where());
    }
    record_.metrics.add(m.line);
    if (m.attention) record_.attention = std::move(m.attention);
    if (!m.parameters) return;
    record_.parameters = std::move(*m.parameters);
    record_.parameters_step = m.line.step;
  });
  samples_.read([&](const JsonObject& line) {
    const Sample s = sample_of(line);
    if (!record_.samples.empty()) {
      require_later(s.step, record_.samples.back().step, true, line.where());
      if (s.step != record_.samples.back().step) record_.samples.clear();
    }
    record_.samples.push_back(s);
  });
  record_.perplexity.reset();
  const std::string result = folder_ + "/perplexity.json", starts = folder_ + "/starts.json";
  if (present(result)) record_.perplexity = read_perplexity(perplexity_json(result), result);
  record_.tasks = measured_tasks(Results(folder_ + "/" + kResultsFile));
  record_.start.reset();
  if (const auto value = value_in(starts, kMostStartBytes, kOfStarts)) {
    record_.start = read_start(*value, starts);
  }
  return record_;
}

}  // namespace bamtrain
