#include "study/run_time.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "core/input_file.h"
#include "core/json_object.h"
#include "core/line_reader.h"
#include "record/run_lines.h"

namespace bamtrain {

namespace {

/// The last line that ends with a newline, without it; "" if there is none.
std::string last_whole_line(const InputFile& file) {
  constexpr int64_t kFirstRead = 1 << 16;
  for (int64_t read = kFirstRead;; read *= 2) {
    std::string end(static_cast<size_t>(std::min(read, file.bytes())), '\0');
    const int64_t begin = file.bytes() - std::ssize(end);
    file.read(begin, end.data(), std::ssize(end));
    end.resize(end.rfind('\n') + 1);  // npos + 1 is 0
    if (!end.empty()) end.pop_back();
    const size_t before = end.rfind('\n');
    if (before != std::string::npos) return end.substr(before + 1);
    if (begin == 0 || read > static_cast<int64_t>(LineReader::kMost)) return begin == 0 ? end : "";
  }
}

}  // namespace

std::optional<double> seconds_of(const StudyRun& run) try {
  const std::string path = run.folder + "/metrics.jsonl";
  const InputFile file(path, ExitCode::io, "restore it from a copy");
  const nlohmann::json line = parse_run_line(last_whole_line(file), path, 0);
  const double seconds = JsonObject(line, {path, ExitCode::io, ""}).number_or_none("seconds");
  return std::isfinite(seconds) ? std::optional(seconds) : std::nullopt;
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace bamtrain
