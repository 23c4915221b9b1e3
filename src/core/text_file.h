#pragma once
// A file of text that is read whole or in lines, plain or compressed by gzip.

#include <string>

#include "core/input_file.h"

namespace bamtrain {

/// The file at `path`; of gzip, told by its first bytes, the text in it, decompressed into memory:
/// places, sizes and digests are those of the text. Errors: as InputFile (ExitCode::io); (data) for
/// damaged gzip and for more than 4 GiB of text.
InputFile open_text_file(const std::string& path, const std::string& remedy);

}  // namespace bamtrain
