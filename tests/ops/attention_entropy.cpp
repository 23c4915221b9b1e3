// The entropy of attention's rows, and logit scales from it.

#include <cmath>

#include "attention_case.h"
#include "catch.h"
#include "priors/fire.h"

namespace bamtrain::testing {
namespace {

const std::vector<TableForm> kEntropyForms = table_forms_and({TableForm::falling, TableForm::self});

/// Every T in every form; dimensions, heads, sequences, documents and windows cycle.
template <class F>
void for_entropy_cases(F&& f) {
  constexpr int64_t kHeads[][2] = {{1, 1}, {4, 2}, {6, 1}};
  constexpr int64_t kDimensions[] = {6, 16, 48, 80};
  constexpr int64_t kWindows[] = {0, 5, 64, 0, 70, 1, 0};
  size_t n = 0;
  for (int64_t T : {1, 17, 64, 65, 130, 200}) {
    for (TableForm form : kEntropyForms) {
      for (int variation = 0; variation < 3; ++variation, ++n) {
        AttentionCase c;
        c.T = T;
        c.table = form;
        c.B = 1 + static_cast<int64_t>(n % 2);
        c.D = kDimensions[n % 4];
        c.H = kHeads[n / 2 % 3][0];
        c.K = kHeads[n / 2 % 3][1];
        c.documents = n / 3 % 2 == 1;
        c.window = kWindows[n % 7];
        INFO(describe(c));
        f(c);
      }
    }
  }
}

/// The bias of family fire at distance d from a query at `position`, by FireTables in
/// ops/attention.h.
double fire_bias(const Arrays& in, int64_t h, int64_t position, int64_t d) {
  const auto at = [&](const char* name, int64_t i) {
    return in.at(name).x[static_cast<size_t>(i)];
  };
  int64_t segment = 0;
  while (segment < kFireHidden &&
         at("ends", position * kFireHidden + segment) <= static_cast<double>(d)) {
    ++segment;
  }
  const int64_t line = h * kFireSegments + segment;
  return at("slope", line) * at("psi", d) * at("inverse", position) + at("offset", line);
}

/// <q, E> at a count of gates.
double contextual_bias(const AttentionCase& c, const Arrays& in, const double* q, double gates) {
  const double at = std::min(gates, static_cast<double>(c.positions - 1));
  const auto low = static_cast<int64_t>(at);
  double sum = 0;
  for (int64_t d = 0; d < c.D; ++d) {
    const double* const E = in.at("positions").x.data() + d * c.positions;
    const double high = E[std::min(low + 1, c.positions - 1)];
    sum += q[d] * std::lerp(E[low], high, at - static_cast<double>(low));
  }
  return sum;
}

/// Dense rows of p by the definition, from the inputs only.
Values dense_entropy(const AttentionCase& c, const Arrays& in) {
  const std::vector<int32_t> first = first_keys(c);
  const auto at = [&](const char* name, int64_t b, int64_t t, int64_t h, int64_t heads) {
    return in.at(name).x.data() + ((b * c.T + t) * heads + h) * c.D;
  };
  Values out{Role::parameter, {c.B, c.H, c.T}, {}};
  for (int64_t b = 0; b < c.B; ++b) {
    for (int64_t h = 0; h < c.H; ++h) {
      for (int64_t i = 0; i < c.T; ++i) {
        std::vector<double> z;
        for (int64_t j = first[static_cast<size_t>(b * c.T + i)]; j <= i; ++j) {
          double s = 0;
          for (int64_t d = 0; d < c.D; ++d) {
            s += at("q", b, i, h, c.H)[d] * at("k", b, j, h / (c.H / c.K), c.K)[d];
          }
          s /= std::sqrt(static_cast<double>(c.D));
          if (in.count("table")) s += in.at("table").x[static_cast<size_t>(h * c.T + i - j)];
          if (in.count("numbers")) {
            const double* S = in.at("numbers").x.data() + (b * c.H + h) * c.T;
            const double x = S[j] - S[i];
            s += c.table == TableForm::difference ? x : -std::log(1 + x * x);
          }
          if (in.count("r")) {
            const double* const r = in.at("r").x.data() + ((i - j) * c.H + h) * c.D;
            const double *const u = in.at("u").x.data() + h * c.D, *const w = in.at("w").x.data() +
                                                                              h * c.D;
            double b_of_root = 0;
            for (int64_t d = 0; d < c.D; ++d) {
              b_of_root += (at("q", b, i, h, c.H)[d] + w[d]) * r[d] +
                           u[d] * at("k", b, j, h / (c.H / c.K), c.K)[d];
            }
            s += b_of_root / std::sqrt(static_cast<double>(c.D));
          }
          if (in.count("psi")) {
            const double position = in.at("positions").x[static_cast<size_t>(b * c.T + i)];
            s += fire_bias(in, h, static_cast<int64_t>(position), i - j);
          }
          z.push_back(s);
        }
        if (c.table == TableForm::contextual) {
          double gates = 0;
          for (auto of_key = z.rbegin(); of_key != z.rend(); ++of_key) {
            gates += 1 / (1 + std::exp(-*of_key));
            *of_key += contextual_bias(c, in, at("q", b, i, h, c.H), gates);
          }
        }
        double lse = 0, highest = z[0], entropy = 0;
        for (double x : z) highest = std::max(highest, x);
        for (double x : z) lse += std::exp(x - highest);
        lse = highest + std::log(lse);
        for (double x : z) entropy -= std::exp(x - lse) * (x - lse);
        out.x.push_back(entropy);
      }
    }
  }
  return out;
}

std::vector<double> entropy_on(Dtype t, const Operation& op) {
  Machine m(t);
  return op.forward(m, op.inputs).at("entropy").x;
}

TEST_CASE("entropies of the reference are those of dense rows") {
  for_entropy_cases([](const AttentionCase& c) {
    const Operation op = attention_entropy(c);
    Machine reference(Dtype::f64);
    // Rounding of logits of size 10. In dense rows, z and lse of size 1e4 cancel.
    const bool bounded = c.table == TableForm::self;
    check_close("entropy", op.forward(reference, op.inputs).at("entropy"),
                dense_entropy(c, op.inputs), bounded ? 1e-11 : 1e-13, 1);
  });
}

TEST_CASE("entropies on the CPU agree with the reference over shapes, forms and masks") {
  for (Dtype t : {Dtype::f32, Dtype::bf16}) {
    for_entropy_cases([t](const AttentionCase& c) {
      // For the rounding error of a logit, see attention.cpp. It changes the entropy by at most
      // |log p| times that. A logit next to 1e4 has an error of 1e4 u.
      const double terms =
          std::sqrt(static_cast<double>(c.D)) + std::sqrt(static_cast<double>(c.T));
      const double bounded = c.table == TableForm::self ? 1e4 : 0;
      compare_with_reference(attention_entropy(c), t, kF32 * (4 * (8 + terms) + bounded));
    });
  }
}

TEST_CASE("a row that sees one key has entropy 0, exactly") {
  for (TableForm form : kEntropyForms) {
    AttentionCase c;
    c.B = 2;
    c.T = 70;
    c.H = 3;
    c.K = 3;
    c.D = 16;
    c.table = form;
    c.window = 1;
    for (Dtype t : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
      for (double H : entropy_on(t, attention_entropy(c))) {
        if (H != 0) FAIL("entropy " << H << " in " << name_of(t));
      }
    }
  }
}

TEST_CASE("a row of equal logits has the logarithm of their number") {
  AttentionCase c;
  c.T = 200;
  c.H = c.K = 2;
  c.D = 16;
  c.documents = true;
  Operation op = attention_entropy(c);
  for (double& q : op.inputs["q"].x) q = 0;
  const std::vector<int32_t> first = first_keys(c);
  for (Dtype t : {Dtype::f64, Dtype::f32}) {
    const std::vector<double> H = entropy_on(t, op);
    for (size_t e = 0; e < H.size(); ++e) {
      const auto i = static_cast<int64_t>(e) % c.T;
      const auto n = static_cast<double>(i - first[static_cast<size_t>(i)] + 1);
      // The sum of n ones is exact; the logarithm is rounded.
      const double tolerance = t == Dtype::f64 ? 1e-14 : 4 * kF32;
      if (!(std::abs(H[e] - std::log(n)) <= tolerance * std::log(n))) FAIL(i << ": " << H[e]);
    }
  }
}

TEST_CASE("peaked rows have the entropy of one large logit above equal ones, wherever it is") {
  AttentionCase c;
  c.T = 200;
  c.H = c.K = 1;
  c.D = 4;
  for (double gap : {5.0, 7.9, 20.0, 60.0}) {
    for (int64_t peak : {0, 63, 130}) {
      Operation op = attention_entropy(c);
      // s = q k / 2 in the first channel.
      for (int64_t n = 0; n < c.T * c.D; ++n) {
        op.inputs["q"].x[static_cast<size_t>(n)] = n % c.D == 0 ? 2 : 0;
        op.inputs["k"].x[static_cast<size_t>(n)] = n == peak * c.D ? gap : 0;
      }
      for (Dtype t : {Dtype::f64, Dtype::f32}) {
        const std::vector<double> H = entropy_on(t, op);
        for (int64_t i = peak; i < c.T; ++i) {
          const double others = static_cast<double>(i) * std::exp(-gap);
          const double truth = std::log1p(others) + gap * others / (1 + others);
          // Rounding errors in sums of equal terms add up: 200 terms in sequence in fp64, a few
          // tiles of 16 lanes in fp32.
          const double allowed =
              t == Dtype::f64 ? 200 * 0x1p-53 * (2 * truth + 1) : 8 * kF32 * (8 * truth + 1);
          INFO("gap " << gap << ", peak " << peak << ", row " << i << ", " << name_of(t));
          if (!(std::abs(H[static_cast<size_t>(i)] - truth) <= allowed)) {
            FAIL("found " << H[static_cast<size_t>(i)] << ", truth " << truth);
          }
        }
      }
    }
  }
}

TEST_CASE("entropies have the same bits for any number of threads") {
  for (int64_t T : {70, 700}) {
    AttentionCase c;
    c.T = T;
    c.H = 4;
    c.K = 2;
    c.D = 16;
    c.table = TableForm::falling;
    c.documents = T == 70;
    const Operation op = attention_entropy(c);
    std::vector<double> one;
    for (int threads : {1, 2, 3, 4}) {
      const Threads limit(threads);
      const std::vector<double> H = entropy_on(Dtype::bf16, op);
      if (threads == 1) one = H;
      check_equal(H, one);
    }
  }
}

TEST_CASE("scales from entropies are the polynomial, 1 where it is less or the entropy is small") {
  const std::vector<double> H = {0, 0.5, 0.75, 1, 2, 3.5, 7, std::nan("")};
  std::vector<double> truth;
  for (double h : H) {
    const double p = -0.037 * std::pow(h, 4) + 0.481 * std::pow(h, 3) - 2.3 * h * h + 4.917 * h;
    truth.push_back(h > 0.5 ? std::max(1.0, p - 1.791) : 1);
  }
  CHECK(truth[4] == Approx(2.099));
  for (Dtype t : {Dtype::f64, Dtype::f32}) {
    Machine m(t);
    Values v{Role::parameter, {2, 2, 8}, {}};
    for (int n = 0; n < 4; ++n) v.x.insert(v.x.end(), H.begin(), H.end());
    const Memory entropy = m.memory(v), scale = m.unwritten(Role::parameter, {2, 2, 8});
    m.backend().run(EntropyScale{scale.tensor(), entropy.tensor(), 1});
    const std::vector<double> found = read(scale.tensor(), Role::parameter).x;
    for (size_t e = 0; e < found.size(); ++e) {
      const double expected = e / 8 % 2 == 0 ? 1 : truth[e % 8];
      CHECK(std::abs(found[e] - expected) <= 2 * kF32 * expected);
    }
    m.backend().run(EntropyScale{entropy.tensor(), entropy.tensor(), 1});  // in place
    check_equal(read(entropy.tensor(), Role::parameter).x, found);
  }
}

}  // namespace
}  // namespace bamtrain::testing
