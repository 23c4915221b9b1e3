#pragma once
// The bias of a task of the CPU attention: b of blocks of rows and keys, and its adjoint. A bias
// that reads queries and keys is formed of whole rows, one at a time; any other of tiles too.

#include <algorithm>

#include "ops/cpu/attention.h"
#include "ops/cpu/attention_tasks.h"
#include "ops/cpu/attention_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// The biases of a block: of row r and key n at data[r * row_stride + n], plus of_keys[n] where
/// there is such.
struct BiasRows {
  const float* data;
  int64_t row_stride;
  const float* of_keys = nullptr;  // of a row

  Vec of_row(int64_t n) const {
    const Vec b = simd::load(data + n);
    return of_keys ? b + simd::load(of_keys + n) : b;
  }
};

/// z = content s + bias b in place of the scores of a row.
void form_logits(const Block& row, const BiasRows& b, float content, float bias);

/// What the content scores and the bias of rows are multiplied by: z = content s + bias b.
struct RowFactors {
  const float *content, *bias;  // by row of a block
  RowFactors from(int64_t r) const { return {content + r, bias + r}; }
};

/// Where a task's gradients of a bias go: a head, and the queries by keys that the task adds.
struct TaskHead {
  int64_t b = 0, h = 0;
  Span queries, keys;
  bool for_keys = true, for_queries = true;
  // By position: for the gradients of rows and of keys that are another task's.
  float *elsewhere = nullptr, *other_keys = nullptr;
  bool clear = true;  // gradients begin at 0

  /// The head's rows of a (B, H, T) tensor, or `elsewhere`.
  float* of_rows(const Tensor& x, const Attention& a) const {
    float* const rows =
        for_queries ? x.ptr<float>() + (b * a.q.shape[2] + h) * a.q.shape[1] : elsewhere;
    if (clear) std::fill_n(rows + queries.begin, queries.end - queries.begin, 0.0f);
    return rows;
  }
};

class LogitBias {
 public:
  virtual ~LogitBias() = default;

  /// What follows is of this head of a sequence,
  virtual void set_head(int64_t, int64_t) {}
  /// and of blocks of these rows, which see keys [j0, end).
  virtual void set_rows(int64_t /*i0*/, int64_t /*i1*/, int64_t /*j0*/, int64_t /*end*/) {}
  /// The biases of a block, until the next call. It reads the block's scores if reads_scores().
  virtual BiasRows form(const Block& scores) = 0;
  /// z = content s + bias b in place of the scores of a row.
  virtual void add_to(const Block& row, float content, float bias) {
    form_logits(row, form(row), content, bias);
  }
  /// Whether a key's bias reads the scores of others. add() then turns dz into ds.
  virtual bool reads_scores() const { return false; }

  // The adjoint.
  virtual void set_gradients(const TaskHead&) {}
  /// What follows is of this part of the queries. `mine`: its partial sums are this task's, and
  /// begin at 0 if `clear`.
  virtual void set_part(int64_t, bool /*mine*/, bool /*clear*/) {}
  /// Adds what db = f.bias dz gives to the bias's gradients. If reads_scores(), the block was
  /// formed last. Past its keys dz is 0.
  virtual void add(const Block& dz, const RowFactors& f) = 0;
  /// Of a bias that reads queries and keys, what it gives to them. After the blocks of rows: adds
  /// to dquery (rows, padded(D)), which is multiplied by `unit` when it is complete. After the
  /// rows of a head: to dkeys (T, padded(D)).
  virtual void end_rows(float* /*dquery*/, float /*unit*/) {}
  virtual void end_head(const float* /*keys*/, float* /*dkeys*/) {}
};

/// A partial sum of a bias's gradient, of one head and one part of the queries: a reversed table
/// (table_length), which numbers of tokens and of fire take parts of.
inline float* partial_table(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h,
                            int64_t part) {
  const int64_t heads = b * a.q.shape[2] + h;
  return s.dtable.ptr<float>() + (heads * parts_of(a.q.shape[1]) + part) * s.dtable.stride[2];
}

/// The same of a bias that reads queries and keys: of one head of a sequence.
inline float* content_partial(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h) {
  return s.of_content.ptr<float>() + (b * a.q.shape[2] + h) * s.of_content.stride[0];
}

class NoBias final : public LogitBias {
 public:
  static int64_t floats(int64_t T, int64_t, const ContentShape&) { return padded_keys(T) + kK; }

  NoBias(const Attention& a, const AttentionScratch&, const BiasGradients*, Pieces& pieces)
      : zeros_(pieces.take(floats(a.k.shape[1], 0, {}))) {
    std::fill_n(zeros_, floats(a.k.shape[1], 0, {}), 0.0f);
  }
  BiasRows form(const Block&) override { return {zeros_, 0}; }
  void add(const Block&, const RowFactors&) override {}
  static void join(const BiasGradients&, const Attention&, const AttentionScratch&) {}

 private:
  float* zeros_;
};

template <class F>
inline void with_type_of(const Nothing&, F&& f) {
  f.template operator()<NoBias>();
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
