#pragma once
// Automatic differentiation in reverse: the reference writes each formula once, and its gradients
// follow. Also access to tensors in fp64.

#include <cmath>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/element.h"
#include "core/error.h"
#include "ops/tensors.h"

/// Found by their arguments, so that none hides a function of the standard library.
namespace bamtrain::autodiff {

class Tape;

/// A number, and where derivatives with respect to it are added. A constant has no such place.
struct Var {
  double x = 0;
  double* d = nullptr;
  Tape* tape = nullptr;  // of the operations that read it; null for constants

  Var() = default;
  Var(double value) : x(value) {}  // NOLINT(google-explicit-constructor)
  /// A constant if there is no tape or no place.
  Var(double value, double* derivative, Tape* t)
      : x(value), d(t ? derivative : nullptr), tape(derivative ? t : nullptr) {}
};
using Vars = std::vector<Var>;

/// Numbers in memory, and where their derivatives are added; null: constants.
struct Array {
  const double* x = nullptr;
  double* d = nullptr;
  int64_t stride = 1;
};

/// Records operations on Vars. backward() takes the derivatives of what was seeded back to the
/// inputs.
class Tape {
 public:
  /// An operation: what it depends on, then its result.
  void argument(const Var& a, double derivative) {
    if (a.d != nullptr) edges_.push_back({a.d, derivative});
  }
  /// The sum over c < n of x[c] y[c].
  void argument(const Array& x, const Array& y, int64_t n) { products_.push_back({x, y, n}); }
  Var result(double x) {
    nodes_.push_back({0, edges_.size(), products_.size()});
    return {x, &nodes_.back().d, this};
  }
  /// x of two arguments. Out of line, so that the path of constants stays small enough to inline.
  [[gnu::noinline]] Var operation(double x, const Var& a, double da, const Var& b, double db) {
    argument(a, da);
    argument(b, db);
    return result(x);
  }

  /// Adds d y to what backward() differentiates.
  static void seed(const Var& y, double d) {
    if (y.d != nullptr) *y.d += d;
  }
  /// Adds the derivatives to the inputs' places, and forgets all operations.
  void backward() {
    for (; !nodes_.empty(); nodes_.pop_back()) {
      const double d = nodes_.back().d;
      const Node before = nodes_.size() > 1 ? nodes_[nodes_.size() - 2] : Node();
      for (; edges_.size() > before.edges; edges_.pop_back()) {
        if (d != 0) *edges_.back().to += edges_.back().derivative * d;
      }
      for (; products_.size() > before.products; products_.pop_back()) {
        const auto& [x, y, n] = products_.back();
        add(x, y, n, d);
        add(y, x, n, d);
      }
    }
  }

 private:
  struct Edge {
    double* to;
    double derivative;
  };
  struct Product {
    Array x, y;
    int64_t n;
  };
  struct Node {
    double d = 0;
    size_t edges = 0, products = 0;  // where its own end
  };

  /// The derivatives of x += d y.
  static void add(const Array& x, const Array& y, int64_t n, double d) {
    if (x.d == nullptr || d == 0) return;
    for (int64_t c = 0; c < n; ++c) x.d[c * x.stride] += d * y.x[c * y.stride];
  }

