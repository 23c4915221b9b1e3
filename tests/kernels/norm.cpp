// The norm kernels, compared with fp64.

#include "kernels/norm.h"

#include "values.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

constexpr double kEps = 1e-5;

struct NormCase {
  size_t N, C;
  NormKind kind = NormKind::rmsnorm;
  bool branch = true, bias = false;
};

struct NormInputs {
  Doubles residual, branch, weight, bias, dy, dsum, dweight, dbias;
};

template <class A>
NormInputs inputs_of(const NormCase& c) {
  const size_t n = c.N * c.C;
  NormInputs in;
  in.residual = normal<A>("residual", n, 2, 0.5);
  in.branch = normal<A>("branch", n);
  in.weight = normal<float>("weight", c.C, 0.3, 1);
  in.bias = normal<float>("bias", c.C);
  in.dy = normal<A>("dy", n);
  in.dsum = normal<A>("dsum", n);
  in.dweight = normal<float>("dweight", c.C);
  in.dbias = normal<float>("dbias", c.C);
  return in;
}

struct NormResults {
  Doubles sum, y, stats, dsum, dweight, dbias;
};

/// The definitions in fp64, applied to a sum rounded to A.
template <class A>
NormResults truth_of(const NormCase& c, const NormInputs& in) {
  NormResults r{in.residual, Doubles(c.N * c.C), Doubles(2 * c.N), in.dsum, in.dweight, in.dbias};
  const auto C = static_cast<double>(c.C);
  const bool centred = c.kind == NormKind::layernorm;
  for (size_t n = 0; n < c.N; ++n) {
    double* x = r.sum.data() + n * c.C;
    double mean = 0, square = 0;
    for (size_t k = 0; k < c.C; ++k) {
      if (c.branch) x[k] = as<A>(as<float>(x[k] + in.branch[n * c.C + k]));
      mean += centred ? x[k] / C : 0;
    }
    for (size_t k = 0; k < c.C; ++k) square += (x[k] - mean) * (x[k] - mean) / C;
    const double rstd = 1 / std::sqrt(square + kEps);
    r.stats[2 * n] = mean;
    r.stats[2 * n + 1] = rstd;
    double mean_u = 0, mean_ux = 0;
    for (size_t k = 0; k < c.C; ++k) {
      const double hat = (x[k] - mean) * rstd, g = in.dy[n * c.C + k];
      r.y[n * c.C + k] = hat * in.weight[k] + (c.bias ? in.bias[k] : 0);
      mean_u += centred ? g * in.weight[k] / C : 0;
      mean_ux += g * in.weight[k] * hat / C;
      r.dweight[k] += g * hat;
      r.dbias[k] += g;
    }
    for (size_t k = 0; k < c.C; ++k) {
      const double hat = (x[k] - mean) * rstd, u = in.dy[n * c.C + k] * in.weight[k];
      r.dsum[n * c.C + k] += rstd * (u - mean_u - hat * mean_ux);
    }
  }
  return r;
}

template <class A>
NormResults on_engine(const NormCase& c, const NormInputs& in, bool in_place) {
  GlobalArray<A> residual(elements<A>(in.residual)), separate(in.residual.size());
  GlobalArray<A>& sum = in_place ? residual : separate;
  const GlobalArray<A> branch(elements<A>(in.branch)), dy(elements<A>(in.dy));
  const GlobalArray<float> weight(elements<float>(in.weight)), bias(elements<float>(in.bias));
  GlobalArray<A> y(in.residual.size()), dsum(elements<A>(in.dsum));
  GlobalArray<float> stats(2 * c.N);
  GlobalArray<float> dweight(elements<float>(in.dweight)), dbias(elements<float>(in.dbias));
  const auto N = static_cast<int64_t>(c.N);
  const int C = static_cast<int>(c.C);
  GlobalArray<float> partial(static_cast<size_t>(kernels::norm_backward_partial(N, C)));
  kernels::NormForward<A> f;
  f.sum = sum.data();
  f.y = y.data();
  f.stats = stats.data();
  f.residual = residual.data();
  f.branch = c.branch ? branch.data() : nullptr;
  f.weight = weight.data();
  f.bias = c.bias ? bias.data() : nullptr;
  f.N = N;
  f.C = C;
  f.kind = c.kind;
  f.eps = static_cast<float>(kEps);
  REQUIRE(kernels::norm_forward(f, nullptr).ok());
  kernels::NormBackward<A> g;
  g.dsum = dsum.data();
  g.dweight = dweight.data();
  g.dbias = c.bias ? dbias.data() : nullptr;
  g.dy = dy.data();
  g.sum = sum.data();
  g.stats = stats.data();
  g.weight = weight.data();
  g.N = N;
  g.C = C;
  g.kind = c.kind;
  g.partial = partial.data();
  REQUIRE(kernels::norm_backward(g, nullptr).ok());
  return {doubles(sum),  doubles(y),       doubles(stats),
          doubles(dsum), doubles(dweight), doubles(dbias)};
}

