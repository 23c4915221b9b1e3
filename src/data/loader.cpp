#include "data/loader.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "core/error.h"
#include "data/permutation.h"

namespace bamtrain {

/// Two slots of windows, filled by one thread that starts with the first hint.
class Loader::ReadAhead {
 public:
  explicit ReadAhead(const Loader& loader) : loader_(loader) {}
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void hint(int64_t first, int64_t count) {
    const std::lock_guard lock(mutex_);
    if (holder(first, count)) return;
    Slot& slot = slots_[1 - newest_];
    if (slot.state == State::filling) return;
    slot.first = first;
    slot.count = count;
    slot.state = State::queued;
    newest_ = 1 - newest_;
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    changed_.notify_all();
  }

  /// Copies the windows where a slot holds or will hold them; false where none does.
  bool take(int64_t first, int64_t count, int32_t* out) {
    std::unique_lock lock(mutex_);
    const Slot* slot = nullptr;
    changed_.wait(lock, [&] {
      slot = holder(first, count);
      return !slot || slot->state == State::ready;
    });
    if (!slot) return false;
    const int64_t row = loader_.sequence_length_ + 1;
    std::copy_n(slot->rows.begin() + (first - slot->first) * row, count * row, out);
    return true;
  }

 private:
  enum class State { empty, queued, filling, ready };
  struct Slot {
    State state = State::empty;
    int64_t first = 0, count = 0;
    std::vector<int32_t> rows;  // (count, T + 1); keeps its memory from hint to hint
  };

  /// The slot that holds or will hold all of these windows, or null.
  const Slot* holder(int64_t first, int64_t count) const {
    for (const Slot& s : slots_) {
      if (s.state != State::empty && first >= s.first && first - s.first <= s.count - count) {
        return &s;
      }
    }
    return nullptr;
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Slot* slot = nullptr;
      changed_.wait(lock, [&] {
        for (int i : {newest_, 1 - newest_}) {  // the older one wins
          if (slots_[i].state == State::queued) slot = &slots_[i];
        }
        return stop_ || slot;
      });
      if (stop_) return;
      slot->state = State::filling;  // from here to ready the slot is this thread's
      lock.unlock();
      const bool filled = fill(slot);
      lock.lock();
      slot->state = filled ? State::ready : State::empty;
      changed_.notify_all();
    }
  }

  /// False for any error: the reader then reads for itself, and meets it where it can be reported.
  bool fill(Slot* slot) const noexcept {
    try {
      loader_.for_each_window(slot->first, slot->count,
                              [&](int64_t, const ShardSet& shards, const DocumentSpan& w) {
                                shards.shard(w.shard).will_need(w.begin, w.length);
                              });
      slot->rows.resize(static_cast<size_t>(slot->count * (loader_.sequence_length_ + 1)));
      loader_.read_here(slot->first, slot->count, slot->rows.data());
      return true;
    } catch (...) {
      return false;
    }
  }

  const Loader& loader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Slot, 2> slots_;
  int newest_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

namespace {

void require_range(int64_t first, int64_t count) {
  require(first >= 0 && count >= 0 && first <= std::numeric_limits<int64_t>::max() - count,
          "windows numbered from 0 to 2^63 - 1");
}

std::vector<double> weights_of(const std::vector<Source>& sources) {
  std::vector<double> weights;
  for (const Source& s : sources) weights.push_back(s.weight);
  return weights;
}

/// Error where a manifest says that ids mean something else than in another source.
void check_same_ids(const std::vector<Source>& sources) {
  const ShardSet* first = nullptr;
  for (const Source& s : sources) {
    if (!s.shards->manifest()) continue;
    if (!first) first = s.shards.get();
    const Manifest &a = *first->manifest(), &b = *s.shards->manifest();
    const auto refuse = [&](const std::string& what, const std::string& one,
                            const std::string& other, const char* remedy) {
      throw Error(ExitCode::data, s.shards->source(),
                  what + " of " + first->source() + " (" + one + "), with which they are mixed",
                  other, remedy);
    };
    if (a.tokenizer_sha256 != b.tokenizer_sha256) {
      refuse("shards of the tokenizer", "sha256 " + a.tokenizer_sha256,
             "shards of another (sha256 " + b.tokenizer_sha256 + ")",
             "tokenize all texts with one tokenizer");
    }
    const auto text = [](const std::optional<int64_t>& id) {
      return id ? "id " + std::to_string(*id) : "none";
    };
    if (a.document_start != b.document_start) {
      refuse("documents that begin with that", text(a.document_start), text(b.document_start),
             "tokenize all texts with the same options");
    }
  }
}

/// The running number of windows of T + 1 tokens, by shard.
std::vector<int64_t> count_windows(const ShardSet& shards, int64_t T) {
  std::vector<int64_t> ends;
  int64_t windows = 0, longest = 0;
  for (int64_t i = 0; i < shards.size(); ++i) {
    const int64_t tokens = shards.shard(i).tokens();
    longest = std::max(longest, tokens);
    if (tokens > 0) windows += (tokens - 1) / T;
    ends.push_back(windows);
  }
  if (windows == 0) {
    throw Error(
        ExitCode::data, shards.source(),
        "a shard of at least data.sequence_length + 1 = " + std::to_string(T + 1) + " tokens",
        std::to_string(shards.tokens()) + " tokens in " + std::to_string(shards.size()) +
            " shards, at most " + std::to_string(longest) + " in one",
        "use a shorter data.sequence_length or more text");
  }
  return ends;
}

}  // namespace

Loader::Loader(std::vector<Source> sources, int64_t sequence_length, uint64_t seed, bool shuffle)
    : sources_(std::move(sources)),
      order_(weights_of(sources_)),
      sequence_length_(sequence_length),
      seed_(seed),
      shuffle_(shuffle),
      ahead_(std::make_unique<ReadAhead>(*this)) {
  require(sequence_length >= 1, "a sequence of at least one token");
  check_same_ids(sources_);
  for (const Source& s : sources_)
    window_ends_.push_back(count_windows(*s.shards, sequence_length));
}

Loader::Loader(std::shared_ptr<const ShardSet> shards, int64_t sequence_length, uint64_t seed,
               bool shuffle)
    : Loader(std::vector<Source>{{std::move(shards), 1}}, sequence_length, seed, shuffle) {}

Loader::~Loader() = default;

DocumentSpan Loader::window(size_t source, int64_t position) const {
  const std::vector<int64_t>& ends = window_ends_[source];
  const auto end = std::upper_bound(ends.begin(), ends.end(), position);
  const int64_t before = end == ends.begin() ? 0 : *(end - 1);
  return {end - ends.begin(), (position - before) * sequence_length_, sequence_length_ + 1};
}

template <class F>
void Loader::for_each_window(int64_t first, int64_t count, F&& f) const {
  // Of the window before: its source's windows and epoch have their permutation.
  std::optional<Permutation> permutation;
  int64_t windows = 0, epoch = 0;
  for (int64_t row = 0; row < count; ++row) {
    const auto [index, number] = order_(first + row);
    const auto source = static_cast<size_t>(index);
    const int64_t n = windows_per_epoch(source);
    if (shuffle_ && (!permutation || windows != n || epoch != number / n)) {
      windows = n;
      epoch = number / n;
      permutation.emplace(n, seed_, epoch);
    }
    const int64_t position = number % n;
    f(row, *sources_[source].shards,
      window(source, shuffle_ ? (*permutation)(position) : position));
  }
}

void Loader::read_here(int64_t first, int64_t count, int32_t* out) const {
  for_each_window(first, count, [&](int64_t row, const ShardSet& shards, const DocumentSpan& span) {
    shards.read_span(span, out + row * (sequence_length_ + 1));
  });
}

void Loader::read(int64_t first, int64_t count, int32_t* out) const {
  require_range(first, count);
  if (!ahead_->take(first, count, out)) read_here(first, count, out);
}

void Loader::prefetch(int64_t first, int64_t count) {
  require_range(first, count);
  ahead_->hint(first, count);
}

}  // namespace bamtrain
