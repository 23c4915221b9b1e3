#pragma once
// What a task declares in its registry, and a task with its options: sequences without end, each a
// pure function of its number.

#include <cstdint>
#include <string>
#include <vector>

#include "core/options.h"
#include "core/rng.h"
#include "tasks/draws.h"
#include "tasks/example.h"

namespace bamtrain {

/// Lengths of what is drawn at random, the source; both inclusive.
struct LengthRange {
  int64_t shortest = 1, longest = 1;
  bool operator==(const LengthRange&) const = default;
};

struct TaskInfo;

/// What a sequence is drawn from, beside its own numbers.
struct TaskContext {
  const TaskInfo& info;
  const Options& options;
  const Rng& shared;  // of what all sequences of a set have in common
};

struct TaskInfo {
  std::string name;
  std::string description;  // one line
  std::vector<OptionSpec> options = {};

  LengthRange lengths;                     // of training, by default
  int64_t least_length = 1;                // below it there is no sequence
  int64_t most_length = int64_t{1} << 20;  // above it a sequence would draw too many numbers
  /// Its sequences are those of a user's file, and so are their lengths and ids.
  bool of_file = false;
  /// Its ids are those of a tokenizer whose file its option `tokenizer` names: inputs, classes,
  /// symbol and label are not known here.
  bool of_tokenizer = false;
  /// Whether a step's sequences share one length, that of their step.
  bool length_of_step = false;
  /// Whether a position reads those before it alone. False: it reads all.
  bool causal = true;
  /// Whether its inputs are items (core/retrieval_input.h) and not ids of an embedding: for models
  /// of ModelKind::max_retrieval, and for no other.
  bool of_items = false;

  int64_t inputs = 0;   // input ids are below it: rows of an embedding, unless of_items
  int64_t classes = 0;  // targets are: columns of the logits
  int32_t padding = 0;  // the id behind a sequence that is shorter than its neighbours
  /// The class behind which an answer has ended: its places beyond are not compared. None:
  /// kIgnoreIndex.
  int32_t terminator = kIgnoreIndex;

  /// The target that ends an answer which a decoder writes token by token. None: kIgnoreIndex,
  /// where answers are no continuation.
  int32_t end = kIgnoreIndex;

  /// The most inputs of a sequence of this source length.
  int64_t (*most_inputs)(int64_t length) = nullptr;
  /// Replaces `out`.
  void (*draw)(const TaskContext& context, int64_t length, Draws* draws, Example* out) = nullptr;
  /// What a person reads for an input id, and for a class.
  std::string (*symbol)(int32_t input) = nullptr;
  std::string (*label)(int32_t target) = nullptr;
};

/// Error (ExitCode::config) at `where` unless the task has sequences of all these lengths.
void check_lengths(const TaskInfo& info, LengthRange lengths, const std::string& where);

/// A set of sequences.
class Task {
 public:
  /// Sets of different names under a seed have nothing in common: "train", "val".
  /// Error (ExitCode::config), whose where() is "{length}", where `lengths` are not what the task
  /// has. REQUIRES: `info` outlives the task, as registries do; options are complete.
  Task(const TaskInfo& info, Options options, LengthRange lengths, uint64_t seed,
       const std::string& set);
  virtual ~Task() = default;

  const TaskInfo& info() const { return info_; }
  const Options& options() const { return options_; }
  LengthRange lengths() const { return lengths_; }
  /// Inputs of the longest sequence, at most.
  int64_t most_inputs() const { return info_.most_inputs(lengths_.longest); }
  /// How many sequences there are before they repeat; 0: they do not.
  virtual int64_t count() const { return 0; }

  /// The source length that number `n` has, uniform over the range: of a sequence, or of a step
  /// whose sequences share it. REQUIRES: 0 <= n < 2^63.
  virtual int64_t length(int64_t n) const;
  /// Sequence number `index`, of that source length. Thread-safe.
  /// REQUIRES: 0 <= index < Draws::kMaxIndex; the length is in the range.
  virtual void draw(int64_t index, int64_t length, Example* out) const;
  /// What a person reads for an input id, and for a class. REQUIRES: no task of a file.
  virtual std::string symbol(int32_t input) const { return info_.symbol(input); }
  virtual std::string label(int32_t target) const { return info_.label(target); }

 private:
  const TaskInfo& info_;
  Options options_;
  LengthRange lengths_;
  Rng sequences_, length_, shared_;
};

}  // namespace bamtrain
