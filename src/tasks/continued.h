#pragma once
// Sequences of ASEntmax's tasks: `bos src sep trg eos`, which a decoder continues after sep, and
// `bos text eos` with a label at each token of the text.
//
// Ids: data from 0 to M, then padding, bos, eos, an unused mask, sep.

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace bamtrain {

/// Ids of a task whose largest data id is M.
template <int32_t M>
struct DataIds {
  static constexpr int32_t padding = M + 1, bos = M + 2, eos = M + 3, mask = M + 4, sep = M + 5;
  static constexpr int64_t rows = M + 6;
};

/// A task of such sequences, with its ids and their display. Lengths: as in training.
template <int32_t M>
TaskInfo task_of_ids() {
  using Ids = DataIds<M>;
  TaskInfo t;
  t.lengths = {32, 64};
  t.inputs = t.classes = Ids::rows;
  t.padding = Ids::padding;
  t.symbol = t.label = [](int32_t id) -> std::string {
    switch (id) {
      case Ids::padding:
        return "<pad>";
      case Ids::bos:
        return "<bos>";
      case Ids::eos:
        return "<eos>";
      case Ids::mask:
        return "<mask>";
      case Ids::sep:
        return "<sep>";
      default:
        return std::to_string(id);
    }
  };
  return t;
}

enum class Separator { none, sep };

/// Inputs are the sequence without its last token; targets are the tokens of trg, and eos.
template <int32_t M>
void write_continued(const Symbols& src, Separator separator, const Symbols& trg, Example* out) {
  using Ids = DataIds<M>;
  out->add(Ids::bos);
  for (const int32_t id : src) out->add(id);
  if (separator == Separator::sep) out->add(Ids::sep);
  for (const int32_t id : trg) {
    out->targets.back() = id;
    out->add(id);
  }
  out->targets.back() = Ids::eos;
}

template <int32_t M>
void write_labelled(const Symbols& text, const Symbols& labels, Example* out) {
  using Ids = DataIds<M>;
  out->add(Ids::bos);
  for (size_t i = 0; i < text.size(); ++i) out->add(text[i], labels[i]);
  out->add(Ids::eos);
}

}  // namespace bamtrain
