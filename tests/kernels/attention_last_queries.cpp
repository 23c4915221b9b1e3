// The attention kernels for the last queries of sequences, on the engine.

#include "kernels/attention_entropy.h"
#include "kernels/last_queries.h"
#include "thinned.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

/// Numbers of queries that begin inside a tile, at its start and after its start, and fill less
/// than one tile, one, or more.
constexpr int kRows[] = {1, 70, 64, 7, 130, 33};

AttentionCase last_queries_case(size_t n) {
  AttentionCase c = {1 + static_cast<int>(n % 2), 200, 4, 2};
  c.documents = n % 3 == 1;
  c.window = n % 4 == 2 ? 50 : 0;
  return c;
}

constexpr Launcher<DeviceBf16> kFused = [](const auto& f, device::Stream stream) {
  return kernels::attention_forward(f, stream);
};
constexpr Launcher<DeviceBf16> kGeneral = [](const auto& f, device::Stream stream) {
  return kernels::attention_forward(f, stream, true);
};
constexpr Launcher<float> kPlainLauncher = kernels::attention_reference_forward<float>;

int rows_of(size_t n) { return kRows[n % std::size(kRows)]; }

}  // namespace

TEST_CASE("kernels of the last queries agree with the reference in every form") {
  size_t n = 0;
  for (const AttentionForm& form : kEveryForm) {
    for (const int D : {16, 64, 128}) {
      if (testing::is_run(n / 3, n, 3)) compare(kFused, last_queries_case(n), D, form, rows_of(n));
      ++n;
    }
    compare(kGeneral, last_queries_case(n), 32, form, rows_of(n));
    compare(kPlainLauncher, last_queries_case(n), 16, form, rows_of(n));
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
      compare(kGeneral, last_queries_case(n), 32, form, rows_of(n));
      compare(kPlainLauncher, last_queries_case(n), 16, form, rows_of(n));
      ++n;
    }
  }
}

TEST_CASE("kernels of the last queries agree with the reference where heads are mixed") {
  size_t n = 0;
  for (const AttentionForm& form : kMixedForms) {
    compare(kFused, last_queries_case(n), 16, form, rows_of(n));
    compare(kPlainLauncher, last_queries_case(n), 16, form, rows_of(n));
    ++n;
  }
}

TEST_CASE("the entropy of the last queries is that of all of them") {
  size_t n = 0;
  for (const AttentionForm& form : kNamedForms) {
    if (form.scale) continue;
    const AttentionCase c = last_queries_case(n);
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
    // Each row is independent of which rows are requested.
    CHECK(last.written() == last_of(doubles(all), c.B * c.H, c.T, rows));
  }
}
