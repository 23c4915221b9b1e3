// The activation kernels, compared with fp64.

#include "kernels/activation.h"

#include "values.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

struct Activated {
  double value, derivative;
};

/// The definitions; gelu in its tanh form.
Activated activated(MlpKind kind, double x) {
  if (kind == MlpKind::relu) return {x > 0 ? x : 0, x > 0 ? 1.0 : 0.0};
  if (kind == MlpKind::gelu_erf) {
    const double below = std::erfc(-x / std::sqrt(2)) / 2;
    return {x * below, below + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI)};
  }
  if (kind == MlpKind::swiglu) {
    const double s = 1 / (1 + std::exp(-x));
    return {x * s, s * (1 + x * (1 - s))};
  }
  const double k = std::sqrt(2 / M_PI), c = 0.044715, u = k * (x + c * x * x * x);
  const double one_plus_tanh = u < 0 ? std::exp(u) / std::cosh(u) : 1 + std::tanh(u);
  const double one_minus_square = 1 / (std::cosh(u) * std::cosh(u));
  return {0.5 * x * one_plus_tanh,
          0.5 * one_plus_tanh + 0.5 * x * one_minus_square * k * (1 + 3 * c * x * x)};
}

bool has_sigmoid(MlpKind kind) { return kind != MlpKind::gelu_erf && kind != MlpKind::relu; }

struct ActivationCase {
  MlpKind kind;
  size_t N, F;
};

/// Arguments of both signs: small, common, and so large that the exponential overflows.
template <class A>
Doubles arguments_of(const ActivationCase& c) {
  const auto width = static_cast<size_t>(kernels::activation_width(c.kind, 1));
  Doubles in = normal<A>("in", c.N * c.F * width, 2);
  const Doubles special = {0, 1e-4, -1e-4, 8, -8, 15, -15, 120, -120};
  for (size_t i = 0; i < special.size() && 7 * i < c.F; ++i) in[7 * i] = as<A>(special[i]);
  return in;
}

template <class A>
void check(const ActivationCase& c, bool in_place) {
  INFO("kind " << static_cast<int>(c.kind) << " N " << c.N << " F " << c.F);
  const bool gated = is_gated(c.kind);
  const size_t width = gated ? 2 * c.F : c.F;
  const Doubles in = arguments_of<A>(c), dout = normal<A>("dout", c.N * c.F);
  Doubles truth, dtruth(in.size()), slack(in.size(), 1), out_slack;
  for (size_t i = 0; i < c.N * c.F; ++i) {
    const size_t at = i / c.F * width + i % c.F;
    const Activated a = activated(c.kind, in[at]);
    const double up = gated ? in[at + c.F] : 1, x = in[at];
    truth.push_back(a.value * up);
    dtruth[at] = dout[i] * up * a.derivative;
    if (gated) dtruth[at + c.F] = dout[i] * a.value;
    // v, the sigmoid's argument, has a few rounding errors, and the exponential amplifies them by
    // |v|: the sigmoid's relative error is (8 |v| + 8) u. Near zeros of act', its terms cancel:
    // their size is 1 + |x v'| times sigmoid (1 - sigmoid).
    if (!has_sigmoid(c.kind)) {
      // erf has an error of 2 u (as in CUDA), 1 + erf the same again. The density's exponent is
      // rounded three times; its size, up to 2 where x times the density is largest, amplifies
      // that.
      const double error = c.kind == MlpKind::relu ? 0 : 8 * 0x1p-24 * (1 + std::abs(x));
      out_slack.push_back(error * std::abs(up));
      slack[at] = error * std::abs(dout[i] * up);
      continue;
    }
    const double v =
        c.kind == MlpKind::swiglu ? x : 2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    const double s = 1 / (1 + std::exp(-v)), error = (8 * std::abs(v) + 8) * 0x1p-24;
    const double slope =
        c.kind == MlpKind::swiglu ? 1 : 2 * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
    out_slack.push_back(error * std::abs(x * s * up));
    slack[at] = error * std::abs(dout[i] * up) * (s + std::abs(x * slope) * s * (1 + s));
    if (gated) slack[at + c.F] = error * std::abs(dout[i] * x * s);
  }
  const double u = kRoundoff<A>, tiny = 1e-30;  // below, the sigmoid is flushed to zero

  GlobalArray<A> input(elements<A>(in)), out(c.N * c.F);
  const GlobalArray<A> upstream(elements<A>(dout));
  GlobalArray<A> separate(in.size());
  GlobalArray<A>& din = in_place ? input : separate;
  const auto N = static_cast<int64_t>(c.N), F = static_cast<int64_t>(c.F);
  REQUIRE(kernels::activation_forward<A>({out.data(), input.data(), N, F, c.kind}, nullptr).ok());
  check_close(doubles(out), truth,
              [&](size_t i) { return out_slack[i] + u * std::abs(truth[i]) + tiny; });
  REQUIRE(kernels::activation_backward<A>({din.data(), upstream.data(), input.data(), N, F, c.kind},
                                          nullptr)
              .ok());
  check_close(doubles(din), dtruth,
              [&](size_t i) { return slack[i] + u * std::abs(dtruth[i]) + tiny; });
}

}  // namespace

TEMPLATE_TEST_CASE("activations and their adjoints agree with fp64", "", float, DeviceBf16) {
  for (const MlpKind kind :
       {MlpKind::swiglu, MlpKind::geglu, MlpKind::gelu, MlpKind::gelu_erf, MlpKind::relu}) {
    check<TestType>({kind, 1, 8}, false);
    check<TestType>({kind, 1, 80}, true);
    check<TestType>({kind, 19, 264}, false);
    check<TestType>({kind, 40, 128}, true);
  }
}

TEST_CASE("activations give the same bits in every order of threads and blocks") {
  const ActivationCase c{MlpKind::geglu, 20, 72};
  const Doubles in = arguments_of<DeviceBf16>(c), dout = normal<DeviceBf16>("dout", c.N * c.F);
  check_same_under_all_schedules([&] {
    GlobalArray<DeviceBf16> input(elements<DeviceBf16>(in));
    const GlobalArray<DeviceBf16> upstream(elements<DeviceBf16>(dout));
    REQUIRE(kernels::activation_backward<DeviceBf16>(
                {input.data(), upstream.data(), input.data(), 20, 72, c.kind}, nullptr)
                .ok());
    return doubles(input);
  });
}

TEST_CASE("activation kernels refuse what they do not take") {
  GlobalArray<float> in(64), out(64);
  const auto kind = MlpKind::swiglu;
  check_refused(kernels::activation_forward<float>({out.data(), in.data(), 1, 12, kind}, nullptr));
  check_refused(kernels::activation_forward<float>({out.data(), in.data(), 0, 8, kind}, nullptr));
  check_refused(
      kernels::activation_forward<float>({out.data(), in.data() + 1, 1, 8, kind}, nullptr));
  check_refused(kernels::activation_backward<float>({in.data(), out.data(), in.data(), 1, 12, kind},
                                                    nullptr));
}
