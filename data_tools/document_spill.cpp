#include "data_tools/document_spill.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"

namespace bamtrain {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;

using Header = std::array<uint64_t, 2>;  // number, length
constexpr auto kHeaderBytes = static_cast<int64_t>(sizeof(Header));

}  // namespace

DocumentSpill::DocumentSpill(const std::string& path, int width, int64_t keep)
    : file_(path, keep), width_(width) {
  require(width == 2 || width == 4, "tokens of 2 or 4 bytes");
}

DocumentSpill::Record DocumentSpill::append(uint64_t number, std::span<const int32_t> tokens) {
  const Header header = {number, tokens.size()};
  const auto put = [this](const void* data, size_t bytes) {
    const auto* begin = static_cast<const std::byte*>(data);
    buffer_.insert(buffer_.end(), begin, begin + bytes);
  };
  put(header.data(), sizeof header);
  const Record record = {number, file_.bytes() + static_cast<int64_t>(buffer_.size()),
                         static_cast<int64_t>(tokens.size())};
  for (const int32_t id : tokens) put(&id, static_cast<size_t>(width_));
  if (buffer_.size() >= kBufferBytes) flush();
  return record;
}

void DocumentSpill::flush() {
  file_.append(buffer_.data(), static_cast<int64_t>(buffer_.size()));
  buffer_.clear();
}

int64_t DocumentSpill::sync() {
  flush();
  file_.sync();
  return file_.bytes();
}

void DocumentSpill::for_each(const std::function<void(const Record&)>& f) {
  flush();
  for (int64_t at = 0; at < file_.bytes();) {
    Header header;
    if (file_.bytes() - at < kHeaderBytes) {
      throw Error::fault(ExitCode::data, file_.path(), "ends inside a document",
                         "remove the folder, and start over");
    }
    file_.read(at, header.data(), kHeaderBytes);
    at += kHeaderBytes;
    if (header[1] > static_cast<uint64_t>((file_.bytes() - at) / width_)) {
      throw Error::fault(ExitCode::data, file_.path(), "a document reaches past the end",
                         "remove the folder, and start over");
    }
    const auto length = static_cast<int64_t>(header[1]);
    f({header[0], at, length});
    at += length * width_;
  }
}

void DocumentSpill::read(const Record& record, std::vector<int32_t>* tokens) {
  flush();
  std::vector<std::byte> bytes(static_cast<size_t>(record.length * width_));
  file_.read(record.offset, bytes.data(), record.length * width_);
  tokens->assign(static_cast<size_t>(record.length), 0);
  for (size_t i = 0; i < tokens->size(); ++i) {
    std::memcpy(&(*tokens)[i], bytes.data() + i * static_cast<size_t>(width_),
                static_cast<size_t>(width_));
  }
}

}  // namespace bamtrain
