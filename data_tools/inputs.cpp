#include "data_tools/inputs.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/faults.h"
#include "data_tools/binary_input.h"
#include "data_tools/interrupt.h"

namespace bamtrain {
namespace {

/// Whether the file is parquet. Throws Error if it is neither parquet nor text (refuse_binary).
bool is_parquet(const std::string& path) {
  std::array<char, kBinaryStart> bytes;
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), bytes.size());
  const std::string_view start(bytes.data(), static_cast<size_t>(file.gcount()));
  if (start.starts_with("PAR1")) return true;
  if (path.ends_with(".parquet")) {
    throw Error::fault(
        ExitCode::data, path,
        start.empty() ? "empty file" : "not a parquet file: it does not begin with PAR1",
        "fetch it again");
  }
  refuse_binary(path, start);
  return false;
}

}  // namespace

Inputs::Inputs(InputOptions options) : options_(std::move(options)) {
  const auto& paths = options_.paths;
  require(!paths.empty(), "at least one input");
  if (std::count(paths.begin(), paths.end(), kStandardInput) > 1) {
    throw Error::fault(ExitCode::usage, "inputs", "standard input (-) is given twice",
                       "name it once");
  }
  std::map<std::pair<dev_t, ino_t>, std::string> seen;
  for (const std::string& path : paths) {
    struct stat status = {};
    const bool there = path == kStandardInput || ::stat(path.c_str(), &status) == 0;
    bool parquet = false;
    if (there && S_ISREG(status.st_mode)) {
      parquet = is_parquet(path);
      const auto [first, is_new] = seen.emplace(std::pair(status.st_dev, status.st_ino), path);
      if (!is_new) {
        throw Error::fault(ExitCode::usage, path, "the same file as " + first->second,
                           "name it once");
      }
    }
    if (!there) throw system_error(ExitCode::io, path, "read", errno, "check the path");
    if (S_ISDIR(status.st_mode)) {
      throw Error(ExitCode::io, path, "a text file", "a folder", "name the files in it");
    }
    kinds_.push_back(parquet ? DocumentKind::row
                             : document_kind_of(path, options_.format, options_.kind));
    const std::optional<int64_t> bytes = file_bytes(path);
    before_.push_back(before_.back() + bytes.value_or(0));
    if (bytes && total_bytes_) {
      *total_bytes_ += *bytes;
    } else {
      total_bytes_.reset();
    }
  }
}

bool Inputs::next(RawDocument* document) {
  while (true) {
    const size_t before = current_;
    const bool found = next_at_hand(document);
    if (current_ != before) documents_ = 0;
    if (found) ++documents_;
    if (found || current_ + 1 == options_.paths.size()) return found;
    ++current_;
    documents_ = 0;
  }
}

void Inputs::skip_to(const Position& position) {
  require(!reader_ && !parquet_ && documents_ == 0, "no document was read");
  if (position.input >= kinds_.size()) {
    throw Error(ExitCode::data, "inputs", "at least " + std::to_string(position.input + 1),
                std::to_string(kinds_.size()), "remove the partial folder, and start over");
  }
  current_ = position.input;
  RawDocument document;
  while (documents_ < position.documents) {
    check_interrupt();
    if (!next(&document) || current_ != position.input) {
      throw Error(ExitCode::data, options_.paths[position.input],
                  std::to_string(position.documents) + " documents, as before", "fewer",
                  "restore the file, or remove the partial folder and start over");
    }
  }
}

bool Inputs::next_at_hand(RawDocument* document) {
  if (kind() != DocumentKind::row) {
    if (!reader_) reader_.emplace(path(), kind(), options_.max_document_bytes);
    if (reader_->next(document)) return true;
    if (std::string warning = reader_->warning(); !warning.empty()) {
      warnings_.push_back(std::move(warning));
    }
    reader_.reset();
    return false;
  }
  if (!parquet_) {
    parquet_begin_ = current_;
    const auto from = static_cast<std::ptrdiff_t>(current_);
    const auto other = std::find_if(kinds_.begin() + from, kinds_.end(),
                                    [](DocumentKind k) { return k != DocumentKind::row; });
    const auto begin = options_.paths.begin();
    parquet_ = std::make_unique<ParquetReader>(
        std::vector<std::string>(begin + from, begin + (other - kinds_.begin())), options_.field,
        options_.parquet_processes, options_.max_document_bytes);
  }
  if (parquet_->next(document)) {
    current_ = parquet_begin_ + parquet_->file();
    return true;
  }
  while (current_ + 1 < kinds_.size() && kinds_[current_ + 1] == DocumentKind::row) ++current_;
  parquet_.reset();
  return false;
}

int64_t Inputs::taken() const {
  if (parquet_) return before_[current_] + parquet_->taken();
  return before_[current_] + (reader_ ? reader_->taken() : 0);
}

}  // namespace bamtrain
