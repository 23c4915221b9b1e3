#include "commands/beginning.h"

#include <algorithm>
#include <filesystem>

#include "core/input_file.h"

namespace bamtrain {

std::string beginning_of(const std::string& path, int64_t bytes) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return "";
  const InputFile file(path, ExitCode::io, "check its permissions, or choose another name");
  std::string text(static_cast<size_t>(std::min(file.bytes(), bytes)), '\0');
  file.read(0, text.data(), std::ssize(text));
  return text;
}

}  // namespace bamtrain
