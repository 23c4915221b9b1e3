#include "core/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace bamtrain {

struct GzipDecoder::Stream : z_stream {
  Stream() : z_stream{} {
    constexpr int kGzipAlone = 16;  // added to the logarithm of the window
    require(::inflateInit2(this, MAX_WBITS + kGzipAlone) == Z_OK, "a gzip decoder");
  }
  ~Stream() { ::inflateEnd(this); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

GzipDecoder::GzipDecoder(std::string where, Next next)
    : where_(std::move(where)), next_(std::move(next)), stream_(std::make_unique<Stream>()) {}

GzipDecoder::~GzipDecoder() = default;

void GzipDecoder::refuse(const std::string& found) const {
  throw Error::fault(ExitCode::data, where_, "damaged gzip data: " + found, "fetch the file again");
}

/// Returns false at the end of the file.
bool GzipDecoder::next_input() {
  const std::string_view chunk = next_();
  if (chunk.empty() && inside_member_) refuse("truncated");
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(chunk.data()));
  stream_->avail_in = static_cast<uInt>(chunk.size());
  return !chunk.empty();
}

size_t GzipDecoder::read(char* out, size_t n) {
  constexpr size_t kMostAtOnce = size_t{1} << 30;  // zlib counts in 32 bits
  n = std::min(n, kMostAtOnce);
  z_stream& s = *stream_;
  s.next_out = reinterpret_cast<Bytef*>(out);
  s.avail_out = static_cast<uInt>(n);
  while (n > 0 && s.avail_out == n) {
    if (s.avail_in == 0 && !next_input()) return 0;
    if (!inside_member_ && any_member_ && *s.next_in == 0) {
      // Zeros pad tape blocks; gzip(1) skips them too.
      ++s.next_in;
      --s.avail_in;
      continue;
    }
    inside_member_ = any_member_ = true;
    const int result = ::inflate(&s, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      inside_member_ = false;
      ::inflateReset(&s);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      refuse(s.msg != nullptr ? s.msg : "zlib error " + std::to_string(result));
    }
  }
  return n - s.avail_out;
}

}  // namespace bamtrain
