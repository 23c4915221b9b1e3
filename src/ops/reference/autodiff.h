#pragma once
// Forward-mode automatic differentiation of the reference's mechanisms, and access to their
// parameters and gates in fp64.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/tensor.h"
#include "ops/reference/dual.h"

namespace bamtrain::reference {

inline double* f64(const Tensor& t) { return t.ptr<double>(); }
inline const int32_t* i32(const Tensor& t) { return t.ptr<int32_t>(); }

using dual::Dual;
using Duals = std::vector<Dual>;

/// The parameters of head h of H: (H) or (H, values) each, concatenated.
inline Duals parameters_of_head(std::span<const Tensor> theta, int64_t h, int64_t H) {
  Duals own;
  for (const Tensor& t : theta) {
    const int64_t values = t.size() / H;
    for (int64_t k = 0; k < values; ++k) own.emplace_back(f64(t)[h * values + k]);
  }
  return own;
}

/// dtheta += the derivative of `f`, a scalar function of a head's parameters, with respect to each
/// of them.
template <class F>
void add_gradient(std::span<const Tensor> dtheta, std::span<const Tensor> theta, int64_t h,
                  int64_t H, F&& f) {
  Duals own = parameters_of_head(theta, h, H);
  size_t n = 0;
  for (size_t p = 0; p < theta.size(); ++p) {
    const int64_t values = theta[p].size() / H;
    for (int64_t k = 0; k < values; ++k, ++n) {
      if (dtheta[p].size() == 0) continue;
      own[n].d = 1;
      f64(dtheta[p])[h * values + k] += f(own).d;
      own[n].d = 0;
    }
  }
}

/// Gate (b, t, column) of a (B, T, columns) tensor.
inline double& gate(const Tensor& gates, int64_t b, int64_t t, int64_t column) {
  return f64(gates)[b * gates.stride[0] + t * gates.stride[1] + column * gates.stride[2]];
}

/// n_i of row i of sequence b, whose keys are first_key .. last_key, or .. i if last_key is empty.
inline int64_t visible_key_count(const Tensor& first_key, const Tensor& last_key, int64_t b,
                                 int64_t i) {
  const int64_t at = b * first_key.shape[1] + i;
  return (last_key ? i32(last_key)[at] : i) - i32(first_key)[at] + 1;
}

[[noreturn]] inline void unknown(const std::string& name, const char* file) {
  throw Error(ExitCode::internal, "the reference backend", "a formula for " + name, "none",
              std::string("add it to src/ops/reference/") + file);
}

}  // namespace bamtrain::reference
