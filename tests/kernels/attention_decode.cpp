// The decode kernels on the engine: one query per sequence, with its keys divided among blocks.

#include "kernels/attention_decode.h"

#include <cmath>

#include "kernels/last_queries.h"
#include "thinned.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

/// Two or three pieces of keys, the last one possibly partial. Blocks take the query heads of a key
/// head together, alone or in turns.
AttentionCase decode_case(size_t n) {
  constexpr int kHeadsOfKey[] = {1, 2, 4, 3, 5};
  AttentionCase c = {1 + static_cast<int>(n % 2), 130 + static_cast<int>(n % 3) * 120};
  c.K = 2;
  c.H = c.K * kHeadsOfKey[n % std::size(kHeadsOfKey)];
  c.documents = n % 3 == 1;
  c.window = n % 4 == 2 ? 50 : 0;
  return c;
}

device::LaunchStatus decode(const kernels::AttentionForward<DeviceBf16>& f, device::Stream stream) {
  const bool searched = !traits_of(f.in.normalizer.kind).fused;
  const int64_t floats = kernels::attention_decode_floats(f.in.B, f.in.T, f.in.H, f.in.D, searched);
  GlobalArray<float> scratch(std::vector<float>(static_cast<size_t>(floats), NAN));
  return kernels::attention_decode(f, scratch.data(), stream);
}

}  // namespace

TEST_CASE("keys of one query in pieces, joined, agree with the reference in every form") {
  size_t n = 0;
  for (const AttentionForm& form : kEveryForm) {
    for (const int D : {16, 48, 64, 128}) {
      const size_t row = n / 4, column = n % 4;
      const AttentionCase c = decode_case(n++);
      if (testing::is_run(row, column, 4)) compare<DeviceBf16>(decode, c, D, form, 1);
    }
  }
  for (const AttentionForm& form : kMixedForms) {
    AttentionCase c = decode_case(n++);
    c.H = 4;
    c.K = 2;
    compare<DeviceBf16>(decode, c, 16, form, 1);
  }
}

TEST_CASE("keys of one query in pieces agree with the reference for every normalizer") {
  size_t n = 0;
  for (const NormalizerForm& normalizer : every_normalizer()) {
    if (normalizer.kind == NormalizerKind::stick_breaking) continue;
    const bool scale = traits_of(normalizer.kind).takes_scale;
    for (AttentionForm form :
         {AttentionForm{BiasForm::table, scale, false}, AttentionForm{BiasForm::fire, scale, scale},
          AttentionForm{BiasForm::relative}}) {
      form.normalizer = normalizer;
      for (const int D : {16, 80}) {
        const size_t row = n / 6, column = n % 6;
        const AttentionCase c = decode_case(n++);
        if (testing::is_run(row, column, 3)) compare<DeviceBf16>(decode, c, D, form, 1);
      }
    }
  }
}

TEST_CASE("of more keys than pieces take at the least a piece has more") {
  // Values are the key's number and 1. All keys but three have equal logits, so the means are
  // known.
  constexpr int kD = 16;
  for (const int T : {kernels::kDecodePieces * kernels::kDecodeKeys + 1, 40000}) {
    INFO(T << " keys");
    REQUIRE(kernels::attention_decode_pieces(T) == kernels::kDecodePieces);
    std::vector<float> k(static_cast<size_t>(T) * kD), v(k.size()), q(kD);
    q[0] = 4;  // the logit is divided by sqrt(D)
    const int large[] = {0, T / 2, T - 1};
    for (const int j : large) k[static_cast<size_t>(j) * kD] = 12;
    double sum = 0, weights = 0;
    for (int j = 0; j < T; ++j) {
      const float x = static_cast<float>(j % 251);
      v[static_cast<size_t>(j) * kD] = x;
      v[static_cast<size_t>(j) * kD + 1] = 1;
      const double p = std::exp(std::count(large, large + 3, j) > 0 ? 12.0 : 0.0);
      sum += p * x;
      weights += p;
    }
    const GlobalArray<DeviceBf16> queries(elements<DeviceBf16>(Doubles(q.begin(), q.end())));
    const GlobalArray<DeviceBf16> keys(elements<DeviceBf16>(Doubles(k.begin(), k.end())));
    const GlobalArray<DeviceBf16> values(elements<DeviceBf16>(Doubles(v.begin(), v.end())));
    const GlobalArray<int32_t> first_key(std::vector<int32_t>(static_cast<size_t>(T), 0));
    GlobalArray<DeviceBf16> out(static_cast<size_t>(kD));
    GlobalArray<float> level(static_cast<size_t>(T));
    kernels::AttentionForward<DeviceBf16> f;
    f.in.B = 1;
    f.in.T = T;
    f.in.H = f.in.K = 1;
    f.in.D = kD;
    f.in.content_divisor = 4;
    f.in.q = {queries.data() - int64_t{T - 1} * kD, kD, kD, kD};
    f.in.k = {keys.data(), int64_t{T} * kD, kD, kD};
    f.in.v = {values.data(), int64_t{T} * kD, kD, kD};
    f.in.first_key = first_key.data();
    f.in.formed.first = T - 1;
    f.in.formed.queries = 1;
    f.out = {out.data() - int64_t{T - 1} * kD, kD, kD, kD};
    f.saved.level = level.data();
    REQUIRE(decode(f, nullptr).ok());
    const Doubles means = doubles(out);
    CHECK(std::abs(means[0] - sum / weights) < sum / weights * kRoundoff<DeviceBf16>);
    CHECK(means[1] == 1);
    // fp32 sums of as many weights as a lane has; 2^x and log2 are accurate to 2^-22.
    CHECK(std::abs(doubles(level)[static_cast<size_t>(T - 1)] - std::log(weights)) < 1e-5);
  }
}

TEST_CASE("what cannot be decoded is refused") {
  const AttentionCase c = decode_case(0);
  const AttentionForm form;
  const AttentionValues x = attention_values<DeviceBf16>(c, 16);
  LastArrays<DeviceBf16> two(c, 16, x, form, 2), one(c, 16, x, form, 1);
  CHECK_FALSE(decode(two.forward(), nullptr).ok());
  CHECK_FALSE(kernels::attention_decode(one.forward(), nullptr, nullptr).ok());
  kernels::AttentionForward<DeviceBf16> f = one.forward();
  f.in.normalizer.kind = NormalizerKind::stick_breaking;
  CHECK_FALSE(decode(f, nullptr).ok());
}
