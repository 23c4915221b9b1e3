#pragma once
// Shared code of the tests of operations: an operation with its adjoint as functions of named
// values on any backend, its finite differences, and comparisons between backends.

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/arena.h"
#include "core/tensor.h"
#include "ops/cpu/cpu.h"
#include "ops/ops.h"

namespace bamtrain::testing {

// Unit roundoffs: |fl(x) - x| <= u |x|.
constexpr double kF32 = 0x1p-24;
constexpr double kBf16 = 0x1p-8;

/// Determines the dtype of a value on a backend: A, P, i32 or f64 of ops/ops.h.
enum class Role { activation, parameter, index, wide };

/// A tensor's elements in fp64, row-major, whatever their original dtype.
struct Values {
  Role role = Role::activation;
  std::vector<int64_t> shape;
  std::vector<double> x;
};
using Arrays = std::map<std::string, Values>;

/// Independent normal numbers of this standard deviation, the same on every call.
Values random_values(Role role, std::vector<int64_t> shape, const std::string& stream,
                     double deviation = 1);
Values constant_values(Role role, std::vector<int64_t> shape, double value);
/// `x` rounded to what `dtype` can represent.
double rounded(double x, Dtype dtype);

/// The heap, so that sanitizers know the bounds.
MemorySource& heap_memory();

/// A tensor with its own memory, from a source such as a Device's.
class Memory {
 public:
  Memory(Dtype dtype, const std::vector<int64_t>& shape, double fill,
         MemorySource& source = heap_memory());
  Memory(Memory&& other) noexcept;
  ~Memory();
  Tensor tensor() const { return tensor_; }

 private:
  MemorySource* source_;
  Tensor tensor_;
};

/// Those of `dtypes` for which this machine has matrix products: oneDNN multiplies bf16 only on
/// AVX-512. Reports once what is left out.
std::vector<Dtype> with_products(std::vector<Dtype> dtypes);

/// Copy elements between fp64 and a tensor of any dtype and strides.
void fill(const Tensor& t, const Values& v);
Values read(const Tensor& t, Role role);

/// A backend and its memory, which is the host's or that of host_view.h.
struct Device {
  std::unique_ptr<Backend> backend;
  MemorySource* source = nullptr;
};

constexpr CpuIsa kCpuIsas[] = {CpuIsa::avx2, CpuIsa::avx512, CpuIsa::avx512_amx};

/// A backend with its scratch memory, on a device NaN at first. `activations` f64 selects the
/// reference backend, f32 and bf16 the CPU backend.
class Machine {
 public:
  static inline const WorkspaceShape kShape = {
      .B = 4,
      .T = 1100,
      .H = 6,
      .K = 6,
      .D = 128,
      .C = 1024,
      .incremental = true,
      .hidden = 1024,
      .V = 1024,
      .attention = {{.bias = BiasForm::fire},
                    {.bias = BiasForm::relative},
                    {.bias = BiasForm::contextual},
                    {.mix = MixForm::concat, .mix_hidden = 64}},
      .attention_statistics = true};
  explicit Machine(Dtype activations, CpuIsa isa = kNewestIsa,
                   const WorkspaceShape& shape = kShape);
  Machine(Dtype activations, Device device, const WorkspaceShape& shape = kShape);

  Backend& backend() { return *device_.backend; }
  Dtype dtype_of(Role role) const;
  bool reference() const { return activations_ == Dtype::f64; }

  Memory memory(const Values& v) const;
  Memory zeros(Role role, const std::vector<int64_t>& shape) const;
  /// Memory that an operation overwrites. Filled with NaN, to detect elements that it forgets.
  Memory unwritten(Role role, const std::vector<int64_t>& shape) const;

  /// By the operations `squares` and `sum`.
  double squared_norm(const Tensor& x);