  std::vector<Edge> edges_;
  std::vector<Product> products_;
  std::deque<Node> nodes_;  // a deque: addresses are stable
};

/// x with its derivatives with respect to a and b.
inline Var operation(double x, const Var& a, double da, const Var& b = {}, double db = 0) {
  Tape* const tape = a.tape ? a.tape : b.tape;
  return tape ? tape->operation(x, a, da, b, db) : Var(x);
}

/// Whether a is the constant x.
inline bool is_constant(const Var& a, double x) { return a.d == nullptr && a.x == x; }

inline Var operator+(const Var& a, const Var& b) {
  return is_constant(b, 0) ? a : operation(a.x + b.x, a, 1, b, 1);
}
inline Var operator-(const Var& a, const Var& b) { return operation(a.x - b.x, a, 1, b, -1); }
inline Var operator-(const Var& a) { return operation(-a.x, a, -1); }
inline Var operator*(const Var& a, const Var& b) {
  return is_constant(a, 1) ? b : operation(a.x * b.x, a, b.x, b, a.x);
}
inline Var operator/(const Var& a, const Var& b) {
  return operation(a.x / b.x, a, 1 / b.x, b, -a.x / b.x / b.x);
}
inline Var exp(const Var& a) { return operation(std::exp(a.x), a, std::exp(a.x)); }
inline Var log(const Var& a) { return operation(std::log(a.x), a, 1 / a.x); }
/// log(1 + a).
inline Var log1p(const Var& a) { return operation(std::log1p(a.x), a, 1 / (1 + a.x)); }
inline Var tanh(const Var& a) {
  const double t = std::tanh(a.x);
  return operation(t, a, 1 - t * t);
}
inline Var erfc(const Var& a) {
  return operation(std::erfc(a.x), a, -2 / std::sqrt(M_PI) * std::exp(-a.x * a.x));
}
/// The derivative at 0 is 0, between those of the two sides.
inline Var abs(const Var& a) { return operation(std::abs(a.x), a, a.x > 0 ? 1 : a.x < 0 ? -1 : 0); }
/// a^b for a >= 0; 0^b is the constant 0.
inline Var pow(const Var& a, const Var& b) { return a.x == 0 ? 0 : exp(b * log(a)); }
/// log(1 + exp(a)) and its derivative, with the larger exponential factored out.
inline Var softplus(const Var& a) { return a.x > 0 ? a + log1p(exp(-a)) : log1p(exp(a)); }
inline Var sigmoid(const Var& a) { return a.x > 0 ? 1 / (1 + exp(-a)) : exp(a) / (1 + exp(a)); }

/// The sum over c < n of x[c] y[c], one operation.
inline Var dot(Tape* tape, int64_t n, const Array& x, const Array& y) {
  double sum = 0;
  if (x.stride == 1 && y.stride == 1) {
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < n; ++c) sum += x.x[c] * y.x[c];
  } else {
    for (int64_t c = 0; c < n; ++c) sum += x.x[c * x.stride] * y.x[c * y.stride];
  }
  if (tape == nullptr) return sum;
  tape->argument(x, y, n);
  return tape->result(sum);
}
inline Var dot(Tape* tape, const Array& x, const Vars& y) {
  double sum = 0;
  for (size_t c = 0; c < y.size(); ++c) {
    sum += x.x[c] * y[c].x;
    if (tape == nullptr) continue;
    if (x.d != nullptr) tape->argument({0, x.d + c, tape}, y[c].x);
    tape->argument(y[c], x.x[c]);
  }
  return tape ? tape->result(sum) : Var(sum);
}

}  // namespace bamtrain::autodiff

namespace bamtrain::reference {

using autodiff::Array, autodiff::Tape, autodiff::Var, autodiff::Vars;

inline double* f64(const Tensor& t) { return t.ptr<double>(); }
inline const int32_t* i32(const Tensor& t) { return t.ptr<int32_t>(); }

/// The elements of x from `at` on. Derivatives are added to those of dx from d_at on, if there is a
/// tape and dx is not empty.
inline Array array(Tape* tape, const Tensor& x, int64_t at, const Tensor& dx, int64_t d_at) {
  return {f64(x) + at, tape && dx ? f64(dx) + d_at : nullptr};
}
inline Var element(Tape* tape, const Tensor& x, int64_t at, const Tensor& dx, int64_t d_at) {
  return {f64(x)[at], tape && dx ? f64(dx) + d_at : nullptr, tape};
}
inline void clear(const Tensor& x) {
  for_elements(x, [&x](int64_t at, int64_t) { f64(x)[at] = 0; });
}

/// The parameters of head h of H: (H) or (H, values) each, concatenated.
inline Vars parameters_of_head(const TensorList& theta, int64_t h, int64_t H, Tape* tape = nullptr,
                               const TensorList& dtheta = {}) {
  Vars own;
  for (size_t p = 0; p < theta.size(); ++p) {
    const int64_t values = theta[p].size() / H;
    for (int64_t n = h * values; n < (h + 1) * values; ++n) {
      own.push_back(element(tape, theta[p], n, tape ? dtheta[p] : Tensor(), n));
    }
  }
  return own;
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
