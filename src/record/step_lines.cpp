#include "record/step_lines.h"

#include <filesystem>
#include <string_view>

#include "core/abbreviate.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/line_reader.h"

namespace bamtrain {

StepLines::Kept StepLines::good_part(const std::string& path, int64_t step) {
  using nlohmann::json;
  Kept good;
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return good;
  const InputFile file(path, ExitCode::io, "check the file's permissions");
  LineReader lines(file);
  int64_t number = 0, damaged = 0;  // lines, from 1; 0: none
  std::string found;
  for (std::string_view text; lines.next(&text);) {
    ++number;
    json line = json::parse(text, nullptr, false);
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) {
      if (damaged == 0) found = abbreviate(std::string(text));
      if (damaged == 0) damaged = number;
      continue;
    }
    if (line["step"].get<int64_t>() > step) break;
    if (damaged != 0) {
      throw Error(ExitCode::io, path + ":" + std::to_string(damaged), "a JSON object with a step",
                  json(found).dump(-1, ' ', true, json::error_handler_t::replace),
                  "restore the file from a copy, or remove the line");
    }
    good.bytes = lines.offset();
    good.last = std::move(line);
  }
  return good;
}

StepLines::StepLines(const std::string& path, int64_t step)
    : kept_(good_part(path, step)), file_(path, kept_.bytes) {}

void StepLines::write(const nlohmann::ordered_json& line) { file_.write(line.dump() + "\n"); }

}  // namespace bamtrain
