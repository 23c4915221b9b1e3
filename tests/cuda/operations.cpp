// Every operation of the CUDA backend against the fp64 reference.

#include <cmath>

#include "catch.h"
#include "cuda/device.h"
#include "ops/attention_case.h"
#include "ops/cases.h"

namespace bamtrain::testing {
namespace {

/// See tests/ops/linear.cpp: sums of n terms in fp32.
double sum_tolerance(int64_t n) { return kF32 * (4 + 1.5 * std::sqrt(static_cast<double>(n))); }

void compare(const Operation& op, double tolerance, double more_in_bf16 = 0) {
  for (Dtype t : {Dtype::f32, Dtype::bf16}) {
    INFO(name_of(t));
    Machine machine(t, cuda_device());
    const double more = t == Dtype::bf16 ? more_in_bf16 : 0;
    compare_with_reference(op, t, tolerance + more, {&machine});
  }
}

TEST_CASE("linear on CUDA agrees with the reference") {
  for (const LinearCase& c :
       {LinearCase{1, 8, 16, true}, LinearCase{67, 40, 24, true}, LinearCase{130, 8, 72, false}}) {
    INFO("N " << c.N << ", O " << c.O << ", I " << c.I);
    // In bf16 the product is rounded before the bias is added.
    compare(linear(c), sum_tolerance(std::max({c.N, c.O, c.I})), c.bias ? kBf16 : 0);
  }
}

TEST_CASE("norms on CUDA agree with the reference") {
  for (NormKind kind : {NormKind::rmsnorm, NormKind::layernorm}) {
    for (bool branch : {false, true}) {
      for (int64_t C : {8, 48, 776}) {
        for (int64_t N : {1, 37}) {
          INFO("C " << C << ", N " << N << ", branch " << branch);
          // See tests/ops/norm.cpp.
          compare(norm({kind, N, C, kind == NormKind::layernorm, branch}),
                  kF32 * (10 + 1.5 * std::sqrt(static_cast<double>(C + N))));
        }
      }
    }
  }
}

TEST_CASE("activations on CUDA agree with the reference") {
  for (MlpKind kind :
       {MlpKind::swiglu, MlpKind::geglu, MlpKind::gelu, MlpKind::gelu_erf, MlpKind::relu}) {
    // exp and a division, each to a few roundings; the derivative is a product of three of them.
    compare(activation(kind, 19, 40), 32 * kF32);
  }
}

TEST_CASE("rotation on CUDA agrees with the reference") {
  for (const RotateCase& c :
       {RotateCase{1, 5, 1, 2}, RotateCase{2, 17, 3, 16}, RotateCase{1, 9, 2, 48}}) {
    compare(rotate(c), 4 * kF32);  // two products and a sum
  }
}

TEST_CASE("embedding on CUDA agrees with the reference, tokens repeated or not") {
  for (bool positions : {false, true}) {
    for (const EmbeddingCase& c : {EmbeddingCase{1, 3, 4, 8, positions},
                                   EmbeddingCase{300, 5, 40, 24, positions, std::sqrt(24)},
                                   EmbeddingCase{130, 900, 60, 8, positions}}) {
      INFO("N " << c.N << ", V " << c.V);
      compare(embedding(c), sum_tolerance(c.N));
    }
  }
}

TEST_CASE("cross entropy on CUDA agrees with the reference") {
  for (int64_t V : {4, 32, 1000}) {
    for (double shift : {0.0, 80.0}) {
      INFO("V " << V << ", shift " << shift);
      // A logit rounded at `shift` moves its probability by shift u.
      const double tolerance = kF32 * (32 + 2 * shift);
      Machine f32(Dtype::f32, cuda_device()), bf16(Dtype::bf16, cuda_device());
      compare_with_reference(cross_entropy({7, V, shift, false}), Dtype::f32, tolerance, {&f32});
      compare_with_reference(cross_entropy({7, V, shift, true}), Dtype::f32, tolerance, {&f32});
      compare_with_reference(cross_entropy({7, V, shift, false}), Dtype::bf16, tolerance, {&bf16});
    }
  }
}

TEST_CASE("running sums on CUDA agree with the reference") {
  for (const SumsCase& c : {SumsCase{2, 40, 3}, SumsCase{3, 70, 5}}) {
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      Machine m(t, cuda_device());
      compare_with_reference(running_sums(c), t, 2 * kF32, {&m});
    }
  }
}

TEST_CASE("adaptive scales on CUDA agree with the reference") {
  for (const AdaptiveCase& c :
       {AdaptiveCase{2, 40, 3}, AdaptiveCase{3, 70, 4, true, 2}, AdaptiveCase{1, 300, 5, true}}) {
    for (Dtype t : {Dtype::f32, Dtype::bf16}) {
      Machine m(t, cuda_device());
      compare_with_reference(adaptive_scale(c), t, 2 * kF32, {&m});
    }
  }
}

TEST_CASE("entropies of attention on CUDA agree with the reference in every form") {
  for (TableForm table : {TableForm::none, TableForm::falling, TableForm::difference,
                          TableForm::log_square, TableForm::fire}) {
    AttentionCase c;
    c.B = 2;
    c.T = 70;
    c.H = 4;
    c.K = 2;
    c.D = 48;
    c.table = table;
    c.documents = table != TableForm::none;
    c.window = table == TableForm::none ? 40 : 0;
    INFO(describe(c));
    Machine f32(Dtype::f32, cuda_device()), bf16(Dtype::bf16, cuda_device());
    // See tests/ops/attention_entropy.cpp.
    compare_with_reference(attention_entropy(c), Dtype::f32, 4 * kF32 * 24, {&f32});
    compare_with_reference(attention_entropy(c), Dtype::bf16, 4 * kF32 * 24, {&bf16});
  }
}

TEST_CASE("attention on CUDA agrees with the reference at every head dimension") {
  for (const int64_t D : {32, 48, 64, 96, 128}) {
    for (const bool window : {false, true}) {
      AttentionCase c;
      c.T = 150;
      c.H = 2;
      c.K = 1;
      c.D = D;
      c.table = TableForm::falling;
      c.scale = window ? ScaleForm::content : ScaleForm::both;
      c.window = window ? 40 : 0;
      c.documents = !window;
      INFO(describe(c));
      Machine bf16(Dtype::bf16, cuda_device());
      compare_with_reference(attention(c), Dtype::bf16, 3 * kBf16, {&bf16});  // as below
    }
  }
}

TEST_CASE("a content scale on CUDA is a factor of the queries, to the bit") {
  for (Dtype t : {Dtype::f32, Dtype::bf16}) {
    Machine m(t, cuda_device());
    for (TableForm table : {TableForm::none, TableForm::falling, TableForm::difference,
                            TableForm::log_square, TableForm::fire}) {
      for (ScaleForm scale : {ScaleForm::none, ScaleForm::content, ScaleForm::both}) {
        AttentionCase c;
        c.T = 70;
        c.H = 2;
        c.K = 1;
        c.D = 16;
        c.table = table;
        c.scale = scale;
        check_content_scale(m, c);
      }
    }
  }
}

TEST_CASE("attention on CUDA agrees with the reference in every form") {
  for (TableForm table : {TableForm::none, TableForm::falling, TableForm::difference,
                          TableForm::log_square, TableForm::fire}) {
    for (ScaleForm scale : {ScaleForm::none, ScaleForm::content, ScaleForm::both}) {
      AttentionCase c;
      c.B = 2;
      c.T = 70;
      c.H = 4;
      c.K = 2;
      c.D = 16;
      c.table = table;
      c.scale = scale;
      c.documents = scale == ScaleForm::both;
      INFO(describe(c));
      Machine f32(Dtype::f32, cuda_device()), bf16(Dtype::bf16, cuda_device());
      compare_with_reference(attention(c), Dtype::f32, 4 * kF32 * 24, {&f32});
      // p and dz are rounded to bf16 on their way into products: once or twice kBf16 beside the
      // rounding of the result.
      compare_with_reference(attention(c), Dtype::bf16, 3 * kBf16, {&bf16});
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing
