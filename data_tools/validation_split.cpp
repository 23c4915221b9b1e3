#include "data_tools/validation_split.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/rng.h"

namespace bamtrain {

ValidationSplit::ValidationSplit(ValidationShare share, ShardSetWriter* train, ShardSetWriter* val)
    : share_(share), train_(train), val_(val) {
  const bool any = share.documents > 0 || share.fraction > 0;
  require(train && any == (val != nullptr) && !(share.documents > 0 && share.fraction > 0) &&
              share.documents >= 0 && share.fraction >= 0 && share.fraction < 1,
          "a share for validation and a set for it, or neither");
}

uint64_t ValidationSplit::draw(int64_t index) {
  static const Rng rng(0, "bamdata.validation");
  return rng.bits(static_cast<uint64_t>(index));
}

bool ValidationSplit::lower(const Held& a, const Held& b) {
  return std::pair(a.draw, a.index) < std::pair(b.draw, b.index);
}

void ValidationSplit::add(std::span<const int32_t> document) {
  const int64_t index = next_++;
  const uint64_t number = draw(index);
  if (share_.documents == 0) {
    const bool chosen = static_cast<double>(number >> 11) * 0x1p-53 < share_.fraction;
    (chosen ? val_ : train_)->append(document);
    return;
  }
  if (static_cast<int64_t>(held_.size()) == share_.documents) {
    if (number >= held_.front().draw) {
      train_->append(document);
      return;
    }
    std::pop_heap(held_.begin(), held_.end(), lower);
    train_->append(held_.back().tokens);
    held_.pop_back();
  }
  held_.push_back({number, index, {document.begin(), document.end()}});
  std::push_heap(held_.begin(), held_.end(), lower);
}

void ValidationSplit::finish() {
  const std::string found = std::to_string(next_) + (next_ == 1 ? " document" : " documents");
  if (next_ == 0) {
    throw Error(ExitCode::data, "input", "text", "no document with visible characters",
                "check the inputs and --document");
  }
  if (train_->documents() == 0) {
    throw Error(ExitCode::data, "input", "documents for training beside those for validation",
                found + " in all", "ask for less validation, or give more text");
  }
  std::sort(held_.begin(), held_.end(),
            [](const Held& a, const Held& b) { return a.index < b.index; });
  for (const Held& h : held_) val_->append(h.tokens);
  held_.clear();
  if (val_ && val_->documents() == 0) {
    throw Error(ExitCode::data, "input", "a document for validation", "none drawn of " + found,
                "use --val-documents, or give more text");
  }
}

}  // namespace bamtrain
