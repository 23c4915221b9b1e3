#pragma once
// What the launchers of attention ask of their arguments. Null: nothing is wrong.

#include "arguments.h"
#include "attention.h"

namespace bamtrain::kernels {

template <class A>
const char* refusal(const AttentionInputs<A>& a) {
  constexpr int kGridLimit = 65535;  // of the second and third dimension
  if (a.B < 1 || a.T < 1 || a.H < 1 || a.K < 1) return "attention: a size is not positive";
  if (a.H % a.K != 0) return "attention: the key heads do not divide the query heads";
  if (a.B > kGridLimit || a.H > kGridLimit) return "attention: over 65,535 sequences or heads";
  if (a.T > kLongest) return "attention: a sequence of over 2^30 positions";
  if (a.q.data == nullptr || a.k.data == nullptr || a.v.data == nullptr || a.first_key == nullptr) {
    return "attention: q, k, v or first_key is missing";
  }
  if (a.causal != (a.last_key == nullptr)) return "attention: last_key, unless it is causal";
  if (!a.causal && traits_of(a.normalizer.kind).causal_only) {
    return "attention: a normalizer of keys before the query, and rows that see others";
  }
  const FormedBias& range = a.formed;
  if (range.first < 0 || range.queries < 0 || (range.queries == 0 && range.first > 0) ||
      range.first + int64_t{range.queries} > a.T) {
    return "attention: queries that are not among T";
  }
  if (range.queries > 0 && range.b == nullptr && !a.causal) {
    return "attention: the last queries alone where rows see others";
  }
  if (const char* why = bias_refusal(a, a.T)) return why;
  if (!(a.content_divisor > 0)) return "attention: content_divisor is not positive";
  const NormalizerInputs& n = a.normalizer;
  if (n.kind == NormalizerKind::entmax && n.alphas == nullptr && !(n.alpha > 1)) {
    return "attention: alpha is not above 1";
  }
  if (!traits_of(n.kind).takes_scale && a.scale != nullptr) {
    return "attention: a scale with a normalizer that takes none";
  }
  return nullptr;
}

/// What each normalizer saves.
inline const char* refusal(const NormalizerInputs& n, const SavedRows& s) {
  const NormalizerTraits traits = traits_of(n.kind);
  if (traits.level && s.level == nullptr) return "attention: level is missing";
  if (traits.threshold && s.threshold == nullptr) return "attention: threshold is missing";
  if (traits.last && s.last == nullptr) return "attention: last is missing";
  return nullptr;
}

template <class A>
const char* refusal(const AttentionForward<A>& f) {
  if (const char* why = refusal(f.in)) return why;
  if (f.out.data == nullptr) return "attention: out is missing";
  return refusal(f.in.normalizer, f.saved);
}

template <class A>
const char* refusal(const AttentionBackward<A>& g) {
  if (const char* why = refusal(g.in)) return why;
  if (g.in.formed.queries > 0 && g.in.formed.b == nullptr) {
    return "attention: a backward pass of some queries";
  }
  if (g.in.numbers_head > 0 && g.in.numbers_head != g.in.T) {
    return "attention: a backward pass with numbers of heads that lie apart";
  }
  if (g.out.data == nullptr || g.dout.data == nullptr) return "attention: out or dout is missing";
  if (const char* why = refusal(g.in.normalizer, g.saved)) return why;
  if (g.dq.data == nullptr || g.dk.data == nullptr || g.dv.data == nullptr) {
    return "attention: dq, dk or dv is missing";
  }
  if (g.row_product == nullptr) return "attention: row_product is missing";
  if (g.in.scale != nullptr && g.dscale == nullptr) return "attention: a scale without dscale";
  if (g.in.normalizer.alphas != nullptr && g.dalpha == nullptr) {
    return "attention: alphas without dalpha";
  }
  return bias_refusal(g.in, g, g.in.T);
}

template <class Element>
bool takes_vectors(const Rows<Element>& x) {
  constexpr int kOfVector = 16 / static_cast<int>(sizeof(Element));
  return aligned(x.data) && x.batch % kOfVector == 0 && x.row % kOfVector == 0 &&
         x.head % kOfVector == 0;
}
inline constexpr const char* kNoVectors =
    "attention: a tensor is not aligned to 16 bytes, or a stride is no multiple of 16 bytes";

/// What the kernels on tiles ask beyond that.
template <class A>
const char* tiles_refusal(const AttentionInputs<A>& a) {
  if (!has_head_dim(a.D)) {
    return "attention: expected head dimension 16, 32, 48, 64, 80, 96 or 128";
  }
  if (!takes_vectors(a.q) || !takes_vectors(a.k) || !takes_vectors(a.v)) {
    return kNoVectors;
  }
  // Where biases of a block's rows are is counted in 32 bits.
  if (reads_content(a) && a.T > (1 << 24) - kTile) {
    return "attention: over 2^24 positions with a bias that reads queries and keys";
  }
  if (int64_t{a.B} * a.H > INT32_MAX) return "attention: over 2^31 heads of all sequences";
  if (!aligned(a.relative.r)) return "attention: r is not aligned to 16 bytes";
  if (!aligned(a.fire.ends)) return "attention: fire's ends are not aligned to 16 bytes";
  return nullptr;
}

}  // namespace bamtrain::kernels
