#pragma once
// A text file, plain or gzip-compressed, that is read whole or by lines.

#include <string>

#include "core/input_file.h"

namespace bamtrain {

/// Opens the file at `path`. Detects gzip by its first bytes and decompresses its text into memory;
/// places, sizes and digests are then those of the text. Errors as InputFile (ExitCode::io); (data)
/// for damaged gzip and for more than 4 GiB of decompressed text.
InputFile open_text_file(const std::string& path, const std::string& remedy);

}  // namespace bamtrain
