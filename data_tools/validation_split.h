#pragma once
// Which documents are for validation.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data_tools/document_spill.h"
#include "data_tools/shard_set_writer.h"

namespace bamtrain {

/// How much is for validation, by one of three: none, where all are 0.
struct ValidationShare {
  int64_t documents = 0;  // exactly so many, drawn
  double fraction = 0;    // each document with this probability, in (0, 1), drawn
  int64_t tokens = 0;     // the first so many of the text,
  int64_t unused = 0;     // behind which so many are in neither set

  bool any() const { return documents > 0 || fraction > 0 || tokens > 0; }
  bool drawn() const { return documents > 0 || fraction > 0; }
};

/// A document draws the first 64 bits of its text's SHA-256, the most significant byte first. For
/// validation are those whose draw is in the lowest `fraction` of the range, or the `documents`
/// lowest draws. So a document's set depends on its text alone and not on what is before or behind
/// it or on the tokenizer, and a text that comes twice is never in both; only with `documents` one
/// that is added may take another's place.
///
/// The first `tokens` tokens are cut off wherever they end, the `unused` ones behind them likewise:
/// one document may end in one set and have its rest in another.
class ValidationSplit {
 public:
  static uint64_t draw(std::string_view text);

  /// How far it is, beside what the sets hold.
  struct State {
    int64_t documents = 0;   // seen
    int64_t train = 0;       // of them for training
    int64_t tokens = 0;      // seen
    int64_t held_bytes = 0;  // of the file of documents that are held
  };

  /// With a number of documents, so many are held in the file `held` until finish(), and one that
  /// gives up its place to a later one joins the training set at that moment.
  /// REQUIRES: at most one kind of share; the sinks outlive this; `val` is null exactly where the
  /// share is 0.
  ValidationSplit(ValidationShare share, DocumentSink* train, ShardSetWriter* val,
                  const std::string& held, int width, const State& state);

  /// The next document, which has drawn this.
  void add(std::span<const int32_t> document, uint64_t draw);

  /// What is held is on the disk, in the state that is returned.
  State sync();

  /// Writes the held documents, in order. Error (data) where no document came or all are for
  /// validation, and, with `val_required`, where none is.
  void finish(bool val_required);

  int64_t documents() const { return state_.documents; }
  int64_t tokens() const { return state_.tokens; }

 private:
  using Record = DocumentSpill::Record;
  static bool lower(const Record& a, const Record& b);
  void train(std::span<const int32_t> document);
  void add_by_tokens(std::span<const int32_t> document);
  void hold(std::span<const int32_t> document, uint64_t draw);
  std::optional<Record> take_place(const Record& record);

  ValidationShare share_;
  DocumentSink* train_;
  ShardSetWriter* val_;
  State state_;
  std::optional<DocumentSpill> spill_;
  std::vector<Record> held_;  // a heap: the highest draw in front
};

}  // namespace bamtrain
