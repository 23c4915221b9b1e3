#include "record/provenance.h"

#include <unistd.h>

#include <climits>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/durable_file.h"
#include "core/input_file.h"
#include "core/json.h"
#include "core/parallel.h"
#include "core/version.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

/// The kernel's name for the processor; "unknown" if it has none.
std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

/// ISO 8601, UTC: "2026-01-31T09:30:00Z".
std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

}  // namespace

ordered_json read_starts(const std::string& path) {
  constexpr const char* kRemedy = "move it elsewhere";
  std::error_code error;  // opening the file reports this error
  if (!std::filesystem::exists(path, error) && !error) return ordered_json::array();
  const std::string text = InputFile(path, ExitCode::io, kRemedy).text(kMostStartBytes);
  parse_json(text, {path, ExitCode::io, kRemedy});
  ordered_json starts = ordered_json::parse(text);  // ordered_json keeps the order of keys
  if (!starts.is_array()) {
    throw Error(ExitCode::io, path, "a list of a run's starts", starts.type_name(), kRemedy);
  }
  return starts;
}

void record_start(const std::string& out_dir, const RunStart& start) {
  const std::string path = out_dir + "/starts.json";
  ordered_json starts = read_starts(path);
  starts.push_back({{"version", version()},
                    {"commit", commit()},
                    {"compiler", compiler()},
                    {"libraries", start.libraries},
                    {"host", host_name()},
                    {"processor", processor_name()},
                    {"gpu", start.gpu.empty() ? ordered_json() : ordered_json(start.gpu)},
                    {"processes", start.processes},
                    {"threads", max_threads()},
                    {"started", now()},
                    {"precision", start.precision},
                    {"device", start.device},
                    {"parameters", start.parameters}});
  AtomicFile file(path);
  // A host name may hold arbitrary bytes.
  file.write(starts.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  file.commit();
}

std::map<std::string, std::string> this_program() {
  return {{"version", version()}, {"commit", commit()}};
}

}  // namespace bamtrain
