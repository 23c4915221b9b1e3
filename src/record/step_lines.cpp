#include "record/step_lines.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/input_file.h"
#include "core/line_reader.h"
#include "record/run_lines.h"

namespace bamtrain {

namespace {

/// Offset of the end of a file's last line.
int64_t end_of_lines(const std::string& path) {
  const InputFile file(path, ExitCode::io, "check the file's permissions");
  LineReader lines(file);
  for (std::string_view text; lines.next(&text);) {
  }
  return lines.offset();
}

}  // namespace

StepLines::Kept StepLines::good_part(const std::string& path, int64_t step,
                                     const StepLineKind& kind) {
  Kept good;
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return good;
  const InputFile file(path, ExitCode::io, "check the file's permissions");
  LineReader lines(file);
  std::optional<Error> damage;  // the first damage
  int64_t number = 0, before = -1;
  for (std::string_view text; lines.next(&text);) {
    nlohmann::json line;
    int64_t at = 0;
    try {
      line = parse_run_line(text, path, ++number);
      const JsonObject object(line, place_of_line(path, number));
      at = step_of(object);
      kind.check(object);
    } catch (const Error& e) {
      if (!damage) damage = e;
      // A damaged line of a later step, or after one, is cut off in any case.
      if (std::max(at, before) <= step && good.damage.lines++ == 0) good.damage.first = number;
      continue;
    }
    if (at <= step) {
      if (damage) throw *damage;
      require_later(at, before, kind.several_of_a_step, place_of_line(path, number));
      good.bytes = lines.offset();
      good.last = std::move(line);
    }
    before = at;
  }
  return good;
}

StepLines::StepLines(const std::string& path, int64_t step, const StepLineKind& kind)
    : kept_(good_part(path, step, kind)), file_(path, kept_.bytes, end_of_lines) {}

void StepLines::write(const nlohmann::ordered_json& line) { file_.write(run_line(line) + "\n"); }

}  // namespace bamtrain
