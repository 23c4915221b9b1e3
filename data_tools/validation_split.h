#pragma once
// Chooses the validation documents.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data_tools/document_spill.h"
#include "data_tools/shard_set_writer.h"

namespace bamtrain {

/// The size of the validation set, by one of three measures; no validation if all are 0.
struct ValidationShare {
  int64_t documents = 0;  // exact number, drawn at random
  double fraction = 0;    // probability of each document, in (0, 1)
  int64_t tokens = 0;     // number of first tokens of the text
  int64_t unused = 0;     // tokens after these that are in neither set

  bool any() const { return documents > 0 || fraction > 0 || tokens > 0; }
  bool drawn() const { return documents > 0 || fraction > 0; }
};

/// A document's draw is the first 64 bits of its text's SHA-256, most significant byte first. A
/// document is held out if its draw is in the lowest `fraction` of the range, or among the
/// `documents` lowest. So its set depends only on its text, not on adjacent documents or the
/// tokenizer, and a duplicate is never in both sets. Only with `documents` may an added document
/// displace another.
///
/// With `tokens`, the first `tokens` tokens are split off wherever they end, and so are the
/// `unused` ones after them: a document may be divided between sets.
class ValidationSplit {
 public:
  static uint64_t draw(std::string_view text);

  /// Progress, besides the content of the sets.
  struct State {
    int64_t documents = 0;   // seen
    int64_t train = 0;       // of them in training
    int64_t tokens = 0;      // seen
    int64_t held_bytes = 0;  // size of the file of held documents
  };

  /// With `documents`, that many are held in the file `held` until finish(); one that is displaced
  /// by a later one joins the training set then. REQUIRES: at most one kind of share; the sinks
  /// outlive this; `val` is null exactly if the share is 0.
  ValidationSplit(ValidationShare share, DocumentSink* train, ShardSetWriter* val,
                  const std::string& held, int width, const State& state);

  /// Adds the next document, with its draw.
  void add(std::span<const int32_t> document, uint64_t draw);

  /// Flushes held documents to disk and returns the state to resume from.
  State sync();

  /// Writes the held documents, in order. Throws Error (data) if there were no documents or all are
  /// for validation; with `val_required`, also if none is for validation.
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
  std::vector<Record> held_;  // a heap: highest draw first
};

}  // namespace bamtrain
