// The general attention kernels on the CPU engine, and the plain kernels of every normalizer,
// compared with the fp64 reference backend.

#include "catch.h"
#include "kernels/attention_cases.h"
#include "thinned.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

constexpr double kF32 = 0x1p-24;

double alpha_of(const AttentionForm& form) {
  return form.normalizer.kind == NormalizerKind::entmax ? form.normalizer.alpha : 1;
}

/// Whether D is <dO, out>, with out's rounding error.
bool reads_out(const AttentionForm& form) {
  const NormalizerKind kind = form.normalizer.kind;
  return kind == NormalizerKind::softmax || kind == NormalizerKind::topk;
}

/// Rounding to bf16:
/// - out: p and out; dv: p and dv;
/// - dq and dk: dz and the gradient. For entmax, dz = u (dP - D), where u is up to twice as large
///   as p.
///
/// Sums of dz are fp32. lse is fp32 throughout, except that a relative bias reads r with 16 bits.
double general_tolerance(const std::string& name, const AttentionForm& form, bool causal) {
  if (name == "lse") return form.bias == BiasForm::relative ? 1e-6 + 0x1p-17 : 1e-6;
  const double of_u = alpha_of(form) > 1 ? 2 : 1;
  // dt has D's error times the mean of s + b at the row's largest logits: both are large where b
  // also comes from q and k, and s where these are the largest of more keys.
  const bool large = (form.bias == BiasForm::relative && form.scale_bias) || !causal;
  const double of_d = !reads_out(form) ? 0 : name == "dscale" && large ? 2 : 1;
  return (name == "out" || name == "dv" ? 2 : 2 * of_u + of_d) * kBf16;
}

/// In fp32. For entmax, an error in a root is 1 / (alpha - 1) times as large in its weight, and as
/// much again in u = p^(2 - alpha). Above alpha 2, a key that enters the nonzero keys by a rounding
/// error u of its logit has weight u^(1 / (alpha - 1)).
double plain_tolerance(const AttentionForm& form) {
  const double a = alpha_of(form) - 1;
  return a == 0 ? 4e-6 : a <= 1 ? 1.2e-5 : 8 * std::pow(kF32, 1 / a);
}

/// If rounding moves a key into the nonzero keys, bf16 gradients have no error bound.
bool bounded(const std::string& name, const AttentionForm& form) {
  return alpha_of(form) <= 2 || name == "out" || name == "lse";
}

void compare_general(const AttentionCase& c, int D, const AttentionForm& form,
                     const AttentionValues& x) {
  INFO(text_of(c, D, form));
  const Results truth = attention_truth(c, D, x, form);
  engine::counters() = {};
  const Results found = attention_on_engine<DeviceBf16>(Kernels::general, c, D, x, form);
  CHECK(engine::counters().ldmatrix_conflicts == 0);
  REQUIRE(found.size() == truth.size());
  for (const auto& [name, t] : truth) {
    INFO(name);
    if (!bounded(name, form)) continue;
    CHECK(relative_error(found.at(name), t) < general_tolerance(name, form, c.causal));
  }
}

void compare_general(const AttentionCase& c, int D, const AttentionForm& form) {
  compare_general(c, D, form, attention_values<DeviceBf16>(c, D));
}

/// On tiles of fp32: where the kernels' z is that of plain loops but for roundings.
void compare_fp32(const AttentionCase& c, int D, const AttentionForm& form) {
  INFO(text_of(c, D, form));
  const AttentionValues x = attention_values<float>(c, D);
  REQUIRE(!kernels::attention_is_plain(AttentionArrays<float>(c, D, x, form).forward().in));
  const Results truth = attention_truth(c, D, x, form);
  const Results found = attention_on_engine<float>(Kernels::general, c, D, x, form);
  REQUIRE(found.size() == truth.size());
  for (const auto& [name, t] : truth) {
    INFO(name);
    CHECK(relative_error(found.at(name), t) < plain_tolerance(form));
  }
}
/// What has tiles in fp32.
bool has_fp32_tiles(const AttentionForm& form) {
  return form.normalizer.kind != NormalizerKind::stick_breaking &&
         form.bias != BiasForm::relative && form.bias != BiasForm::contextual;
}
constexpr int kFp32Dims[] = {16, 32, 48, 64};

/// Calls f(form, number) for logit forms with each normalizer that takes them; one in four without
/// the long tests. Named forms come first, so that their cases do not change.
template <class F>
void for_forms(const F& f) {
  size_t n = 0;
  for (const auto* forms : {&kNamedForms, &kOtherForms}) {
    const std::vector<NormalizerForm> normalizers = every_normalizer();
    for (size_t row = 0; row < normalizers.size(); ++row) {
      size_t column = 0;
      for (AttentionForm form : *forms) {
        form.normalizer = normalizers[row];
        if (form.scale && !traits_of(form.normalizer.kind).takes_scale) continue;
        if (testing::is_run(row, column, 4)) f(form, n);
        ++column;
        ++n;
      }
    }
  }
}

AttentionForm table_with(const NormalizerForm& normalizer) {
  const bool scale = traits_of(normalizer.kind).takes_scale;
  return {BiasForm::table, scale, false, 0, normalizer, false};
}

}  // namespace

TEST_CASE("general attention kernels agree with the reference, with every normalizer and form") {
  for_forms([](const AttentionForm& form, size_t n) {
    compare_general(kAttentionCases[n % kAttentionCases.size()], 64, form);
    compare_general(kAttentionCases[(n + 2) % kAttentionCases.size()], 16, form);
  });
}

TEST_CASE("general attention kernels of every head dimension agree with the reference") {
  for (int D : kernels::kHeadDims) {
    for (const NormalizerForm& normalizer : {entmax(1.5), stick_breaking()}) {
      for (const AttentionCase& c : kAttentionCases) compare_general(c, D, table_with(normalizer));
    }
  }
}

TEST_CASE("general attention kernels agree with the reference where rows see keys on both sides") {
  size_t n = 0;
  for (const NormalizerForm& normalizer :
       {NormalizerForm(), entmax(1.5), entmax(1.3, true), topk(7)}) {
    for (AttentionForm form : kNamedForms) {
      if (form.bias == BiasForm::fire) continue;  // in plain loops
      form.normalizer = normalizer;
      for (size_t turn = 0; turn < 2; ++turn, ++n) {
        AttentionCase c = kAttentionCases[(n + n / 7) % kAttentionCases.size()];
        c.causal = false;
        if (testing::is_run(n, n / 8, 3)) compare_general(c, turn == 0 ? 64 : 16, form);
      }
    }
  }
  for (int D : kernels::kHeadDims) {
    compare_general({2, 200, 2, 1, true, 90, false}, D, table_with(entmax(1.5)));
  }
}

TEST_CASE("plain attention kernels agree with the reference, with every normalizer and form") {
  for_forms([](const AttentionForm& form, size_t) {
    for (const AttentionCase& c : {AttentionCase{2, 45, 4, 2, true}, {1, 70, 3, 1, false, 33}}) {
      INFO(text_of(c, 24, form));
      const AttentionValues x = attention_values<float>(c, 24);
      const Results truth = attention_truth(c, 24, x, form);
      const Results found = attention_on_engine<float>(Kernels::reference, c, 24, x, form);
      REQUIRE(found.size() == truth.size());
      for (const auto& [name, t] : truth) {
        INFO(name);
        CHECK(relative_error(found.at(name), t) < plain_tolerance(form));
      }
    }
  });
}

TEST_CASE("attention kernels of fp32 agree with the reference, with every normalizer and form") {
  for_forms([](const AttentionForm& form, size_t n) {
    if (!has_fp32_tiles(form)) return;
    compare_fp32(kAttentionCases[n % kAttentionCases.size()], n % 2 == 0 ? 16 : 64, form);
  });
  for (const int D : kFp32Dims) {
    for (const AttentionCase& c : kAttentionCases) compare_fp32(c, D, table_with({}));
    compare_fp32({2, 200, 2, 1, true, 90, false}, D, table_with(entmax(1.5)));
  }
}

