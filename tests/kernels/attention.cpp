// The fused attention kernels on the CPU engine, compared with the fp64 reference backend.

#include "catch.h"
#include "kernels/attention_backward_keys.cuh"
#include "kernels/attention_backward_table.cuh"
#include "kernels/attention_cases.h"
#include "kernels/attention_checks.h"
#include "thinned.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

/// Rounding to bf16:
/// - out: p and out; dv: p and dv;
/// - dq and dk: p in the out of D_i, dz, and the gradient;
/// - sums of dz: p;
/// - dscale, dnumbers and dfire: two more, because D_i shifts all dz of a row, and their sum is
///   weighted with s or db/dx, whose mean is not zero.
///
/// lse is fp32 throughout, except that a relative bias reads r with 16 bits.
double fused_tolerance(const std::string& name, const AttentionForm& form) {
  if (name == "lse") return form.bias == BiasForm::relative ? 1e-6 + 0x1p-17 : 1e-6;
  const bool three = name == "dq" || name == "dk" || name == "dscale" || name == "dnumbers" ||
                     name.starts_with("dfire");
  return three ? 3 * kBf16 : 2 * kBf16;
}

void compare_fused(const AttentionCase& c, int D, const AttentionForm& form) {
  INFO(text_of(c, D, form));
  const AttentionValues x = attention_values<DeviceBf16>(c, D);
  const Results truth = attention_truth(c, D, x, form, true);
  engine::counters() = {};
  const Results found = attention_on_engine<DeviceBf16>(Kernels::fused, c, D, x, form);
  CHECK(engine::counters().ldmatrix_conflicts == 0);
  REQUIRE(found.size() == truth.size());
  for (const auto& [name, t] : truth) {
    INFO(name);
    CHECK(relative_error(found.at(name), t) < fused_tolerance(name, form));
  }
}

Results fused(const AttentionCase& c, int D, const AttentionForm& form) {
  return attention_on_engine<DeviceBf16>(Kernels::fused, c, D, attention_values<DeviceBf16>(c, D),
                                         form);
}

constexpr AttentionForm kTableForm = {BiasForm::table};
constexpr AttentionForm kTableAndScale = {BiasForm::table, true};
constexpr AttentionForm kFireAndScale = {BiasForm::fire, true, true};

}  // namespace

TEST_CASE("attention kernels of every form agree with the reference") {
  for (size_t row = 0; row < std::size(kEveryForm); ++row) {
    for (size_t column = 0; column < kAttentionCases.size(); ++column) {
      if (testing::is_run(row, column, 2))
        compare_fused(kAttentionCases[column], 64, kEveryForm[row]);
    }
  }
}

TEST_CASE("attention kernels of every head dimension agree with the reference") {
  for (int D : kernels::kHeadDims) {
    if (D == 64) continue;
    for (const AttentionForm& form : {kTableAndScale, kFireAndScale}) {
      for (const AttentionCase& c : kAttentionCases) compare_fused(c, D, form);
    }
  }
}

TEST_CASE("more heads of all sequences than a grid has rows are taken by two launches", "[long]") {
  compare_fused({32800, 2, 2, 1}, 16, kTableAndScale);
}

TEST_CASE("rows that see one key have gradients that are zero to the bit, but for their values'") {
  const AttentionCase c = {2, 140, 2, 1, false, 1};
  for (const AttentionForm& form : kEveryForm) {
    INFO(text_of(c, 64, form));
    for (const auto& [name, x] : fused(c, 64, form)) {
      if (name == "out" || name == "lse" || name == "dv") continue;
      INFO(name);
      CHECK(std::all_of(x.begin(), x.end(), [](double g) { return g == 0; }));
    }
  }
}

TEST_CASE("attention kernels of every head dimension and form fit the memory of an sm_86 block") {
  const engine::Options before = engine::options();
  engine::options().shared_capacity = 99 * 1024;
  for (int D : kernels::kHeadDims) {
    for (const AttentionForm& form : kEveryForm) compare_fused({1, 70, 1, 1}, D, form);
  }
  engine::options() = before;
}

TEST_CASE("attention kernels give the same bits in every order of threads, warps and blocks") {
  for (const AttentionForm& form : {kTableAndScale, kFireAndScale}) {
    check_every_schedule<DeviceBf16>(Kernels::fused, {2, 130, 2, 1, true}, 48, form);
  }
}

TEST_CASE("any number of partial tables gives the gradients of the reference") {
  constexpr int D = 16;
  const AttentionCase c = {2, 200, 4, 2, true};
  const AttentionValues x = attention_values<DeviceBf16>(c, D);
  const Results truth = attention_truth(c, D, x, kTableForm, true);
  AttentionArrays<DeviceBf16> arrays(c, D, x, kTableForm);
  const kernels::AttentionBackward<DeviceBf16> g = arrays.backward();
  REQUIRE(kernels::attention_forward(arrays.forward(), nullptr).ok());
  REQUIRE(kernels::attention_backward(g, nullptr).ok());
  const Results four = arrays.results();
  kernels::BackwardSaved<DeviceBf16> saved = {};
  saved.dout = g.dout;
  saved.rows = g.saved;
  saved.centre = g.row_product;
  using Form = kernels::SoftmaxForm<kernels::BiasSource::table, kernels::ScaleMode::none>;
  for (int parts = 1; parts <= 3; ++parts) {
    INFO(parts << " parts");
    REQUIRE(device::launch(kernels::attention_backward_keys<D, Form>,
                           {static_cast<uint32_t>(parts), 4, 1}, {kernels::kThreads, 1, 1},
                           kernels::attention_backward_keys_shared<D, Form>(), nullptr, g.in, saved,
                           g.dk, g.dv, g.dnumbers, g.partial, kernels::attention_partial_table(c.T),
                           0)
                .ok());
    REQUIRE(device::launch(kernels::attention_backward_table, {7, 4, 1}, {256, 1, 1}, 0, nullptr,
                           g.dtable, g.dtable_head, g.partial,
                           kernels::attention_partial_table(c.T), c.B, c.H, c.T, 0, parts)
                .ok());
    const Results found = arrays.results();
    for (const char* name : {"dq", "dk", "dv"}) CHECK(found.at(name) == four.at(name));
    // fp32 sums of up to 400 terms, in a different order.
    CHECK(relative_error(found.at("dtable"), four.at("dtable")) < 400 * 0x1p-24);
    CHECK(relative_error(found.at("dtable"), truth.at("dtable")) <
          fused_tolerance("dtable", kTableForm));
  }
}

