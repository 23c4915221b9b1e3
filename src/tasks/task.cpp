#include "tasks/task.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"

namespace bamtrain {

namespace {

/// Names a random stream of a set of sequences. The shared stream also depends on the range of
/// lengths.
std::string stream(const TaskInfo& info, const std::string& set, const std::string& what) {
  return fmt::format("task.{}.{}.{}", info.name, set, what);
}

}  // namespace

void check_lengths(const TaskInfo& info, LengthRange lengths, const std::string& where) {
  const auto [shortest, longest] = lengths;
  if (info.of_file) return;
  if (shortest >= info.least_length && shortest <= longest && longest <= info.most_length) return;
  throw Error(
      ExitCode::config, where,
      fmt::format("[shortest, longest], of {} from {} to {}", info.name, info.least_length,
                  info.most_length),
      fmt::format("[{}, {}]", shortest, longest),
      fmt::format("give a range such as [{}, {}]", info.lengths.shortest, info.lengths.longest));
}

Task::Task(const TaskInfo& info, Options options, LengthRange lengths, uint64_t seed,
           const std::string& set)
    : info_(info),
      options_(std::move(options)),
      lengths_(lengths),
      sequences_(seed, stream(info, set, "sequences")),
      length_(seed, stream(info, set, "length")),
      shared_(seed,
              stream(info, set, fmt::format("shared.{}-{}", lengths.shortest, lengths.longest))) {
  check_lengths(info, lengths, "{length}");
}

int64_t Task::length(int64_t n) const {
  const int64_t count = lengths_.longest - lengths_.shortest + 1;
  return lengths_.shortest + static_cast<int64_t>(length_.below(static_cast<uint64_t>(n),
                                                                static_cast<uint64_t>(count)));
}

void Task::draw(int64_t index, int64_t length, Example* out) const {
  require(length >= lengths_.shortest && length <= lengths_.longest, "a length of the task's set");
  Draws draws(sequences_, index);
  out->clear();
  info_.draw({info_, options_, shared_}, length, &draws, out);
}

}  // namespace bamtrain