 private:
  Dtype activations_;
  Device device_;
  Arena arena_;
};

/// An operation of Backend with given inputs.
struct Operation {
  Arrays inputs;
  std::function<Arrays(Machine&, const Arrays& inputs)> forward;
  /// The inputs' gradients, by input name, for `cotangents` of the results in `differentiated`.
  /// `saved`: all results of a forward pass. Gradients that the contract accumulates are listed in
  /// `accumulated` and start at `existing`; all others start as NaN. Null: no adjoint.
  std::function<Arrays(Machine&, const Arrays& inputs, const Arrays& saved,
                       const Arrays& cotangents, double existing)>
      adjoint;
  std::vector<std::string> differentiated = {};
  std::vector<std::string> accumulated = {};
  /// Inputs whose gradient is 0, or which have none.
  std::vector<std::string> constant = {};
  /// Set if the operation fixes them (cross entropy); otherwise random.
  Arrays cotangents = {};
  /// For results or gradients that are sums of much larger terms: the size of these terms. Errors
  /// are then relative to this size.
  std::map<std::string, double> cancelling = {};
  /// Tolerances of individual results or gradients, which replace the common one.
  std::map<std::string, double> tolerances = {};
  /// What it needs of a machine.
  WorkspaceShape workspace = Machine::kShape;
};

/// Those that the operation fixes, and normal numbers for its other results.
Arrays cotangents_of(const Operation& op, const Arrays& results);

/// Results, and gradients from these results; none without an adjoint.
struct Pass {
  Arrays results, gradients;
};
/// Runs both passes on one machine, with cotangents_of the operation.
Pass run(const Operation& op, Machine& m, double existing = 0);
/// On a new CPU or reference machine.
Pass run(const Operation& op, Dtype activations);

/// The values as a machine stores them.
Arrays round_to(Arrays arrays, const Machine& machine);

constexpr double kDifferenceTolerance = 1e-7;

/// Compares central differences of f = sum of cotangents times results in fp64 with the adjoint, at
/// up to `entries` elements of each input. Errors are relative to the largest gradient of that
/// input. Checks that they are within `tolerance`, and would not be if gradients were off by 1 %.
///
/// With h = 1e-5, the truncation error is h^2 f''' / 6 = 2e-11 f''' and the rounding error is u |f|
/// / h = 1e-11 |f|. Third derivatives and sums of the cases stay below 1e3 of the gradient.
void check_differences(const Operation& op, int64_t entries = 40,
                       double tolerance = kDifferenceTolerance);

/// Compares every result and gradient of the CPU backend in `activations` with the reference, for
/// every instruction set that this machine has. Inputs are first rounded to their dtype, so that
/// only arithmetic differs.
///
/// Two errors must be within `f32_tolerance`, which the caller derives from the operation: the norm
/// of the error over the norm of the truth, and the largest error over the largest element. In
/// bf16, storing an activation rounds it once: kBf16 more.
void compare_with_reference(const Operation& op, Dtype activations, double f32_tolerance);
/// In fp32 and bf16.
void compare_with_reference(const Operation& op, double f32_tolerance);
/// The same for other machines, all with these activations.
void compare_with_reference(const Operation& op, Dtype activations, double f32_tolerance,
                            const std::vector<Machine*>& machines);
/// Compares one array; errors are relative to the larger of its size and `least`.
void check_close(const std::string& name, const Values& found, const Values& truth,
                 double tolerance, double least = 0);

/// Checks that all elements are equal, and reports the first difference.
void check_equal(const std::vector<double>& found, const std::vector<double>& truth);

/// Checks that all results and gradients are bitwise identical.
void check_same(const Pass& found, const Pass& truth);

/// Checks that all results and gradients of the CPU backend are bitwise identical with 1, 2, 3 and
/// 4 threads, each with a separate backend.
void check_same_for_any_threads(const Operation& op, Dtype activations);

/// Sets the number of threads until destruction.
class Threads {
 public:
  explicit Threads(int n);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace bamtrain::testing
