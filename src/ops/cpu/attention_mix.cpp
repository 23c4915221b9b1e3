#include "ops/cpu/attention_mix.h"

#include <variant>

#include "core/parallel.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

void HeadMixer::keep_biases(const Strip& s, int64_t h, const Block& x, LogitBias& bias) const {
  float* const to = biases(s, h).at(x.i0, x.j0);
  std::copy_n(bias.form(x).data, x.keys(), to);
  // Past the last key both are 0.
  std::fill_n(to + x.keys(), simd::kWidth, 0.0f);
  std::fill_n(x.data + x.keys(), simd::kWidth, 0.0f);
}

void HeadMixer::form_logits(const Strip& s, const Strips& x, const Strips& z) {
  for (int64_t i = s.i0; i < s.i1; ++i) {
    const int64_t keys = sight_.last(i) + 1 - sight_.first(i);
    for (int64_t n = 0; n < ceil_div(keys, kMixKeys); ++n) form_block(s, x, z, i, n);
  }
}

void HeadMixer::form_block(const Strip& s, const Strips& x, const Strips& z, int64_t i,
                           int64_t block) {
  const int64_t j = sight_.first(i) + block * kMixKeys, keys = keys_from(i, j);
  if (keys <= 0) return;
  const HeadsOfKeys own = x.at(s, i, j), to = z.at(s, i, j);
  network_.forward(keys, own, biases_.at(s, i, j));
  for (int64_t h = 0; h < H_; ++h) {
    const Factors factors(a_, b_, h);
    const float t = factors.of_content(i), of_bias = factors.of_bias(i);
    const float* const b = network_.biases().of(h);
    row::for_vectors(keys, [&](int64_t n) {
      simd::store(to.of(h) + n, t * simd::load(own.of(h) + n) + of_bias * simd::load(b + n));
    });
  }
}

void HeadMixer::adjoint(const Strip& s, const Strips& x, const Strips& dz, const Tensor& dscale) {
  for (int64_t i = s.i0; i < s.i1; ++i) adjoint_of_row(s, x, dz, i, dscale);
}

void HeadMixer::adjoint_of_row(const Strip& s, const Strips& x, const Strips& dz, int64_t i,
                               const Tensor& dscale) {
  const int64_t T = a_.q.shape[1];
  for (int64_t h = 0; dscale && h < H_; ++h) dscale.ptr<float>()[(b_ * H_ + h) * T + i] = 0;
  const bool kept = keeps_bias(*a_.form.mix);
  for (int64_t j = sight_.first(i); j <= sight_.last(i); j += kMixKeys) {
    const int64_t keys = keys_from(i, j);
    const HeadsOfKeys own = x.at(s, i, j), B = biases_.at(s, i, j), d = dz.at(s, i, j);
    if (dscale) add_dscale(dscale, i, keys, d, own, B);
    for (int64_t h = 0; h < H_; ++h) {
      const float of_bias = Factors(a_, b_, h).of_bias(i);
      float* const db = network_.dbiases().of(h);
      row::for_vectors(keys,
                       [&](int64_t n) { simd::store(db + n, of_bias * simd::load(d.of(h) + n)); });
    }
    network_.backward(keys, own, B);
    for (int64_t h = 0; h < H_; ++h) {
      const float t = Factors(a_, b_, h).of_content(i);
      const float *const of_scores = network_.of_scores(h), *const of_bias = network_.of_bias(h);
      const float* const db = network_.dbiases().of(h);
      float *const ds = d.of(h), *const dB = B.of(h);
      row::for_vectors(keys, [&](int64_t n) {
        const Vec direct = t * simd::load(ds + n);
        simd::store(ds + n, of_scores ? direct + simd::load(of_scores + n) : direct);
        const Vec through = simd::load(of_bias + n);
        const Vec all = kept ? simd::load(db + n) + through : through;
        keys - n >= simd::kWidth ? simd::store(dB + n, all)
                                 : simd::store_partial(dB + n, all, keys - n);
      });
    }
  }
}

/// dt: of z = t s + b the sum of dz s, of t (s + b) that of dz (s + b).
void HeadMixer::add_dscale(const Tensor& dscale, int64_t i, int64_t keys, const HeadsOfKeys& dz,
                           const HeadsOfKeys& x, const HeadsOfKeys& B) {
  if (a_.form.scale_bias) network_.forward(keys, x, B);
  for (int64_t h = 0; h < H_; ++h) {
    const float* const b = network_.biases().of(h);
    Vec sum{};
    row::for_vectors(keys, [&](int64_t n) {
      const Vec score = simd::load(x.of(h) + n);
      sum += simd::load(dz.of(h) + n) * (a_.form.scale_bias ? score + simd::load(b + n) : score);
    });
    dscale.ptr<float>()[(b_ * H_ + h) * a_.q.shape[1] + i] += simd::sum(sum);
  }
}

// A part knows the keys of the next one, or fewer: sums run from part to part.

void join_key_parts(const Tensor& to, float* parts, int64_t stride, const Attention& a, int64_t b,
                    int64_t kh) {
  const int64_t T = a.q.shape[1], Dp = padded(a.q.shape[3]), n = parts_of(T);
  for (int64_t part = 1; part < n; ++part) {
    const float* const before = parts + (part - 1) * stride;
    float* const sum = parts + part * stride;
    row::for_vectors(keys_of_part(a, part - 1) * Dp, [&](int64_t c) {
      simd::store(sum + c, simd::load(before + c) + simd::load(sum + c));
    });
  }
  unpack_rows(to, b, kh, 0, T, parts + (n - 1) * stride, Dp, 1);
}
void join_token_parts(const Attention& a, const AttentionScratch& s) {
  if (!std::holds_alternative<TokenBias>(a.bias)) return;
  const int64_t H = a.q.shape[2], parts = parts_of(a.q.shape[1]);
  parallel_for(a.q.shape[0] * H, [&](int64_t n) {
    float* const total = partial_table(s, a, n / H, n % H, 0);
    for (int64_t part = 1; part < parts; ++part) {
      const float* const more = partial_table(s, a, n / H, n % H, part);
      const int64_t known = keys_of_part(a, part - 1), end = keys_of_part(a, part);
      for (int64_t j = 0; j < known; ++j) total[j] += more[j];
      std::copy(more + known, more + end, total + known);
    }
  });
}

void join_networks(const HeadMixGradients& g, const Attention& a, const AttentionScratch& s) {
  const int64_t tasks = a.q.shape[0] * parts_of(a.q.shape[1]);
  int64_t at = 0;
  const auto next = [&] {
    double total = 0;
    for (int64_t n = 0; n < tasks; ++n) {
      total += static_cast<double>(s.mix_networks.ptr<float>()[n * s.mix_networks.stride[0] + at]);
    }
    ++at;
    return static_cast<float>(total);
  };
  const auto layer = [&](const Tensor& dw, const Tensor& dc) {
    for (int64_t r = 0; r < dw.shape[0]; ++r) {
      for (int64_t c = 0; c < dw.shape[1]; ++c) dw.ptr<float>()[r * dw.shape[1] + c] = next();
      dc.ptr<float>()[r] = next();
    }
  };
  layer(g.w1, g.c1);
  layer(g.w2, g.c2);
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
