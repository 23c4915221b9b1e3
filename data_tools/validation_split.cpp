#include "data_tools/validation_split.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/sha256.h"

namespace bamtrain {

ValidationSplit::ValidationSplit(ValidationShare share, DocumentSink* train, ShardSetWriter* val,
                                 const std::string& held, int width, const State& state)
    : share_(share), train_(train), val_(val), state_(state) {
  require(train && share.any() == (val != nullptr) &&
              (share.documents > 0) + (share.fraction > 0) + (share.tokens > 0) <= 1 &&
              share.documents >= 0 && share.fraction >= 0 && share.fraction < 1 &&
              share.tokens >= 0 && share.unused >= 0 && (share.unused == 0 || share.tokens > 0),
          "a share for validation and a set for it, or neither");
  if (share.documents == 0) return;
  spill_.emplace(held, width, state.held_bytes);
  // Every document in the file was held once: replaying them in order displaces the same ones.
  spill_->for_each([this](const Record& record) { take_place(record); });
}

uint64_t ValidationSplit::draw(std::string_view text) {
  const std::string digits = sha256_hex(text).substr(0, 16);
  return std::stoull(digits, nullptr, 16);
}

bool ValidationSplit::lower(const Record& a, const Record& b) {
  return std::pair(a.number, a.offset) < std::pair(b.number, b.offset);
}

void ValidationSplit::train(std::span<const int32_t> document) {
  train_->append(document);
  state_.train += 1;
}

void ValidationSplit::add(std::span<const int32_t> document, uint64_t draw) {
  if (share_.documents > 0) {
    hold(document, draw);
  } else if (share_.tokens > 0) {
    add_by_tokens(document);
  } else if (static_cast<double>(draw >> 11) * 0x1p-53 < share_.fraction) {
    val_->append(document);
  } else {
    train(document);
  }
  state_.documents += 1;
  state_.tokens += static_cast<int64_t>(document.size());
}

void ValidationSplit::add_by_tokens(std::span<const int32_t> document) {
  int64_t at = state_.tokens;
  const auto take_until = [&](int64_t end) {
    const auto n = std::min(static_cast<size_t>(std::max<int64_t>(end - at, 0)), document.size());
    const auto part = document.first(n);
    document = document.subspan(n);
    at += static_cast<int64_t>(n);
    return part;
  };
  const auto val = take_until(share_.tokens);
  if (!val.empty()) val_->append(val);
  take_until(share_.tokens + share_.unused);
  if (!document.empty()) train(document);
}

/// Adds a document to the held ones; returns the one that it displaces.
std::optional<ValidationSplit::Record> ValidationSplit::take_place(const Record& record) {
  std::optional<Record> leaves;
  if (static_cast<int64_t>(held_.size()) == share_.documents) {
    std::pop_heap(held_.begin(), held_.end(), lower);
    leaves = held_.back();
    held_.pop_back();
  }
  held_.push_back(record);
  std::push_heap(held_.begin(), held_.end(), lower);
  return leaves;
}

void ValidationSplit::hold(std::span<const int32_t> document, uint64_t draw) {
  if (static_cast<int64_t>(held_.size()) == share_.documents && draw >= held_.front().number) {
    return train(document);
  }
  if (const auto leaves = take_place(spill_->append(draw, document))) {
    std::vector<int32_t> tokens;
    spill_->read(*leaves, &tokens);
    train(tokens);
  }
}

ValidationSplit::State ValidationSplit::sync() {
  if (spill_) state_.held_bytes = spill_->sync();
  return state_;
}

void ValidationSplit::finish(bool val_required) {
  const std::string found =
      std::to_string(state_.documents) + (state_.documents == 1 ? " document" : " documents");
  if (state_.documents == 0) {
    throw Error::fault(ExitCode::data, "input", "no document with visible characters",
                       "check the inputs and --document");
  }
  if (state_.train == 0) {
    throw Error::fault(ExitCode::data, "input", "no document left for training, of " + found,
                       "ask for less validation, or give more text");
  }
  std::sort(held_.begin(), held_.end(),
            [](const Record& a, const Record& b) { return a.offset < b.offset; });
  std::vector<int32_t> tokens;
  for (const Record& record : held_) {
    spill_->read(record, &tokens);
    val_->append(tokens);
  }
  held_.clear();
  if (val_required && val_ && val_->tokens() == 0) {
    throw Error::fault(ExitCode::data, "input", "no document drawn for validation, of " + found,
                       "use --val-documents, or give more text");
  }
}

}  // namespace bamtrain
