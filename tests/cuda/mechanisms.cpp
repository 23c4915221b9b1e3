// Tables and scales of every prior and scale on the CUDA backend, and the gradients of their
// parameters, compared with the fp64 reference.

#include "ops/mechanisms.h"

#include "catch.h"
#include "cuda/device.h"
#include "thinned.h"

namespace bamtrain::testing {
namespace {

// Attention is fp32 here, and sums of gates accumulate the rounding errors of all later rows:
// 1.4e-4 was observed at T 1,024.
TEST_CASE("gradients of every mechanism's parameters on CUDA agree with the reference") {
  for (const int64_t T : {64, 300}) {
    WorkspaceShape shape = mechanism_workspace(T);
    shape.bidirectional = true;
    Machine reference(Dtype::f64, kNewestIsa, shape), f32(Dtype::f32, cuda_device(), shape);
    std::vector<Mechanisms> all = all_mechanisms();
    if (T == 64) {
      for (const Mechanisms& of : bidirectional_mechanisms()) all.push_back(of);
    }
    for (size_t n = 0; n < all.size(); ++n) {
      if (T > 64 && !is_run(n, 0, 3)) continue;
      const Mechanisms& of = all[n];
      INFO(of.prior.name << " with " << of.scale.name << ", T " << T
                         << (of.causal ? "" : ", bidirectional"));
      check_near(parameter_gradients(f32, of, T), parameter_gradients(reference, of, T), 1e-4);
    }
  }
}

// More rows than a block of a gradient's sum takes, and lengths that are not multiples of a block.
TEST_CASE("tables and scales of many rows on CUDA agree with the reference") {
  constexpr int64_t kB = 3, kT = 1500;
  WorkspaceShape shape = mechanism_workspace(kT);
  shape.B = kB;
  shape.bidirectional = true;
  Machine reference(Dtype::f64, kNewestIsa, shape), f32(Dtype::f32, cuda_device(), shape);
  for (const std::vector<Mechanisms>& all : {all_mechanisms(), bidirectional_mechanisms()}) {
    for (const Mechanisms& of : all) {
      INFO(of.prior.name << " with " << of.scale.name << (of.causal ? "" : ", bidirectional"));
      // Parameters and results are rounded to fp32, everything else is fp64.
      check_near(tables_and_scales(f32, of, kB, kT), tables_and_scales(reference, of, kB, kT),
                 1e-5);
    }
  }
}

/// alphas of random theta, and theta's gradient for random ones of (B, 3, T) rows.
Arrays alphas(Machine& m, int64_t B, int64_t T) {
  constexpr auto P = Role::parameter;
  const Memory theta = m.memory(random_values(P, {3}, "theta")),
               of_rows = m.memory(random_values(P, {B, 3, T}, "dalpha"));
  const Memory alphas = m.unwritten(P, {3}), dtheta = m.zeros(P, {3});
  m.backend().run(AlphaForward{alphas.tensor(), theta.tensor()});
  m.backend().run(AlphaBackward{dtheta.tensor(), of_rows.tensor(), theta.tensor()});
  return {{"alphas", read(alphas.tensor(), P)}, {"dtheta", read(dtheta.tensor(), P)}};
}

TEST_CASE("alphas of many rows on CUDA agree with the reference") {
  Machine reference(Dtype::f64), f32(Dtype::f32, cuda_device());
  check_near(alphas(f32, 3, 1500), alphas(reference, 3, 1500), 1e-5);
}

}  // namespace
}  // namespace bamtrain::testing
