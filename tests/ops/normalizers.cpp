// Attention with every normalizer: finite differences of the reference, the CPU's general path
// compared with the reference, identities, and rows with extreme logits.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attention_case.h"
#include "catch.h"
#include "dense_attention.h"
#include "normalizer_forms.h"
#include "normalizers/entmax.h"
#include "thinned.h"

namespace bamtrain::testing {
namespace {

/// Attention on the general path, softmax's too.
AttentionCase general_case(const NormalizerForm& form) {
  AttentionCase c;
  c.B = c.K = 1;
  c.H = 2;
  c.normalizer = form;
  c.general = true;
  c.own_rows = true;
  return c;
}

TEST_CASE("the general path of attention agrees with the reference, with every normalizer") {
  for (Dtype t : {Dtype::f32, Dtype::bf16}) {
    size_t n = 0;
    for (int64_t T : {1, 2, 15, 17, 64, 65, 130, 200}) {
      for (int64_t D : {6, 16, 48}) {
        for (const NormalizerForm& form : every_normalizer()) {
          AttentionCase c = turning_case(n, T, kTableForms[n % std::size(kTableForms)]);
          c.D = D;
          c.content = 1 + static_cast<double>(n++ % 3);
          c.normalizer = form;
          c.general = c.own_rows = true;
          INFO(describe(c));
          compare_with_reference(attention(c), t, normalizer_tolerance(c));
        }
      }
    }
  }
}

TEST_CASE("tiles without weight have none in the backward pass, whatever the scale's sign") {
  for (const NormalizerForm& form : every_normalizer()) {
    if (form.kind == NormalizerKind::stick_breaking) continue;
    for (ScaleForm scale : {ScaleForm::content, ScaleForm::both}) {
      AttentionCase c = general_case(form);
      c.T = 300;
      c.table = TableForm::falling;
      c.scale = scale;
      c.zero_scale = c.below_zero = true;
      c.own_rows = false;
      INFO(describe(c));
      compare_with_reference(attention(c), Dtype::f32, normalizer_tolerance(c));
    }
  }
}

TEST_CASE("keys in tiles without weight count: gates there have the gradients of keys before") {
  for (const NormalizerForm& form : every_normalizer()) {
    AttentionCase c = general_case(form);
    c.T = 300;
    c.D = 8;
    c.table = TableForm::contextual;
    c.scale = ScaleForm::content;
    Operation op = attention(c);
    // All rows are equal; keys at a distance of 8 to 110 have b = -8.
    std::fill(op.inputs.at("q").x.begin(), op.inputs.at("q").x.end(), 1.0);
    std::vector<double>& E = op.inputs.at("positions").x;
    for (size_t n = 0; n < E.size(); ++n) {
      if (n % 64 > 3 && n % 64 < 56) E[n] = -1;
    }
    INFO(describe(c));
    compare_with_reference(op, Dtype::f32, 8 * normalizer_tolerance(c));
  }
}

TEST_CASE("the adjoint of attention agrees with finite differences, with every normalizer") {
  size_t n = 0, row = 0;
  for (const NormalizerForm& form : every_normalizer()) {
    ++row;
    for (TableForm table : kTableForms) {
      for (ScaleForm scale : kScaleForms) {
        AttentionCase c;
        // For each bias, a length at which no key is within a step of entering or leaving the
        // nonzero keys.
        c.T = table == TableForm::relative ? 12 : 13;
        c.D = 6;
        c.table = table;
        c.scale = scale;
        c.positions = n % 3 == 0 ? 64 : 4;
        c.documents = n++ % 2 == 1;
        c.normalizer = form;
        if (table == TableForm::fire) continue;  // steps of its lines cross thresholds
        if (!is_run(row, static_cast<size_t>(table) + static_cast<size_t>(scale), 2)) continue;
        INFO(describe(c));
        check_differences(attention(c), 20);
      }
    }
  }
}

TEST_CASE("the last rows alone are those of all rows, with every normalizer") {
  size_t n = 0;
  Machine reference(Dtype::f64);
  for (const NormalizerForm& form : every_normalizer()) {
    for (TableForm table : kTableForms) {
      AttentionCase c = general_case(form);
      c.table = table;
      c.scale = kScaleForms[n % 3];
      c.positions = n % 2 == 0 ? 10 : 64;
      c.documents = n++ % 2 == 1;
      INFO(describe(c));
      const Operation all = attention(c), last = attention_of_last_rows(c, 7);
      const Values truth = last_of(all.forward(reference, all.inputs).at("out"), 1, 7);
      for (Dtype t : {Dtype::f64, Dtype::f32}) {
        check_close("out", run(last, t).results.at("out"), truth,
                    t == Dtype::f64 ? 1e-15 : normalizer_tolerance(c));
      }
    }
  }
}

TEST_CASE("attention of every normalizer has the same bits for any number of threads") {
  for (const NormalizerForm& form : every_normalizer()) {
    for (TableForm table : {TableForm::table, TableForm::contextual}) {
      AttentionCase c = general_case(form);
      c.T = 200;
      c.table = table;
      c.scale = ScaleForm::both;
      c.documents = true;
      INFO(describe(c));
      check_same_for_any_threads(attention(c), Dtype::f32);
    }
  }
}

// Its terms cancel by 1 / (alpha - 1), and weights are rounded numbers to the power 1 / (alpha -
// 1).
TEST_CASE("the gradient of an alpha near 1 agrees with the reference") {
  for (double alpha : {1.001, 1.002, 1.01, 1.05, 1.2}) {
    for (int64_t T : {17, 70, 200}) {
      AttentionCase c;
      c.T = T;
      c.normalizer = entmax(alpha, true);
      INFO(describe(c));
      compare_with_reference(attention(c), 2 * fp32_tolerance(c) / (alpha - 1));
    }
  }
}

TEST_CASE("a learned alpha begins and stays within alpha's limits") {
  const NormalizerInfo& info = all_normalizers().at(static_cast<size_t>(NormalizerKind::entmax));
  for (double alpha : {Entmax::kLeastAlpha, 1.5, Entmax::kMostAlpha}) {
    Options options = default_options(info.options);
    options.set("alpha", alpha);
    options.set("learned", true);
    const ModelShape shape = {.layers = 1, .heads = 2, .head_dim = 8, .width = 16};
    const MechanismParameter p = info.parameters(options, shape).at(0);
    const double theta = info.initial(options, shape, p, 0, 0, 0);
    CHECK(p.minimum <= theta);
    CHECK(theta <= p.maximum);
    CHECK(1 + std::log1p(std::exp(theta)) == Approx(alpha).epsilon(1e-6));
    CHECK(std::log1p(std::exp(p.minimum)) == Approx(Entmax::kLeastAlpha - 1).epsilon(1e-5));
  }
}

TEST_CASE("rows at the edges of what numbers hold sum to one, without NaN in any gradient") {
  std::vector<NormalizerForm> all = every_normalizer();
  for (double alpha : {1.001, 1.01, 4.0, 16.0, 64.0}) all.push_back(entmax(alpha));
  for (const NormalizerForm& form : all) {
    AttentionCase c = general_case(form);
    c.T = 130;
    c.D = 8;
    c.documents = true;
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      for (CpuIsa isa : {kNewestIsa, CpuIsa::avx2}) {
        Machine m(t, isa, workspace_of(c));
        check_edges(m, c, kBf16);
      }
    }
  }
}

TEST_CASE("NaN in every query or in a key reaches the rows that it reaches on the reference") {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  Machine reference(Dtype::f64);
  for (const NormalizerForm& form : every_normalizer()) {
    for (TableForm table : {TableForm::table, TableForm::contextual}) {
      AttentionCase c = general_case(form);
      c.T = 200;
      c.window = 150;
      c.table = table;
      const Operation op = attention(c);
      Arrays queries = op.inputs, key = op.inputs;
      std::fill(queries.at("q").x.begin(), queries.at("q").x.end(), kNaN);
      key.at("k").x[static_cast<size_t>(70 * c.K * c.D + 3)] = kNaN;
      for (const Arrays& in : {queries, key}) {
        const Values truth = op.forward(reference, in).at("out");
        for (Dtype t : {Dtype::f32, Dtype::bf16}) {
          for (CpuIsa isa : {kNewestIsa, CpuIsa::avx2}) {
            Machine m(t, isa, op.workspace);
            INFO(describe(c) << " in " << name_of(t) << ", " << m.backend().name());
            const Values found = op.forward(m, in).at("out");
            size_t wrong = 0, nans = 0;
            for (size_t e = 0; e < truth.x.size(); ++e) {
              wrong += std::isnan(found.x[e]) != std::isnan(truth.x[e]);
              nans += std::isnan(truth.x[e]);
            }
            CHECK(wrong == 0);
            CHECK(nans > 0);
          }
        }
      }
    }
  }
}

TEST_CASE("entmax with alpha near 1 is softmax, top-k with all keys too") {
  AttentionCase c;
  c.T = 100;
  c.table = TableForm::falling;
  Machine m(Dtype::f64);
  const Operation softmax = attention(c);
  const Values truth = softmax.forward(m, softmax.inputs).at("out");
  c.normalizer = topk(100);
  check_equal(attention(c).forward(m, softmax.inputs).at("out").x, truth.x);
  // The difference is of first order in alpha - 1.
  for (double a : {1e-3, 1e-4}) {
    c.normalizer = entmax(1 + a);
    check_close("out", attention(c).forward(m, softmax.inputs).at("out"), truth, 20 * a);
  }
}

/// The projection of z onto the simplex (Held et al. 1974): sparsemax without iteration.
std::vector<double> projection(const std::vector<double>& z) {
  std::vector<double> sorted = z;
  std::sort(sorted.rbegin(), sorted.rend());
  double sum = 0, tau = 0;
  for (size_t k = 0; k < sorted.size(); ++k) {
    sum += sorted[k];
    const double candidate = (sum - 1) / static_cast<double>(k + 1);
    if (sorted[k] > candidate) tau = candidate;
  }
  std::vector<double> p;
  for (double x : z) p.push_back(std::max(0.0, x - tau));
  return p;
}

TEST_CASE("entmax with alpha 2 is the projection on the simplex") {
  AttentionCase c;
  c.B = c.H = c.K = 1;
  c.T = 90;
  c.D = 90;
  c.content = 3;
  c.normalizer = entmax(2);
  Operation op = attention(c);
  // v_j is the j-th unit vector, so out_i is p_i.
  for (int64_t j = 0; j < c.T; ++j) {
    for (int64_t d = 0; d < c.D; ++d)
      op.inputs.at("v").x[static_cast<size_t>(j * c.D + d)] = j == d;
  }
  const std::vector<double> exact = run(op, Dtype::f64).results.at("out").x;
  const std::vector<double> found = run(op, Dtype::f32).results.at("out").x;
  for (int64_t i = 0; i < c.T; ++i) {
    const std::vector<double> p = projection(DenseRow(c, op.inputs, 0, 0, i, 0, i).s);
    for (size_t j = 0; j < p.size(); ++j) {
      const size_t at = static_cast<size_t>(i * c.D) + j;
      if (!(std::abs(exact[at] - p[j]) < 1e-12)) FAIL("row " << i << ", key " << j);
      if (!(std::abs(found[at] - p[j]) < 1e-5)) FAIL("row " << i << ", key " << j << " on the CPU");
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing
