#pragma once
// Biases that read queries and keys, and mixes of heads, which read the scores of all, on a device.
// Kernels of the bias form b of every logit of some of the queries; those of attention find it
// there (FormedBias). Backward they leave p and dz instead, from which other kernels make what
// belongs to the bias, and dq, dk and dv. Queries are taken in parts, one after another, so that
// this takes O(T) memory.

#include "attention.h"

namespace bamtrain::kernels {

/// A part is some whole sequences, or some of the queries of one: whole blocks of them.
constexpr int kPartRows = 2 * kTile;
/// Logits of a part, more where kPartRows queries of all heads have more: 44 MiB of an array, and
/// 132 of the three of a mix's backward pass.
constexpr int64_t kPartLogits = int64_t{11} << 20;

constexpr int64_t content_stride(int T) { return int64_t{attention_tiles(T)} * kTile; }
constexpr int64_t content_rows(int queries) {
  return (int64_t{queries} + kPartRows - 1) / kPartRows * kPartRows;
}
/// Floats of one of the arrays in ContentScratch::logits, enough for any smaller B or T too; and
/// those arrays: b; in a backward pass dz and p too, and scores where the bias reads them.
constexpr int64_t content_logits(int B, int T, int H) {
  const int64_t row = H * content_stride(T);
  return std::max(kPartRows * row, std::min(B * content_rows(T) * row, kPartLogits));
}
constexpr int content_arrays(bool scores, bool backward) { return !backward ? 1 : scores ? 3 : 2; }
/// Blocks among which rows are divided whose sum is dpositions.
constexpr int kPositionSlots = 64;
/// Blocks among which queries are divided whose sums are the gradients of a mix; and the elements
/// of these: of w1 for all heads' scores and biases, whatever of them a form reads, c1, w2, c2.
constexpr int kMixSlots = 256;
constexpr int64_t mix_elements(int H, int hidden) {
  return int64_t{hidden} * (2 * H + 1) + int64_t{H} * (hidden + 1);
}
/// Where biases are of distance (attention_mix_distances.cuh) a block owns 64 distances of one of
/// so many shares of the queries, of eight classes: kMixSlots blocks at least.
constexpr int mix_distance_tiles(int T) { return (T + 7 + kTile - 1) / kTile; }
constexpr int mix_shares(int T) {
  const int tiles = mix_distance_tiles(T);
  return (kMixSlots / 8 + tiles - 1) / tiles * 8;
}
constexpr int64_t mix_slots(int T) { return int64_t{mix_distance_tiles(T)} * mix_shares(T); }
/// The most of these, and of mix_shares times T, for any T up to this: fewer tiles are divided
/// among more shares.
constexpr int64_t most_mix_slots(int T) { return kMixSlots + int64_t{8} * mix_distance_tiles(T); }
constexpr int64_t most_mix_share_rows(int T) { return int64_t{kMixSlots} * kTile + int64_t{8} * T; }
/// Floats of ContentScratch::sums, enough for any smaller B or T too: see ContentSums. `positions`:
/// ContextualInputs::count, or 0; `hidden`: MixInputs', or 0.
constexpr int64_t content_sums(int B, int T, int H, int K, int D, int positions, int hidden,
                               bool backward) {
  const int64_t rows = int64_t{B} * H * T;
  const int64_t distances = int64_t{2} * H * T;  // or half of them where attention is causal
  const int64_t forward = rows + distances + int64_t{T} * hidden;
  if (!backward) return forward;
  const int64_t of_mix =
      most_mix_slots(T) * mix_elements(H, hidden) + most_mix_share_rows(T) * (hidden + H);
  return forward + rows + distances + int64_t{2} * T * K * D +
         (rows + kPositionSlots * D) * positions + (hidden > 0 ? of_mix : 0);
}

/// The arrays in ContentScratch::sums; those from dk on in a backward pass alone.
struct ContentSums {
  // Of a relative bias: <u, k> / sqrt(D), (B, H, T), and <w, r> / sqrt(D), (H, distances()). Of a
  // mix with biases of distance: what these add to the hidden layer, (T, hidden).
  float *of_keys, *of_distances, *of_table;
  float *dk, *dv;  // (T, K, D): of the sequence of a part, where it is not whole
  // Of a relative bias: the sums of db by key, (B, H, T), and by distance, (H, distances()).
  float *db_of_keys, *db_of_distances;
  // Of a contextual bias: what belongs to <q, E>, (B, H, T, count); and partial sums of dpositions,
  // (kPositionSlots, D, count).
  float *of_positions, *partial;
  // Of a mix: slots of sums (mix_slots, mix_elements), and where biases are of distance shares of
  // sums of the gradients of the hidden layer and of the biases, (mix_shares, T, hidden + H).
  float *of_mix, *of_shares;

