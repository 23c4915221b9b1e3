#pragma once
// Cases of the kernels for the last queries of sequences, compared with rows of the fp64 reference.
// In arrays by query, earlier rows are missing, or garbage that must not change.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "catch.h"
#include "kernels/attention_cases.h"

namespace bamtrain::test {

inline constexpr float kUntouched = -123;
inline constexpr int32_t kGarbage = std::numeric_limits<int32_t>::min();

/// The last rows of values (outer, T, size).
template <class T>
std::vector<T> last_of(const std::vector<T>& all, int outer, int of, int rows) {
  const size_t size = all.size() / static_cast<size_t>(outer * of);
  std::vector<T> out;
  for (int n = 0; n < outer; ++n) {
    const auto end = all.begin() + static_cast<int64_t>(static_cast<size_t>((n + 1) * of) * size);
    out.insert(out.end(), end - static_cast<int64_t>(static_cast<size_t>(rows) * size), end);
  }
  return out;
}

/// A copy of `all` (outer, T) in which all but the last rows are `fill`.
template <class T>
std::vector<T> with_garbage(std::vector<T> all, int outer, int of, int rows, T fill) {
  for (int n = 0; n < outer; ++n) {
    std::fill_n(all.begin() + static_cast<int64_t>(n) * of, of - rows, fill);
  }
  return all;
}

/// The inputs of a case that has only the last queries.
template <class A>
struct LastArrays {
  const AttentionCase& c;
  int D, rows;
  AttentionArrays<A> arrays;
  GlobalArray<A> q, out;               // (B, rows, H, D)
  GlobalArray<int32_t> first_key;      // (B, T)
  GlobalArray<int32_t> positions;      // (B, T)
  GlobalArray<float> scale, by_query;  // (B, H, T)

  LastArrays(const AttentionCase& of, int head_dim, const AttentionValues& x,
             const AttentionForm& form, int last)
      : c(of),
        D(head_dim),
        rows(last),
        arrays(c, D, x, form),
        q(elements<A>(queries_of(x))),
        out(q.size()),
        first_key(with_garbage(x.first_key, c.B, c.T, rows, kGarbage)),
        positions(with_garbage(x.fire.positions, c.B, c.T, rows, kGarbage)),
        scale(with_garbage(elements<float>(x.scale), c.B * c.H, c.T, rows, NAN)),
        by_query(std::vector<float>(x.scale.size(), kUntouched)) {}

  kernels::AttentionForward<A> forward() {
    kernels::AttentionForward<A> f = arrays.forward();
    f.in.q = from_first(static_cast<const A*>(q.data()));
    f.out = from_first(out.data());
    f.in.first_key = first_key.data();
    if (f.in.fire.psi != nullptr) f.in.fire.positions = positions.data();
    if (f.in.scale != nullptr) f.in.scale = scale.data();
    f.in.formed.first = c.T - rows;
    f.in.formed.queries = rows;
    f.saved.level = by_query.data();
    f.saved.live = nullptr;
    return f;
  }

  /// The last rows of the array written by query. Checks that all other rows are unchanged.
  Doubles written() const {
    const Doubles all = doubles(by_query), last = last_of(all, c.B * c.H, c.T, rows);
    const auto untouched = std::count(all.begin(), all.end(), double{kUntouched});
    CHECK(untouched == c.B * c.H * (c.T - rows));
    CHECK(std::count(last.begin(), last.end(), double{kUntouched}) == 0);
    return last;
  }

 private:
  Doubles queries_of(const AttentionValues& x) const {
    const Doubles all = last_of(x.qkv, c.B, c.T, rows);
    const auto width = static_cast<size_t>((c.H + 2 * c.K) * D);
    const auto used = static_cast<size_t>(c.H * D);
    Doubles own;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i % width < used) own.push_back(all[i]);
    }
    return own;
  }

  template <class Element>
  kernels::Rows<Element> from_first(Element* data) const {
    const int64_t width = int64_t{c.H} * D;
    return {data - (c.T - rows) * width, rows * width, width, D};
  }
};

/// bf16: rounding of p and out. Plain loops: rounding of fp32 sums; an entmax weight has 1 / (alpha
/// - 1) times the error of its root. For all queries, see attention_general.cpp.
template <class A>
double tolerance(const AttentionForm& form) {
  if constexpr (!std::is_same_v<A, float>) return 2 * kRoundoff<DeviceBf16>;
  return form.normalizer.kind == NormalizerKind::entmax ? 1.2e-5 : 4e-6;
}

/// The root mean square of x - y. A single row's lse may be much smaller than the logits it comes
/// from, so its error is compared with the lse of all rows.
inline double root_mean_square(const Doubles& x, const Doubles& y = {}) {
  double sum = 0;
  for (size_t n = 0; n < x.size(); ++n) {
    const double d = y.empty() ? x[n] : x[n] - y[n];
    sum += d * d;
  }
  return std::sqrt(sum / static_cast<double>(x.size()));
}

template <class A>
using Launcher = device::LaunchStatus (*)(const kernels::AttentionForward<A>&, device::Stream);

template <class A>
void compare(Launcher<A> launch, const AttentionCase& c, int D, const AttentionForm& form,
             int rows) {
  INFO(text_of(c, D, form) << ", the last " << rows);
  const AttentionValues x = attention_values<A>(c, D);
  const Results truth = attention_truth(c, D, x, form);
  LastArrays<A> last(c, D, x, form, rows);
  const kernels::AttentionForward<A> f = last.forward();
  REQUIRE(launch(f, nullptr).ok());
  CHECK(relative_error(doubles(last.out), last_of(truth.at("out"), c.B, c.T, rows)) <
        tolerance<A>(form));
  if (!traits_of(form.normalizer.kind).level) return;
  // fp32 throughout, except that a relative bias reads r with 16 bits.
  const bool relative = form.bias == BiasForm::relative && !std::is_same_v<A, float>;
  const Doubles& levels = truth.at("lse");
  CHECK(root_mean_square(last.written(), last_of(levels, c.B * c.H, c.T, rows)) <
        root_mean_square(levels) * (1e-6 + (relative ? 0x1p-17 : 0)));
}

}  // namespace bamtrain::test