TEST_CASE("attention kernels of fp32 give the same bits in every order of threads and blocks") {
  for (const NormalizerForm& normalizer : {NormalizerForm(), entmax(1.3, true), topk(7)}) {
    check_every_schedule<float>(Kernels::general, {2, 130, 2, 1, true}, 16, table_with(normalizer));
  }
}

TEST_CASE("general attention kernels fit the memory of an sm_86 block") {
  const engine::Options before = engine::options();
  engine::options().shared_capacity = 99 * 1024;
  for (int D : kernels::kHeadDims) {
    for (BiasForm bias : {BiasForm::table, BiasForm::fire}) {
      compare_general({1, 70, 1, 1}, D, {bias, true, false, 0, entmax(1.5), false});
    }
  }
  for (int D : kFp32Dims) {
    for (BiasForm bias : {BiasForm::table, BiasForm::fire}) {
      compare_fp32({1, 70, 1, 1}, D, {bias, true, false, 0, entmax(1.5), false});
    }
  }
  engine::options() = before;
}

TEST_CASE("general attention kernels give the same bits in every order of threads and blocks") {
  for (const NormalizerForm& normalizer : every_normalizer()) {
    check_every_schedule<DeviceBf16>(Kernels::general, {2, 130, 2, 1, true}, 16,
                                     table_with(normalizer));
  }
}

TEST_CASE("with general kernels too rows that see one key have gradients that are zero") {
  const AttentionCase c = {2, 140, 2, 1, false, 1};
  for_forms([&](const AttentionForm& form, size_t) {
    if (!traits_of(form.normalizer.kind).constant_alone()) return;
    INFO(text_of(c, 16, form));
    const AttentionValues x = attention_values<DeviceBf16>(c, 16);
    for (const auto& [name, values] :
         attention_on_engine<DeviceBf16>(Kernels::general, c, 16, x, form)) {
      if (name == "out" || name == "lse" || name == "dv") continue;
      INFO(name);
      CHECK(std::all_of(values.begin(), values.end(), [](double g) { return g == 0; }));
    }
  });
}

TEST_CASE("tiles without weight are marked, and neither searched again nor read") {
  // The bias falls by 3 per key. Rows reach a few keys, and 9 of 10 tiles of the 640 keys have no
  // weight.
  const AttentionCase c = {1, 640, 1, 1};
  AttentionValues x = attention_values<DeviceBf16>(c, 16);
  for (size_t d = 0; d < x.table.size(); ++d) x.table[d] = -3 * static_cast<double>(d);
  for (const NormalizerForm& normalizer : {entmax(1.5), topk(4)}) {
    const AttentionForm form = {BiasForm::table, false, false, 0, normalizer, false};
    AttentionArrays<DeviceBf16> arrays(c, 16, x, form);
    // At D 16, four warps take 32 MMAs per tile of logits, and as many to multiply one. The
    // triangle has 55 tiles, 19 of them nonzero. Two passes visit all; later passes and the last
    // visit the nonzero ones. So does the backward pass, which forms logits and dP three times, for
    // three products.
    constexpr int64_t kOne = 32, kAll = 55, kLive = 19, kPasses = 12;
    engine::counters() = {};
    REQUIRE(kernels::attention_forward(arrays.forward(), nullptr).ok());
    CHECK(engine::counters().mma < kOne * (2 * kAll + (kPasses + 2) * kLive));
    engine::counters() = {};
    REQUIRE(kernels::attention_backward(arrays.backward(), nullptr).ok());
    CHECK(engine::counters().mma <= kOne * 9 * kLive);
    const std::vector<int32_t> live = arrays.live();
    REQUIRE(live.size() == 40);
    for (size_t group = 0; group < live.size(); ++group) {
      // 16 rows reach at most 10 keys back.
      const int own = static_cast<int>(group) / 4;
      const int before = group % 4 == 0 && own > 0 ? 1 << (own - 1) : 0;
      CHECK((live[group] & ~(1 << own | before)) == 0);
      CHECK((live[group] >> own & 1) == 1);
    }
  }
}