template <class A>
void check(const NormCase& c, bool in_place) {
  INFO("N " << c.N << " C " << c.C << " kind " << static_cast<int>(c.kind) << " branch " << c.branch
            << " bias " << c.bias << " in place " << in_place);
  const NormInputs in = inputs_of<A>(c);
  const NormResults truth = truth_of<A>(c, in), found = on_engine<A>(c, in, in_place);
  CHECK(found.sum == truth.sum);  // one sum in fp32, one rounding
  // Sums over a row: kOctets 8 terms per thread, then at most 13 in sequence. That is 45 roundings,
  // for squares of values of about 2.5; the rest is about ten operations.
  const double row = 64 * 0x1p-24, u = kRoundoff<A>;
  check_close(found.stats, truth.stats, [&](size_t) { return 3 * row; });
  check_close(found.y, truth.y, [&](size_t i) {
    return 4 * row + u * std::abs(truth.y[i]) + 4 * row * std::abs(truth.y[i]);
  });
  check_close(found.dsum, truth.dsum,
              [&](size_t i) { return 8 * row + u * std::abs(truth.dsum[i]); });
  // Sums over N rows of products of about 1. A block adds at most 32 in sequence, or N / 512, then
  // 8 groups, then the slots, 16 at a time.
  const double rows = std::sqrt(static_cast<double>(c.N)) * 4 + 8;
  check_close(found.dweight, truth.dweight, [&](size_t) { return rows * row; });
  if (c.bias) {
    check_close(found.dbias, truth.dbias, [&](size_t) { return rows * row; });
  } else {
    CHECK(found.dbias == in.dbias);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("norms and their adjoints agree with fp64 for every width", "", float,
                   DeviceBf16) {
  bool layernorm = false;
  for (const size_t C : {8, 256, 264, 760, 1024, 1032, 2048, 3072, 4088, 6144, 8192}) {
    layernorm = !layernorm;
    check<TestType>({3, C, layernorm ? NormKind::layernorm : NormKind::rmsnorm, true, layernorm},
                    false);
  }
}

TEMPLATE_TEST_CASE("norms with and without branch and bias, in place and not, agree with fp64", "",
                   float, DeviceBf16) {
  for (const NormKind kind : {NormKind::rmsnorm, NormKind::layernorm}) {
    for (const bool branch : {false, true}) {
      for (const bool in_place : {false, true}) {
        check<TestType>({5, 48, kind, branch, false}, in_place);
        check<TestType>({5, 48, kind, branch, true}, in_place);
      }
    }
  }
}

TEMPLATE_TEST_CASE("norms of one row and of many agree with fp64", "", float, DeviceBf16) {
  check<TestType>({1, 16, NormKind::layernorm, true, true}, false);
  check<TestType>({333, 16, NormKind::layernorm, true, true}, false);
  check<TestType>({70, 1040, NormKind::rmsnorm, true, false}, true);
}

TEST_CASE("norms give the same bits in every order of threads, warps and blocks") {
  for (const size_t C : {24, 1096}) {
    const NormCase c{34, C, NormKind::layernorm, true, true};
    const NormInputs in = inputs_of<DeviceBf16>(c);
    check_same_under_all_schedules([&] {
      const NormResults r = on_engine<DeviceBf16>(c, in, true);
      Doubles all;
      for (const Doubles* x : {&r.sum, &r.y, &r.stats, &r.dsum, &r.dweight, &r.dbias}) {
        all.insert(all.end(), x->begin(), x->end());
      }
      return all;
    });
  }
}

TEST_CASE("slots of the weights' gradients cover all rows and none is empty") {
  for (const int64_t N : {int64_t{1}, int64_t{32}, int64_t{33}, int64_t{16385}, int64_t{1} << 20}) {
    const int64_t rows = kernels::norm_backward_rows(N), pieces = kernels::norm_backward_pieces(N);
    CHECK(pieces * rows >= N);
    CHECK((pieces - 1) * rows < N);
    CHECK(pieces <= 512);
    CHECK(rows % 8 == 0);  // all groups of warps have equally many rounds
  }
}

TEST_CASE("the scratch of the adjoint serves smaller shapes too") {
  for (int64_t N = 1; N < 40000; N += 13) {
    for (const int64_t n : {N - N / 3, N - 1, N}) {
      if (n == 0) continue;
      REQUIRE(kernels::norm_backward_pieces(n) * 2 * 48 <= kernels::norm_backward_partial(N, 48));
    }
  }
}

TEST_CASE("norm kernels refuse what they do not take") {
  GlobalArray<float> x(64);
  kernels::NormForward<float> f;
  f.sum = f.y = f.stats = x.data();
  f.residual = f.weight = x.data();
  f.N = 1;
  for (const int C : {0, 12, 8200}) {
    f.C = C;
    check_refused(kernels::norm_forward(f, nullptr));
  }
  f.C = 8;
  f.N = 0;
  check_refused(kernels::norm_forward(f, nullptr));
  f.N = 1;
  f.y = x.data() + 2;
  check_refused(kernels::norm_forward(f, nullptr));
  kernels::NormBackward<float> g;
  g.N = 1;
  g.C = 4;
  check_refused(kernels::norm_backward(g, nullptr));
}
