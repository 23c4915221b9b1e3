// The attention kernels of the last queries of texts on the engine, against the rows of the fp64
// reference: what lies before those in arrays by query is not there, or garbage that stays.

#include <limits>

#include "catch.h"
#include "kernels/attention_cases.h"
#include "kernels/attention_entropy.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

/// Queries that begin within a tile, at one and behind one, and fill none, one or more.
constexpr int kRows[] = {1, 70, 64, 7, 130, 33};

constexpr float kUntouched = -123;
constexpr int32_t kGarbage = std::numeric_limits<int32_t>::min();

AttentionCase case_of(size_t n) {
  AttentionCase c = {1 + static_cast<int>(n % 2), 200, 4, 2};
  c.documents = n % 3 == 1;
  c.window = n % 4 == 2 ? 50 : 0;
  return c;
}

/// Of values (outer, T, size) the last rows.
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

/// As many as `all` (outer, T) has, `fill` but for the last rows.
template <class T>
std::vector<T> with_garbage(std::vector<T> all, int outer, int of, int rows, T fill) {
  for (int n = 0; n < outer; ++n) {
    std::fill_n(all.begin() + static_cast<int64_t>(n) * of, of - rows, fill);
  }
  return all;
}

/// The inputs of a case whose queries are its last ones.
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

  /// Of what was written by query the last rows; all others must be as they were.
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

/// Roundings to bf16 of p and out; of plain loops those of sums in fp32, an entmax weight with
/// 1 / (alpha - 1) of its root's (tests of all queries: attention_general.cpp).
template <class A>
double tolerance(const AttentionForm& form) {
  if constexpr (!std::is_same_v<A, float>) return 2 * kRoundoff<DeviceBf16>;
  return form.normalizer.kind == NormalizerKind::entmax ? 1.2e-5 : 4e-6;
}

template <class A>
void compare(Kernels which, const AttentionCase& c, int D, const AttentionForm& form, int rows) {
  INFO(text_of(c, D, form) << ", the last " << rows);
  const AttentionValues x = attention_values<A>(c, D);
  const Results truth = attention_truth(c, D, x, form);
  LastArrays<A> last(c, D, x, form, rows);
  const kernels::AttentionForward<A> f = last.forward();
  if constexpr (std::is_same_v<A, float>) {
    REQUIRE(kernels::attention_reference_forward(f, nullptr).ok());
  } else {
    REQUIRE((which == Kernels::general ? kernels::attention_general_forward
                                       : kernels::attention_forward)(f, nullptr)
                .ok());
  }
  CHECK(relative_error(doubles(last.out), last_of(truth.at("out"), c.B, c.T, rows)) <
        tolerance<A>(form));
  if (!saves_level(form.normalizer.kind)) return;
  // fp32 all the way, but for what a relative bias has of r: 16 bits.
  const bool relative = form.bias == BiasForm::relative && !std::is_same_v<A, float>;
  CHECK(relative_error(last.written(), last_of(truth.at("lse"), c.B * c.H, c.T, rows)) <
        1e-6 + (relative ? 0x1p-17 : 0));
}

int rows_of(size_t n) { return kRows[n % std::size(kRows)]; }

}  // namespace

TEST_CASE("kernels of the last queries agree with the reference in every form") {
  size_t n = 0;
  for (const AttentionForm& form : kEveryForm) {
    for (const int D : {16, 64, 128}) {
      compare<DeviceBf16>(Kernels::fused, case_of(n), D, form, rows_of(n));
      ++n;
    }
    compare<DeviceBf16>(Kernels::general, case_of(n), 32, form, rows_of(n));
    compare<float>(Kernels::reference, case_of(n), 16, form, rows_of(n));
  }
}

TEST_CASE("kernels of the last queries agree with the reference for every normalizer") {
  size_t n = 0;
  for (const NormalizerForm& normalizer : every_normalizer()) {
    if (normalizer.kind == NormalizerKind::entmax && normalizer.alpha > 2) continue;
    const bool scale = traits_of(normalizer.kind).takes_scale;
    for (AttentionForm form : {AttentionForm{BiasForm::table, scale, false},
                               AttentionForm{BiasForm::fire, scale, scale}}) {
      form.normalizer = normalizer;
      compare<DeviceBf16>(Kernels::general, case_of(n), 32, form, rows_of(n));
      compare<float>(Kernels::reference, case_of(n), 16, form, rows_of(n));
      ++n;
    }
  }
}

TEST_CASE("kernels of the last queries agree with the reference where heads are mixed") {
  size_t n = 0;
  for (const AttentionForm& form : kMixedForms) {
    compare<DeviceBf16>(Kernels::fused, case_of(n), 16, form, rows_of(n));
    compare<float>(Kernels::reference, case_of(n), 16, form, rows_of(n));
    ++n;
  }
}

TEST_CASE("the entropy of the last queries is that of all of them") {
  size_t n = 0;
  for (const AttentionForm& form : kNamedForms) {
    if (form.scale) continue;
    const AttentionCase c = case_of(n);
    const int D = 16, rows = rows_of(n++);
    INFO(text_of(c, D, form) << ", the last " << rows);
    const AttentionValues x = attention_values<float>(c, D);
    AttentionArrays<float> arrays(c, D, x, form);
    kernels::AttentionInputs<float> in = arrays.forward().in;
    in.v = {};
    GlobalArray<float> all(x.scale.size());
    REQUIRE(kernels::attention_entropy(all.data(), in, nullptr).ok());
    LastArrays<float> last(c, D, x, form, rows);
    in = last.forward().in;
    in.v = {};
    REQUIRE(kernels::attention_entropy(last.by_query.data(), in, nullptr).ok());
    // Rows one by one, whichever are asked for.
    CHECK(last.written() == last_of(doubles(all), c.B * c.H, c.T, rows));
  }
}
