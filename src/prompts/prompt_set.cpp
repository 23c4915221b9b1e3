#include "prompts/prompt_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace bamtrain {

namespace {

/// Sample prompts; the largest of their sizes is used. A single one with many tokens per word would
/// leave all prompts short.
constexpr int64_t kMeasured = 8;

std::string stream_of(const std::string& task, int64_t length, const char* what) {
  return fmt::format("prompts.{}.{}.{}", task, length, what);
}

}  // namespace

PromptSet::PromptSet(const std::string& task, HaystackSizes sizes, int64_t length, uint64_t seed,
                     TokenCount count, PromptMaker make)
    : task_(task),
      sizes_(sizes),
      length_(length),
      stream_(seed, stream_of(task, length, "prompts")),
      count_(std::move(count)),
      make_(std::move(make)) {
  const Rng measured(seed, stream_of(task, length, "measured"));
  size_ = sizes_.least;
  for (int64_t sample = 0; sample < kMeasured; ++sample) {
    const auto tokens_of = [&](int64_t size) { return tokens(made(measured, sample, size)); };
    if (const int64_t least = tokens_of(sizes_.least); least > length) too_short(least);
    const auto reaches = [&](int64_t more) {
      return more <= sizes_.most - size_ && tokens_of(size_ + more) <= length;
    };
    int64_t step = 1;
    for (; reaches(step); step *= 2) size_ += step;
    for (step /= 2; step > 0; step /= 2) {
      if (reaches(step)) size_ += step;
    }
    if (size_ < sizes_.most) continue;
    throw Error(
        ExitCode::config, "{length}",
        fmt::format("at most about {} tokens: {} has no words for more", tokens_of(size_), task),
        std::to_string(length), "lower it");
  }
}

TextPrompt PromptSet::prompt(int64_t index) const {
  for (int64_t size = size_;;) {
    TextPrompt p = made(stream_, index, size);
    const int64_t n = tokens(p);
    if (n <= length_) return p;
    if (size == sizes_.least) too_short(n);
    // Shrink in proportion to the excess, so that few attempts are wasted.
    size = std::max(sizes_.least, size - std::max<int64_t>(1, size * (n - length_) / n));
  }
}

void PromptSet::require_room(int64_t first, int64_t count) const {
  int64_t longest = 0;
  for (int64_t index = first; index < first + count; ++index) {
    longest = std::max(longest, tokens(made(stream_, index, sizes_.least)));
    if (2 * longest <= length_) return;
  }
  if (longest > length_) too_short(longest);
}

TextPrompt PromptSet::made(const Rng& stream, int64_t index, int64_t size) const {
  Draws draws(stream, index);
  return make_(size, &draws);
}

int64_t PromptSet::tokens(const TextPrompt& p) const {
  return count_(p.text) + p.tokens_to_generate;
}

void PromptSet::too_short(int64_t tokens) const {
  throw Error(
      ExitCode::config, "{length}",
      fmt::format("at least {} tokens, the shortest prompt of {} with its answer", tokens, task_),
      std::to_string(length_), "raise it");
}

}  // namespace bamtrain
