#pragma once
// The registry entry of a task, and a task with its options: an infinite set of sequences, each a
// pure function of its number.

#include <cstdint>
#include <string>
#include <vector>

#include "core/options.h"
#include "core/rng.h"
#include "tasks/draws.h"
#include "tasks/example.h"

namespace bamtrain {

/// Lengths of the randomly drawn source; both inclusive.
struct LengthRange {
  int64_t shortest = 1, longest = 1;
  bool operator==(const LengthRange&) const = default;
};

struct TaskInfo;

/// The inputs for drawing a sequence, besides its random numbers.
struct TaskContext {
  const TaskInfo& info;
  const Options& options;
  const Rng& shared;  // random numbers common to all sequences of a set
};

struct TaskInfo {
  std::string name;
  std::string description;  // one line
  std::vector<OptionSpec> options = {};

  LengthRange lengths;                     // default for training
  int64_t least_length = 1;                // no shorter sequences exist
  int64_t most_length = int64_t{1} << 20;  // longer sequences would draw too many numbers
  /// Sequences, lengths and ids come from a user's file.
  bool of_file = false;
  /// Ids are those of the tokenizer that the option `tokenizer` names: inputs, classes, symbol and
  /// label are unknown here.
  bool of_tokenizer = false;
  /// Whether all sequences of a step share one length.
  bool length_of_step = false;
  /// Whether a position reads only itself and earlier ones. False: it reads all.
  bool causal = true;
  /// Whether inputs are items (core/retrieval_input.h) and not ids of an embedding: only for models
  /// of ModelKind::max_retrieval.
  bool of_items = false;

  int64_t inputs = 0;   // upper bound of input ids: embedding rows, unless of_items
  int64_t classes = 0;  // upper bound of targets: columns of the logits
  int32_t padding = 0;  // id that pads shorter sequences of a batch
  /// The class that ends an answer: positions after it are not compared. kIgnoreIndex: no
  /// terminator.
  int32_t terminator = kIgnoreIndex;

  /// The target that ends an answer in token-by-token decoding. kIgnoreIndex: answers are not
  /// continuations.
  int32_t end = kIgnoreIndex;

  /// Maximum number of inputs for this source length.
  int64_t (*most_inputs)(int64_t length) = nullptr;
  /// Fills `out`, which is empty.
  void (*draw)(const TaskContext& context, int64_t length, Draws* draws, Example* out) = nullptr;
  /// Display text of an input id, and of a class.
  std::string (*symbol)(int32_t input) = nullptr;
  std::string (*label)(int32_t target) = nullptr;
};

/// Throws Error (ExitCode::config) at `where` unless the task has sequences of all these lengths.
void check_lengths(const TaskInfo& info, LengthRange lengths, const std::string& where);

/// A set of sequences.
class Task {
 public:
  /// Sets with different names ("train", "val") are independent under one seed. Throws Error
  /// (ExitCode::config), with where() "{length}", for `lengths` outside the task's range. REQUIRES:
  /// `info` outlives the task, as registries do; options are complete.
  Task(const TaskInfo& info, Options options, LengthRange lengths, uint64_t seed,
       const std::string& set);
  virtual ~Task() = default;

  const TaskInfo& info() const { return info_; }
  const Options& options() const { return options_; }
  LengthRange lengths() const { return lengths_; }
  /// Upper bound on the inputs of a sequence.
  int64_t most_inputs() const { return info_.most_inputs(lengths_.longest); }
  /// Number of sequences before they repeat; 0: they never repeat.
  virtual int64_t count() const { return 0; }

  /// Source length number `n`, uniform over the range: of a sequence, or of a step whose sequences
  /// share it. REQUIRES: 0 <= n < 2^63.
  virtual int64_t length(int64_t n) const;
  /// Draws sequence number `index` of that source length; overwrites `out`. Thread-safe. REQUIRES:
  /// 0 <= index < Draws::kMaxIndex; the length is in the range.
  virtual void draw(int64_t index, int64_t length, Example* out) const;
  /// Display text of an input id, and of a class. REQUIRES: not a task of a file.
  virtual std::string symbol(int32_t input) const { return info_.symbol(input); }
  virtual std::string label(int32_t target) const { return info_.label(target); }

 private:
  const TaskInfo& info_;
  Options options_;
  LengthRange lengths_;
  Rng sequences_, length_, shared_;
};

}  // namespace bamtrain
