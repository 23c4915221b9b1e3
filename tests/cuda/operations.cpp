// Every operation of the CUDA backend, compared with the fp64 reference; for attention, see
// attention.cpp.

#include <cmath>
#include <utility>

#include "catch.h"
#include "cuda/device.h"
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
       {LinearCase{1, 8, 16, true}, LinearCase{67, 40, 24, true}, LinearCase{130, 8, 72, false},
        LinearCase{67, 15, 24, true, 49}, LinearCase{40, 2, 16, true, 62}}) {
    INFO("N " << c.N << ", O " << c.O << ", I " << c.I << ", gap " << c.gap);
    // In bf16 the product is rounded before the bias is added.
    compare(linear(c), sum_tolerance(std::max({c.N, c.O, c.I})), c.bias ? kBf16 : 0);
  }
}

/// See tests/ops/norm.cpp.
void check_norm(const NormCase& c) {
  INFO("C " << c.C << ", N " << c.N << ", branch " << c.branch << ", bias " << c.bias);
  WorkspaceShape shape = Machine::kShape;
  shape.C = std::max(shape.C, c.C);
  for (Dtype t : {Dtype::f32, Dtype::bf16}) {
    INFO(name_of(t));
    Machine machine(t, cuda_device(), shape);
    compare_with_reference(
        norm(c), t, kF32 * (10 + 1.5 * std::sqrt(static_cast<double>(c.C + c.N))), {&machine});
  }
}

TEST_CASE("norms on CUDA agree with the reference") {
  for (NormKind kind : {NormKind::rmsnorm, NormKind::layernorm}) {
    for (bool branch : {false, true}) {
      for (int64_t C : {8, 48, 768, 776}) {
        for (int64_t N : {1, 37}) check_norm({kind, N, C, kind == NormKind::layernorm, branch});
      }
    }
  }
}

// Warps per row and vectors per lane are constants of the kernels. Tests the widest row of each
// pair, and one that leaves its last lanes idle. Also rows in two parts (norm_backward_rows), whose
// sums are adjacent.
TEST_CASE("norms of every width on CUDA agree with the reference") {
  for (int64_t C : {256, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192}) {
    check_norm({NormKind::rmsnorm, 33, C, false, false});
    check_norm({NormKind::rmsnorm, 33, C - 8, false, true});
    check_norm({NormKind::layernorm, 33, C - 8, true, true});
  }
}

TEST_CASE("activations on CUDA agree with the reference") {
  for (MlpKind kind :
       {MlpKind::swiglu, MlpKind::geglu, MlpKind::gelu, MlpKind::gelu_erf, MlpKind::relu}) {
    // exp and a division have a few roundings each; the derivative is a product of three of them.
    // Sizes are within a block of rows and columns, equal to it, and larger.
    compare(activation(kind, 19, 40), 32 * kF32);
    compare(activation(kind, 16, 256), 32 * kF32);
    compare(activation(kind, 33, 520), 32 * kF32);
  }
}

TEST_CASE("rotation on CUDA agrees with the reference") {
  for (const RotateCase& c :
       {RotateCase{1, 5, 1, 2}, RotateCase{2, 17, 3, 16}, RotateCase{1, 9, 2, 48},
        // More pairs per token than a block has threads, single and in vectors.
        RotateCase{2, 3, 90, 6}, RotateCase{2, 3, 40, 128}}) {
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
  // In memory a sum of the last column comes before the sorted tokens. It is 0, like all of these.
  Operation op = embedding({130, 1, 1, 8, false});
  Values& d = op.cotangents["out"] = random_values(Role::activation, {130, 8}, "cotangent of out");
  for (size_t n = 7; n < d.x.size(); n += 8) d.x[n] = 0;
  compare(op, sum_tolerance(130));
}

TEST_CASE("cross entropy on CUDA agrees with the reference") {
  // Tiles have 8,192 entries, of which a block keeps three. Includes the vocabularies of Mistral
  // and GPT-2, one that ends a vector of the second tile after one of its four, and a logit that
  // exceeds the others by more than e^x takes in fp32.
  Machine f32(Dtype::f32, cuda_device()), bf16(Dtype::bf16, cuda_device());
  constexpr std::pair<double, double> kOffsets[] = {{0, 0}, {80, 0}, {0, 200}};
  for (int64_t V : {4, 32, 1000, 8192, 8196, 13001, 32768, 50304}) {
    for (const auto& [shift, peak] : kOffsets) {
      INFO("V " << V << ", shift " << shift << ", peak " << peak);
      // Rounding a logit at `shift` changes its probability by shift u.
      const double tolerance = kF32 * (32 + 2 * shift);
      const Operation op = cross_entropy({7, V, shift, false, peak});
      compare_with_reference(op, Dtype::f32, tolerance, {&f32});
      compare_with_reference(op, Dtype::bf16, tolerance, {&bf16});
      compare_with_reference(cross_entropy({7, V, shift, true, peak}), Dtype::f32, tolerance,
                             {&f32});
    }
  }
}

TEST_CASE("a copy between rows that lie apart on CUDA moves them, and nothing beside them") {
  for (const Dtype t : {Dtype::f32, Dtype::bf16}) {
    Machine m(t, cuda_device());
    for (const Role role : {Role::activation, Role::parameter, Role::wide}) {
      for (const CopyCase& c : kCopies) check_copy(c, role, m);
    }
  }
}

TEST_CASE("running sums on CUDA agree with the reference") {
  for (const SumsCase& c : {SumsCase{2, 40, 3}, SumsCase{3, 70, 5}, SumsCase{1, 1100, 2},
                            SumsCase{2, 40, 3, 1}, SumsCase{1, 70, 2, 9}}) {
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

}  // namespace
}  // namespace bamtrain::testing
