#include "core/line_reader.h"

#include <algorithm>

namespace bamtrain {
namespace {

constexpr int64_t kLineReadBytes = int64_t{1} << 20;

}  // namespace

bool LineReader::next(std::string_view* line) {
  size_t searched = begin_;
  for (;;) {
    const size_t end = held_.find('\n', searched);
    if (end != std::string::npos && skipping_) {
      begin_ = searched = end + 1;
      skipping_ = false;
      continue;
    }
    if (end != std::string::npos) {
      *line = std::string_view(held_).substr(begin_, std::min(end - begin_, most_ + 1));
      begin_ = end + 1;
      return true;
    }
    if (skipping_) begin_ = held_.size();
    if (held_.size() - begin_ > most_) {
      *line = std::string_view(held_).substr(begin_, most_ + 1);
      begin_ = held_.size();
      skipping_ = true;
      return true;
    }
    const int64_t piece = std::min(kLineReadBytes, file_.bytes() - read_);
    if (piece <= 0) return false;
    held_.erase(0, begin_);
    begin_ = 0;
    searched = held_.size();
    held_.resize(searched + static_cast<size_t>(piece));
    file_.read(read_, held_.data() + searched, piece);
    read_ += piece;
  }
}

}  // namespace bamtrain