  template <class A>
  ContentSums(const AttentionInputs<A>& a, float* memory) {
    const int64_t keys = int64_t{a.T} * a.K * a.D, rows = int64_t{a.B} * a.H * a.T;
    of_keys = memory;
    of_distances = of_keys + rows;
    of_table = of_distances + int64_t{a.H} * a.distances();
    dk = of_table + int64_t{a.T} * a.mix.hidden;
    dv = dk + keys;
    db_of_keys = dv + keys;
    db_of_distances = db_of_keys + rows;
    of_positions = db_of_distances + int64_t{a.H} * a.distances();
    partial = of_positions + rows * a.contextual.count;
    of_mix = partial + int64_t{kPositionSlots} * a.D * a.contextual.count;
    of_shares = of_mix + mix_slots(a.T) * mix_elements(a.H, a.mix.hidden);
  }
};

/// Of the current part: which it is, and what its backward kernels read and write in addition to
/// AttentionInputs::formed, which holds p and dz.
template <class A>
struct ContentGradients {
  AttentionInputs<A> in;  // of the part's sequences
  Rows<const A> dout;
  Rows<A> dq, dk, dv;
  ContentSums sums;  // of_keys and db_of_keys: of the part's sequences
  BiasOutputs bias;  // dnumbers, dfire_u and dfire_psi: likewise
  float* of_fire;    // (B, H, attention_tiles(T), kFirePartial): likewise
  // (B, H, T), of the part's sequences: in bf16 what the sums of rows of dz have in place of zero,
  // for the rounding of out in D. Null in fp32, and in plain loops.
  const float* rest_of_dz;
  bool first, last;  // part of its sequences
  bool first_of_all, last_of_all;
};

/// What attention_content.cu defines for the head dimension that it is compiled for, in bf16, and
/// attention_content_reference.cu for any. `a` is of the part.
template <int D>
device::LaunchStatus content_biases_of(const AttentionInputs<bf16>& a, const ContentSums& sums,
                                       device::Stream stream);
template <int D>
device::LaunchStatus content_gradients_of(const ContentGradients<bf16>& g, device::Stream stream);
template <class A>
device::LaunchStatus content_biases_reference(const AttentionInputs<A>& a, const ContentSums& sums,
                                              device::Stream stream);
template <class A>
device::LaunchStatus content_gradients_reference(const ContentGradients<A>& g,
                                                 device::Stream stream);
/// Of a contextual bias in either precision (attention_cope.cu): b of a part from its scores;
/// in place of its dz what belongs to the scores, the logits' part of it too, and what belongs to
/// <q, E>; and dpositions of all.
template <class A>
device::LaunchStatus contextual_biases(const AttentionInputs<A>& a, device::Stream stream);
template <class A>
device::LaunchStatus contextual_gradients(const ContentGradients<A>& g, device::Stream stream);
template <class A>
device::LaunchStatus contextual_end(const AttentionInputs<A>& a, const BiasOutputs& g,
                                    const ContentSums& sums, device::Stream stream);
/// Of a mix of heads in either precision (attention_mix.cu), in bf16 on tensor cores where these
/// take as many heads: what all parts read; b of a part from its scores; what belongs to the scores
/// in place of its dz, and the gradients of the prior's own bias and of the network; and what
/// remains of those behind the parts.
template <class A>
device::LaunchStatus mix_begin(const AttentionInputs<A>& a, const ContentSums& sums,
                               device::Stream stream);
template <class A>
device::LaunchStatus mix_biases(const AttentionInputs<A>& a, const ContentSums& sums,
                                device::Stream stream);
template <class A>
device::LaunchStatus mix_gradients(const ContentGradients<A>& g, device::Stream stream);
template <class A>
device::LaunchStatus mix_end(const AttentionBackward<A>& g, const ContentSums& sums,
                             device::Stream stream);
/// On tensor cores, of biases of distance and of others (attention_mix_tiles.cu). Of others what
/// belongs to the prior's bias comes in place of the scores.
constexpr int kMostTiledHeads = 32;
device::LaunchStatus mix_biases_by_distance(const AttentionInputs<bf16>& a, const ContentSums& sums,
                                            device::Stream stream);
device::LaunchStatus mix_gradients_by_distance(const ContentGradients<bf16>& g,
                                               device::Stream stream);
device::LaunchStatus mix_biases_tiled(const AttentionInputs<bf16>& a, device::Stream stream);
device::LaunchStatus mix_gradients_tiled(const ContentGradients<bf16>& g, device::Stream stream);

/// Of what reads scores: b from those of a part, and the gradients from dz.
template <class A>
device::LaunchStatus biases_of_scores(const AttentionInputs<A>& a, const ContentSums& sums,
                                      device::Stream stream) {
  return a.mix.w1 != nullptr ? mix_biases(a, sums, stream) : contextual_biases(a, stream);
}
template <class A>
device::LaunchStatus gradients_of_scores(const ContentGradients<A>& g, device::Stream stream) {
  return g.in.mix.w1 != nullptr ? mix_gradients(g, stream) : contextual_gradients(g, stream);
}

/// dfire (H, kFirePartial): the sums of partial (B, H, tiles, kFirePartial).
device::LaunchStatus join_fire(double* dfire, const float* partial, int B, int H, int tiles,
                               device::Stream stream);
/// For all sequences, before the parts and behind them.
template <class A>
device::LaunchStatus content_begin(const AttentionInputs<A>& a, const ContentSums& sums,
                                   device::Stream stream);
template <class A>
device::LaunchStatus content_end(const AttentionBackward<A>& g, const ContentSums& sums,
                                 device::Stream stream);

/// Null: nothing is wrong.
template <class A>
const char* content_refusal(const AttentionInputs<A>& a, bool backward) {
  const ContentScratch& s = a.content;
  if (s.logits == nullptr || s.sums == nullptr) {
    return "attention: scratch of a bias that reads queries and keys is missing";
  }
  const int arrays = content_arrays(reads_scores(a), backward);
  if (s.count < arrays * kPartRows * a.H * content_stride(a.T)) {
    return "attention: scratch for less than 128 queries";
  }
  if (s.count_of_sums <
      content_sums(a.B, a.T, a.H, a.K, a.D, a.contextual.count, a.mix.hidden, backward)) {
    return "attention: scratch for the sums of a smaller shape";
  }
  return nullptr;
}

/// From a part to what is of its sequences: those from `sequence` on.
template <class Element>
Rows<Element> of_sequences(const Rows<Element>& x, int sequence) {
  return {x.data == nullptr ? nullptr : x.data + sequence * x.batch, x.batch, x.row, x.head};
}
template <class T>
T* of_rows(T* x, int64_t rows) {
  return x == nullptr ? nullptr : x + rows;
}
inline SavedRows of_sequences(const SavedRows& s, int sequence, int H, int T) {
  const int64_t heads = int64_t{sequence} * H;
  return {of_rows(s.level, heads * T), of_rows(s.threshold, heads * T), of_rows(s.last, heads * T),
          of_rows(s.live, heads * live_groups(T) * live_words(T))};
}

struct QueryPart {
  int sequence, sequences;
  int first, queries;
};

/// f(part) of each in turn, while they succeed. `count`: logits that a part may have.
template <class A, class F>
device::LaunchStatus for_query_parts(const AttentionInputs<A>& a, int64_t count, const F& f) {
  const int all = a.queries(), end = a.end_of_queries();
  const int64_t row = a.H * content_stride(a.T), whole = content_rows(all) * row;
  const auto sequences = static_cast<int>(std::clamp<int64_t>(count / whole, 1, a.B));
  const auto queries = static_cast<int>(
      std::min<int64_t>(all, count >= whole ? all : count / row / kPartRows * kPartRows));
  for (int b = 0; b < a.B; b += sequences) {
    for (int i = a.formed.first; i < end; i += queries) {
      const device::LaunchStatus status =
          f(QueryPart{b, std::min(sequences, a.B - b), i, std::min(queries, end - i)});
      if (!status.ok()) return status;
    }
  }
  return {};
}

/// `a` of a part, with arrays for what is formed. Null s: b has the scores' place.
template <class A>
AttentionInputs<A> of_part(const AttentionInputs<A>& a, const QueryPart& part, float* b,
                           float* p = nullptr, float* s = nullptr) {
  AttentionInputs<A> of = a;
  of.B = part.sequences;
  of.q = of_sequences(a.q, part.sequence);
  of.k = of_sequences(a.k, part.sequence);
  of.v = of_sequences(a.v, part.sequence);
  of.scale = of_rows(a.scale, int64_t{part.sequence} * a.H * a.T);
  of.first_key = a.first_key + int64_t{part.sequence} * a.T;
  of.last_key = of_rows(a.last_key, int64_t{part.sequence} * a.T);
  if (a.numbers != nullptr) of.numbers = a.numbers_of(part.sequence, 0);
  of.fire.positions = of_rows(a.fire.positions, int64_t{part.sequence} * a.T);
  of.formed = {b,
               p,
               s != nullptr ? s : b,
               part.first,
               part.queries,
               content_rows(part.queries),
               content_stride(a.T)};
  return of;
}
template <class A>
ContentSums of_part(const ContentSums& sums, const QueryPart& part, const AttentionInputs<A>& a) {
  const int64_t rows = int64_t{part.sequence} * a.H * a.T;
  ContentSums of = sums;
  of.of_keys += rows;
  of.db_of_keys += rows;
  of.of_positions += rows * a.contextual.count;
  return of;
}
template <class A>
BiasOutputs of_part(const BiasOutputs& g, const QueryPart& part, const AttentionInputs<A>& a) {
  const int64_t rows = int64_t{part.sequence} * a.H * a.T;
  BiasOutputs of = g;
  of.dnumbers = of_rows(g.dnumbers, rows);
  of.dfire_u = of_rows(g.dfire_u, rows);
  of.dfire_psi = of_rows(g.dfire_psi, rows);
  return of;
}
/// What forms logits sees a bias that was formed, and no other.
template <class A>
AttentionInputs<A> formed_alone(AttentionInputs<A> a) {
  const bool causal = a.causal;
  static_cast<BiasInputs&>(a) = {};
  a.causal = causal;
  return a;
}

/// A forward pass, or what else reads logits: form(a, sums, stream) forms the biases of a part,
/// run(a, part) does what is asked for with its queries.
template <class A, class Form, class Run>
device::LaunchStatus with_content(const AttentionInputs<A>& a, device::Stream stream,
                                  const Form& form, const Run& run) {
  if (const char* why = content_refusal(a, false)) return device::refused(why);
  const ContentSums sums(a, a.content.sums);
  const device::LaunchStatus status = content_begin(a, sums, stream);
  if (!status.ok()) return status;
  return for_query_parts(a, a.content.count, [&](const QueryPart& part) {
    const AttentionInputs<A> of = of_part(a, part, a.content.logits);
    const device::LaunchStatus formed = form(of, of_part(sums, part, a), stream);
    return formed.ok() ? run(formed_alone(of), part) : formed;
  });
}

template <class A>
AttentionForward<A> of_part(const AttentionForward<A>& f, const AttentionInputs<A>& in,
                            const QueryPart& part) {
  return {in, of_sequences(f.out, part.sequence), of_sequences(f.saved, part.sequence, in.H, in.T)};
}

/// A backward pass: run(g) of a part leaves p and dz, finish(gradients) makes the rest of them.
template <class A, class Form, class Run, class Finish>
device::LaunchStatus backward_with_content(const AttentionBackward<A>& g, device::Stream stream,
                                           const Form& form, const Run& run, const Finish& finish) {
  const AttentionInputs<A>& a = g.in;
  if (const char* why = content_refusal(a, true)) return device::refused(why);
  const int arrays = content_arrays(reads_scores(a), true);
  const ContentSums sums(a, a.content.sums);
  const int64_t count = a.content.count / arrays;
  float* const b = a.content.logits;
  device::LaunchStatus status = content_begin(a, sums, stream);
  if (!status.ok()) return status;
  status = for_query_parts(a, count, [&](const QueryPart& part) {
    const AttentionInputs<A> in =
        of_part(a, part, b, b + count, arrays > 2 ? b + 2 * count : nullptr);
    AttentionBackward<A> of = g;
    of.in = formed_alone(in);
    of.out = of_sequences(g.out, part.sequence);
    of.dout = of_sequences(g.dout, part.sequence);
    of.saved = of_sequences(g.saved, part.sequence, a.H, a.T);
    of.dq = of_sequences(g.dq, part.sequence);
    of.dk = of_sequences(g.dk, part.sequence);
    of.dv = of_sequences(g.dv, part.sequence);
    of.dscale = of_rows(g.dscale, int64_t{part.sequence} * a.H * a.T);
    of.dalpha = of_rows(g.dalpha, int64_t{part.sequence} * a.H * a.T);
    const ContentSums own = of_part(sums, part, a);
    device::LaunchStatus done = form(in, own, stream);
    if (done.ok()) done = run(of);
    const bool last = part.first + part.queries == a.T;
    if (!done.ok()) return done;
    const int64_t of_fire = int64_t{part.sequence} * a.H * attention_tiles(a.T) * kFirePartial;
    float* const rest =  // BackwardSaved::factor
        std::is_same_v<A, bf16> && a.causal ? g.row_product + int64_t{part.sequences} * a.H * a.T
                                            : nullptr;
    return finish(ContentGradients<A>{in, of.dout, of.dq, of.dk, of.dv, own, of_part<A>(g, part, a),
                                      of_rows(g.partial, of_fire), rest, part.first == 0, last,
                                      part.sequence == 0 && part.first == 0,
                                      last && part.sequence + part.sequences == a.B});
  });
  return status.ok() ? content_end(g, sums, stream) : status;
}

}  // namespace bamtrain::kernels
