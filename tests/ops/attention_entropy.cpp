// The entropy of attention's rows, and logit scales from it.

#include <cmath>

#include "attention_case.h"
#include "catch.h"
#include "dense_attention.h"

namespace bamtrain::testing {
namespace {

const std::vector<TableForm> kEntropyForms = table_forms_and({TableForm::falling, TableForm::self});

/// Every T in every form.
template <class F>
void for_entropy_cases(F&& f) {
  size_t n = 0;
  for (int64_t T : {1, 17, 64, 65, 130, 200}) {
    for (TableForm form : kEntropyForms) {
      for (int variation = 0; variation < 3; ++variation) {
        AttentionCase c = turning_case(n++, T, form);
        INFO(describe(c));
        f(c);
      }
    }
  }
}

TEST_CASE("out, log-sums and entropies of the reference are those of dense rows") {
  Machine reference(Dtype::f64);
  for_entropy_cases([&](AttentionCase c) {
    // Rounding of logits of size 10. In dense rows, z and lse of size 1e4 cancel.
    const double tolerance = c.table == TableForm::self ? 1e-11 : 1e-13;
    for (bool causal : {true, false}) {
      if (!causal && c.table == TableForm::contextual) continue;
      c.causal = causal;
      c.padding = !causal && c.documents;
      const Operation op = attention(c);
      Arrays found = op.forward(reference, op.inputs), truth = dense_attention(c, op.inputs);
      for (const char* name : {"out", "lse"}) {
        check_close(name, found.at(name), truth.at(name), tolerance, 1);
      }
      c.scale = ScaleForm::none;
      const Operation entropy = attention_entropy(c);
      found = entropy.forward(reference, entropy.inputs);
      truth = dense_attention(c, entropy.inputs);
      check_close("entropy", found.at("entropy"), truth.at("entropy"), tolerance, 1);
    }
  });
}

TEST_CASE("entropies on the CPU agree with the reference over shapes, forms and masks") {
  for_entropy_cases([](AttentionCase c) {
    c.scale = ScaleForm::none;
    // For the rounding error of a logit, see attention.cpp. It changes the entropy by at most
    // |log p| times that. A logit next to 1e4 has an error of 1e4 u.
    const double bounded = c.table == TableForm::self ? 1e4 : 0;
    compare_with_reference(attention_entropy(c),
                           fp32_tolerance(c) + kF32 * (bounded - 4 * counted_gates(c)));
  });
}

std::vector<double> entropy_on(Dtype t, const Operation& op) {
  return run(op, t).results.at("entropy").x;
}

TEST_CASE("peaked rows have the entropy of one large logit above equal ones, wherever it is") {
  AttentionCase c;
  c.B = 1;
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
