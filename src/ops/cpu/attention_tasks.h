#pragma once
// How the CPU attention is cut into tasks. A task is one key head of one sequence with the query
// heads that read it. Where there are too few of those for the threads, a task is one part of the
// queries or keys. Neither changes the order in which anything is added: bits do not depend on
// which of the two it was.

#include <cstdint>

#include "core/parallel.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/isa.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

struct Span {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
};

/// Parts of a sequence, a number that depends on its length alone; none is empty.
int64_t parts_of(int64_t T);
/// Queries, by position, of about the same number of (query, key) pairs; whole tiles; parts ascend.
Span query_part(const Attention& a, int64_t part);
/// The same for keys, of a sequence without a past.
Span key_part(int64_t T, int64_t part);
/// The end of the keys that queries of the parts up to this one may see.
inline int64_t keys_of_part(const Attention& a, int64_t part) {
  return a.causal() ? query_part(a, part).end : a.q.shape[1];
}

/// Whether `tasks` leave so many threads idle that small ones end sooner, which together do `cost`
/// times the work.
bool worth_splitting(int64_t tasks, double cost);

/// f(slot, b, heads, queries) for the tasks of a pass over all queries, by position. The query
/// heads of a task read one key head.
template <class F>
void for_query_tasks(const Attention& a, F&& f) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2], K = a.k.shape[2];
  const int64_t group = H / K, parts = parts_of(T);
  constexpr double kPackedAgain = 1.1;
  if (worth_splitting(B * K, kPackedAgain)) {
    parallel_for_slots(B * H * parts, [&](int64_t n, int64_t slot) {
      const int64_t head = n / parts, h = head % H;
      f(slot, head / H, Span{h, h + 1}, query_part(a, n % parts));
    });
  } else {
    parallel_for_slots(B * K, [&](int64_t n, int64_t slot) {
      const int64_t kh = n % K;
      f(slot, n / K, Span{kh * group, (kh + 1) * group}, Span{a.past(), a.past() + T});
    });
  }
}

/// With a mix, sequences that run together: as many as keep the threads busy.
int64_t mix_group(int64_t B, int64_t T);

/// Scratch of one task, in floats: see attention_forward.cpp and attention_backward.cpp.
int64_t forward_floats(const WorkspaceShape& w, const ContentShape& content);
int64_t backward_floats(const WorkspaceShape& w, const ContentShape& content);

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