TEST_CASE("rows may prefer more keys than the lane that has them can list") {
  const AttentionCase c = {1, 288, 2, 1};
  AttentionValues x = attention_values<DeviceBf16>(c, 16);
  for (size_t n = 0; n < x.table.size(); ++n) {  // two of eight keys, all in one lane: i % 8 = 1
    if (n % static_cast<size_t>(c.T) % 8 < 2) x.table[n] += 6;
  }
  for (const NormalizerForm& normalizer : {topk(32), topk(20), entmax(1.5), entmax(2)}) {
    compare_general(c, 16, {BiasForm::table, false, false, 0, normalizer, false}, x);
  }
}

TEST_CASE("of equal logits top-k keeps the first keys") {
  const AttentionCase c = {1, 200, 1, 1};
  AttentionValues x = attention_values<DeviceBf16>(c, 16);
  for (size_t n = 0; n < x.qkv.size(); ++n) {
    if (n % 48 < 16) x.qkv[n] = 0;  // q
  }
  for (int64_t k : {1, 7, 64, 150}) {
    const AttentionForm form = {BiasForm::none, false, false, 0, topk(k), false};
    const Results truth = attention_truth(c, 16, x, form);
    const Results found = attention_on_engine<DeviceBf16>(Kernels::general, c, 16, x, form);
    CHECK(relative_error(found.at("out"), truth.at("out")) < 2 * kBf16);
    CHECK(relative_error(found.at("dv"), truth.at("dv")) < 2 * kBf16);
  }
}

TEST_CASE("a logit that is not a number makes its row so, with every normalizer") {
  const AttentionCase c = {1, 70, 1, 1};
  AttentionValues x = attention_values<DeviceBf16>(c, 16);
  x.qkv[48 * 20 + 16] = NAN;  // of key 20
  for (const NormalizerForm& normalizer : every_normalizer()) {
    const AttentionForm form = {BiasForm::none, false, false, 0, normalizer, false};
    const Results found = attention_on_engine<DeviceBf16>(Kernels::general, c, 16, x, form);
    // A key has weight from its own row on, or from the row after it.
    const size_t row = traits_of(normalizer.kind).own_key ? 20 : 21;
    CHECK(std::isfinite(found.at("out")[16 * (row - 1)]));
    CHECK(std::isnan(found.at("out")[16 * row]));
    CHECK(std::isnan(found.at("out")[16 * 69]));
  }
}

TEST_CASE("what rows of stick-breaking carry takes memory that grows as the sequence") {
  CHECK(kernels::attention_carried_heads(8, 2048, 12, 12) == 16);
  CHECK(kernels::attention_carried_heads(1, 64, 2, 1) == 1);
  CHECK(kernels::attention_carries(8, 16384, 12, 12) ==
        8 * kernels::attention_carries(8, 2048, 12, 12));
  // More heads than the kernel takes at a time.
  compare_general({70, 65, 4, 2}, 16, {BiasForm::table, false, false, 0, stick_breaking(), false});
}

TEST_CASE("arguments that the general attention kernels do not take are refused") {
  const AttentionCase c = {1, 8, 2, 1};
  const auto refuses = [&](const NormalizerForm& normalizer, auto&& change) {
    AttentionArrays<DeviceBf16> arrays(c, 16, attention_values<DeviceBf16>(c, 16),
                                       {BiasForm::none, false, false, 0, normalizer, false});
    kernels::AttentionBackward<DeviceBf16> g = arrays.backward();
    change(g);
    check_refused(kernels::attention_backward(g, nullptr));
  };
  refuses(entmax(1.5), [](auto& g) { g.saved.threshold = nullptr; });
  refuses(entmax(1.5), [](auto& g) { g.saved.live = nullptr; });
  refuses(entmax(1.5), [](auto& g) { g.in.normalizer.alpha = 1; });
  refuses(entmax(1.5, true), [](auto& g) { g.dalpha = nullptr; });
  refuses(topk(3), [](auto& g) { g.saved.last = nullptr; });
  refuses(stick_breaking(), [](auto& g) { g.carries = nullptr; });
  refuses(stick_breaking(), [](auto& g) { g.in.scale = g.row_product; });
}
