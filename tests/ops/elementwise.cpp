// Activations, rotation, embedding.

#include <cmath>

#include "cases.h"
#include "catch.h"

namespace bamtrain::testing {
namespace {

constexpr MlpKind kMlps[] = {MlpKind::swiglu, MlpKind::geglu, MlpKind::gelu, MlpKind::gelu_erf,
                             MlpKind::relu};

TEST_CASE("a copy between rows that lie apart moves them, and nothing beside them") {
  for (const Dtype t : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
    Machine m(t);
    for (const Role role : {Role::activation, Role::parameter, Role::wide}) {
      for (const CopyCase& c : kCopies) check_copy(c, role, m);
    }
  }
}

TEST_CASE("the adjoint of every activation agrees with finite differences") {
  for (MlpKind kind : kMlps) {
    check_differences(activation(kind, 3, 7), 60);
  }
}

TEST_CASE("activations on the CPU agree with the reference") {
  // exp is accurate to 2e-7 = 3.4 u (simd.cpp), a sigmoid to 6 u. tanh = 2 sigmoid - 1 doubles
  // that, and gelu's derivative multiplies 1 - tanh^2 by up to 1.3. erf is accurate to 4e-7 = 7 u.
  const double tolerance = 32 * kF32;
  for (MlpKind kind : kMlps) {
    for (int64_t F : {1, 15, 16, 33, 300}) {
      for (int64_t N : {1, 35}) {
        INFO("kind " << static_cast<int>(kind) << ", F " << F << ", N " << N);
        compare_with_reference(activation(kind, N, F), tolerance);
      }
    }
  }
}

TEST_CASE("activations far from zero are 0 or the identity, their derivatives 0 or 1") {
  for (Dtype t : {Dtype::f32, Dtype::bf16, Dtype::f64}) {
    Machine m(t);
    for (MlpKind kind : kMlps) {
      const bool gated = is_gated(kind);
      Values in{Role::activation, {1, gated ? 6 : 3}, {-512, 512, 0}};
      if (gated) in.x.insert(in.x.end(), {2, 2, 2});
      const double up = gated ? 2 : 1;
      const Memory x = m.memory(in), out = m.unwritten(Role::activation, {1, 3});
      m.backend().activation_forward(out.tensor(), x.tensor(), kind);
      const std::vector<double> y = read(out.tensor(), Role::activation).x;
      CHECK(std::abs(y[0]) < 1e-30);
      CHECK(y[1] == 512 * up);
      CHECK(y[2] == 0);
      const Memory dout = m.memory(constant_values(Role::activation, {1, 3}, 1));
      m.backend().activation_backward(x.tensor(), dout.tensor(), x.tensor(), kind);
      const std::vector<double> d = read(x.tensor(), Role::activation).x;
      CHECK(std::abs(d[0]) < 1e-30);
      CHECK(d[1] == up);
      CHECK(d[2] == (kind == MlpKind::relu ? 0 : 0.5) * up);
      if (gated) CHECK(d[4] == 512);
    }
  }
}

TEST_CASE("the adjoint of an activation may overwrite the input") {
  for (Dtype t : {Dtype::f32, Dtype::bf16, Dtype::f64}) {
    Machine m(t);
    for (MlpKind kind : kMlps) {
      const Operation op = activation(kind, 5, 37);
      const Arrays dout{{"out", random_values(Role::activation, {5, 37}, "dout")}};
      const Arrays apart = op.adjoint(m, op.inputs, {}, dout, 0);
      const Memory x = m.memory(op.inputs.at("in")), d = m.memory(dout.at("out"));
      m.backend().activation_backward(x.tensor(), d.tensor(), x.tensor(), kind);
      check_equal(read(x.tensor(), Role::activation).x, apart.at("in").x);
    }
  }
}

TEST_CASE("the adjoint of rotation agrees with finite differences") {
  check_differences(rotate({2, 7, 2, 6}), 168);
}

TEST_CASE("rotation on the CPU agrees with the reference") {
  for (int64_t D : {2, 6, 20, 32, 48, 64}) {
    for (const RotateCase& c : {RotateCase{1, 1, 1, D}, RotateCase{3, 40, 2, D}}) {
      INFO("D " << D << ", T " << c.T);
      compare_with_reference(rotate(c), 4 * kF32);  // two products and a sum
    }
  }
}

TEST_CASE("rotating back undoes a rotation") {
  const Operation op = rotate({2, 19, 3, 20});
  for (Dtype t : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
    Machine m(t);
    Values x = op.inputs.at("x");
    for (double& v : x.x) v = rounded(v, m.dtype_of(Role::activation));
    const Arrays back = op.adjoint(m, {}, {}, op.forward(m, {{"x", x}}), 0);
    // cos^2 + sin^2 = 1 up to the rounding of both to fp32; plus two roundings to bf16.
    check_close("x", back.at("x"), x, 8 * kF32 + (t == Dtype::bf16 ? 2 * kBf16 : 0));
  }
}

TEST_CASE("a quarter turn moves the first half of a head to the second") {
  for (Dtype t : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
    Machine m(t);
    const Memory x = m.memory({Role::activation, {1, 1, 1, 4}, {1, 2, 3, 4}});
    const Memory p = m.zeros(Role::index, {1, 1}), cosine = m.zeros(Role::parameter, {1, 2});
    const Memory sine = m.memory(constant_values(Role::parameter, {1, 2}, 1));
    m.backend().rotate(x.tensor(), p.tensor(), cosine.tensor(), sine.tensor(), false);
    CHECK(read(x.tensor(), Role::activation).x == std::vector<double>{-3, -4, 1, 2});
  }
}

TEST_CASE("the adjoint of embedding agrees with finite differences") {
  for (bool positions : {false, true}) {
    for (double scale : {1.0, 2.5}) {
      check_differences(embedding({13, 4, 6, 5, positions, scale}), 60);
    }
  }
}

TEST_CASE("embedding on the CPU agrees with the reference, tokens repeated or not") {
  for (bool positions : {false, true}) {
    for (int64_t C : {1, 24, 100, 200}) {
      for (int64_t V : {1, 3, 500}) {
        INFO("positions " << positions << ", C " << C << ", V " << V);
        const EmbeddingCase c{150, V, 40, C, positions, V == 3 ? std::sqrt(C) : 1};
        // Up to 150 additions per row.
        const double tolerance = kF32 * (4 + 1.5 * std::sqrt(150.0));
        compare_with_reference(embedding(c), tolerance);
      }
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing
