#include "data/loader.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/sha256.h"
#include "data/permutation.h"

namespace bamtrain {
namespace {

namespace fs = std::filesystem;

/// The *.bin of a folder, in no order.
std::vector<fs::path> list_folder(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    if (it->path().extension() == ".bin") files.push_back(it->path());
  }
  if (error) {
    throw Error(ExitCode::io, folder, "a folder that can be listed", error.message(),
                "check permissions and the disk");
  }
  return files;
}

/// What glob(3) finds, in no order.
std::vector<fs::path> list_pattern(const std::string& pattern) {
  struct Matches : glob_t {
    Matches() : glob_t{} {}
    ~Matches() { ::globfree(this); }
  } matches;
  const auto is_fatal = [](const char*, int error) -> int {
    return error != ENOENT && error != ENOTDIR;
  };
  const int status = ::glob(pattern.c_str(), GLOB_NOSORT, is_fatal, &matches);
  if (status == GLOB_NOMATCH) return {};
  if (status != 0) {
    throw Error(ExitCode::io, pattern, "a pattern whose folders can be listed",
                status == GLOB_NOSPACE ? "too little memory" : "one that cannot",
                "check permissions and the disk");
  }
  return {matches.gl_pathv, matches.gl_pathv + matches.gl_pathc};
}

std::string base_name(const Shard& shard) { return fs::path(shard.path()).filename().string(); }

/// Error unless the files are the shards of one split in one folder.
void check_layout(const std::vector<fs::path>& files, const std::string& source, bool is_folder) {
  if (files.empty()) {
    throw Error(ExitCode::data, source, "token shards",
                is_folder ? "a folder without *.bin" : "no file of this name or pattern",
                "check the path, or make shards with `bamdata tokenize`");
  }
  for (const fs::path& f : files) {
    if (f.parent_path() == files.front().parent_path()) continue;
    throw Error(ExitCode::data, source, "shards of one folder",
                files.front().string() + " and " + f.string(), "put or link them into one folder");
  }
  if (!is_folder) return;
  const auto named = [&](std::string_view part) {
    return std::find_if(files.begin(), files.end(), [part](const fs::path& f) {
      return f.filename().string().find(part) != std::string::npos;
    });
  };
  const auto train = named("_train_"), val = named("_val_");
  if (train != files.end() && val != files.end()) {
    throw Error(ExitCode::data, source, "a folder with the shards of one split",
                train->filename().string() + " and " + val->filename().string(),
                "give patterns: " + (fs::path(source) / "*_train_*.bin").string() + " and " +
                    (fs::path(source) / "*_val_*.bin").string());
  }
}

void require_range(int64_t first, int64_t count) {
  require(first >= 0 && count >= 0 && first <= std::numeric_limits<int64_t>::max() - count,
          "windows numbered from 0 to 2^63 - 1");
}

}  // namespace

ShardSet ShardSet::open(const std::string& folder_or_glob, int64_t vocab) {
  require(vocab >= 1 && vocab <= int64_t{1} << 31, "a vocabulary whose ids fit an int32");
  std::error_code ignored;  // where a question has no answer, opening the file tells why
  const bool is_folder = fs::is_directory(folder_or_glob, ignored);
  std::vector<fs::path> files =
      is_folder ? list_folder(folder_or_glob) : list_pattern(folder_or_glob);
  std::sort(files.begin(), files.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  check_layout(files, folder_or_glob, is_folder);

  ShardSet set;
  set.source_ = folder_or_glob;
  set.vocab_ = vocab;
  Sha256 digest;
  const auto update = [&digest](std::string_view bytes) {
    digest.update(bytes.data(), bytes.size());
  };
  update("bamtrain shards 1\n");
  for (const fs::path& f : files) {
    set.shards_.push_back(Shard::open(f.string()));
    const Shard& shard = set.shards_.back();
    set.tokens_ += shard.tokens();
    const std::string name = base_name(shard);
    update(std::to_string(name.size()) + " " + name + " " + std::to_string(shard.file_bytes()) +
           "\n");
    digest.update(shard.header().data(), shard.header().size());
  }

  const std::string manifest = (files.front().parent_path() / kManifestName).string();
  const fs::file_status status = fs::status(manifest, ignored);
  if (status.type() != fs::file_type::not_found) {
    set.manifest_ = read_manifest(manifest);
    set.check_manifest(manifest, is_folder);
    update("manifest " + sha256_file(manifest) + "\n");
  }
  set.fingerprint_ = digest.hex();
  return set;
}

void ShardSet::check_manifest(const std::string& path, bool complete) const {
  const Manifest& m = *manifest_;
  const std::string remedy = "restore the folder, or make the shards again with bamdata";
  if (m.vocab > vocab_) {
    throw Error(ExitCode::data, path + ": tokenizer.vocab",
                "at most the model's vocabulary of " + std::to_string(vocab_),
                std::to_string(m.vocab), "set model.vocab to it, or use other shards");
  }
  std::map<std::string_view, const Manifest::ShardEntry*> missing;
  for (const Manifest::ShardEntry& e : m.shards) missing[e.file] = &e;
  for (const Shard& shard : shards_) {
    const std::string name = base_name(shard);
    const auto it = missing.find(name);
    if (it == missing.end()) {
      throw Error(ExitCode::data, path + ": shards", "an entry for " + name, "none", remedy);
    }
    if (it->second->tokens != shard.tokens()) {
      throw Error(ExitCode::data, shard.path(),
                  std::to_string(it->second->tokens) + " tokens, as " + path + " says",
                  std::to_string(shard.tokens()), remedy);
    }
    missing.erase(it);
  }
  if (complete && !missing.empty()) {
    throw Error(ExitCode::data, path + ": shards",
                std::string(missing.begin()->first) + " in the folder", "no such file", remedy);
  }
}

std::optional<int64_t> ShardSet::document_start() const {
  return manifest_ ? manifest_->document_start : std::nullopt;
}

std::vector<DocumentSpan> ShardSet::documents(int64_t document_start) const {
  if (document_start < 0 || document_start >= vocab_) {
    throw Error(ExitCode::config, "data.document_start",
                "an id from 0 to " + std::to_string(vocab_ - 1), std::to_string(document_start),
                "set it to the id that begins a document");
  }
  std::vector<DocumentSpan> spans;
  for (int64_t i = 0; i < size(); ++i) {
    const Shard& s = shard(i);
    int64_t begin = s.find(0, document_start);
    while (begin < s.tokens()) {
      const int64_t end = s.find(begin + 1, document_start);
      spans.push_back({i, begin, end - begin});
      begin = end;
    }
  }
  return spans;
}

void ShardSet::read_span(const DocumentSpan& span, int32_t* out) const {
  require(span.shard >= 0 && span.shard < size(), "a shard of the set");
  shard(span.shard).read(span.begin, span.length, out, vocab_);
}

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