TEST_CASE("partial tables are few, and their memory is enough for every smaller batch") {
  CHECK(kernels::attention_parts(1, 200, 1, true) == 4);
  CHECK(kernels::attention_parts(8, 16384, 12, true) == 10);
  CHECK(kernels::attention_parts(8, 16384, 12, false) == 256);
  CHECK(kernels::attention_parts(512, 512, 12, true) == 1);
  for (int K : {1, 3, 12}) {
    for (int T : {64, 1000, 5000}) {
      const int64_t slot = kernels::attention_partial_table(T);
      const int64_t reserved = kernels::attention_partial_floats(40, T, 2 * K, K, T);
      for (int B = 1; B <= 40; ++B) {
        CHECK(int64_t{B} * 2 * K * kernels::attention_parts(B, T, K, true) * slot <= reserved);
      }
    }
  }
}

TEST_CASE("tiles that no query sees are not computed") {
  const auto products = [](const AttentionCase& c) {
    engine::counters() = {};
    fused(c, 16, kTableForm);
    return engine::counters().mma;
  };
  // MMA counts at D 16. For 32 keys, a warp of 32 queries takes 16 forward and 24 backward. In the
  // second backward kernel, four warps take 64 for 32 queries and 64 keys. With 640 rows: the
  // triangle, then a window of 64.
  CHECK(products({1, 640, 1, 1}) == 210 * (16 + 24) + 110 * 64);
  CHECK(products({1, 640, 1, 1, false, 64}) == 57 * (16 + 24) + 38 * 64);
}

TEST_CASE("arguments that the attention kernels do not take are refused") {
  const AttentionCase c = {1, 8, 2, 1};
  AttentionArrays<DeviceBf16> arrays(c, 16, attention_values<DeviceBf16>(c, 16), kTableAndScale);
  const auto forward = [&](auto&& change) {
    kernels::AttentionForward<DeviceBf16> f = arrays.forward();
    change(f);
    check_refused(kernels::attention_forward(f, nullptr));
  };
  forward([](auto& f) { f.in.D = 112; });
  forward([](auto& f) { f.in.T = 0; });
  forward([](auto& f) { f.in.B = 65536; });
  forward([](auto& f) { f.in.K = 3; });
  forward([](auto& f) { f.in.content_divisor = 0; });
  forward([](auto& f) { f.in.q.row += 4; });
  forward([](auto& f) { f.in.k.data += 1; });
  forward([](auto& f) { f.in.table_head = 7; });
  forward([](auto& f) { f.in.first_key = nullptr; });
  forward([](auto& f) { f.saved.level = nullptr; });
  forward([](auto& f) { f.out.data += 4; });
  kernels::AttentionInputs<DeviceBf16> content = arrays.forward().in;
  content.table = nullptr;
  content.relative = {arrays.forward().in.table, nullptr, nullptr};
  content.T = (1 << 24) - kernels::kTile;
  CHECK(kernels::tiles_refusal(content) == nullptr);
  ++content.T;
  CHECK(kernels::tiles_refusal(content) != nullptr);
  const auto backward = [&](auto&& change) {
    kernels::AttentionBackward<DeviceBf16> g = arrays.backward();
    change(g);
    check_refused(kernels::attention_backward(g, nullptr));
  };
  backward([](auto& g) { g.in.D = 256; });
  backward([](auto& g) { g.dv.head = 12; });
  backward([](auto& g) { g.dout.data = nullptr; });
  backward([](auto& g) { g.row_product = nullptr; });
  backward([](auto& g) { g.partial = nullptr; });
  backward([](auto& g) { g.dtable = nullptr; });
  backward([](auto& g) { g.dscale = nullptr; });
  AttentionArrays<DeviceBf16> fire(c, 16, attention_values<DeviceBf16>(c, 16), kFireAndScale);
  const auto with_fire = [&](auto&& change) {
    kernels::AttentionBackward<DeviceBf16> g = fire.backward();
    change(g);
    check_refused(kernels::attention_backward(g, nullptr));
  };
  with_fire([&](auto& g) { g.in.table = arrays.forward().in.table; });
  with_fire([](auto& g) { g.in.fire.inverse = nullptr; });
  with_fire([](auto& g) { g.in.fire.positions = nullptr; });
  with_fire([](auto& g) { ++g.in.fire.ends; });
  with_fire([](auto& g) { g.partial = nullptr; });
  with_fire([](auto& g) { g.dfire = nullptr; });
  with_fire([](auto& g) { g.dfire_psi = nullptr; });
}
