#pragma once
// What the tests of operations share: an operation with its adjoint as functions of named values
// that run on any backend, finite differences of it, and comparisons between backends.

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

/// What decides the dtype of a value on a backend: A, P, i32 or f64 of ops/ops.h.
enum class Role { activation, parameter, index, wide };

/// A tensor's elements in fp64, row-major, whatever dtype they were in.
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

/// The heap, whose bounds sanitizers know.
MemorySource& heap_memory();

/// A tensor with memory of its own, from a source as that of a Device.
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

/// Those of `dtypes` in which this machine has matrix products: oneDNN multiplies bf16 on AVX-512
/// only. What is left out is reported once.
std::vector<Dtype> with_products(std::vector<Dtype> dtypes);

/// Element by element between fp64 and a tensor of any dtype and strides.
void fill(const Tensor& t, const Values& v);
Values read(const Tensor& t, Role role);

/// A backend, and its memory: the host's, or that of host_view.h.
struct Device {
  std::unique_ptr<Backend> backend;
  MemorySource* source = nullptr;
};

constexpr CpuIsa kCpuIsas[] = {CpuIsa::avx2, CpuIsa::avx512, CpuIsa::avx512_amx};

/// A backend with its scratch. `activations` f64 selects the reference backend, f32 and bf16 the
/// CPU backend.
class Machine {
 public:
  static constexpr WorkspaceShape kShape = {.B = 4,
                                            .T = 1100,
                                            .H = 6,
                                            .K = 6,
                                            .D = 128,
                                            .C = 1024,
                                            .incremental = true,
                                            .hidden = 1024,
                                            .V = 1024,
                                            .fire = true,
                                            .content_bias = true,
                                            .content_columns = 64,
                                            .mix_hidden = 64,
                                            .attention_statistics = true};
  explicit Machine(Dtype activations, CpuIsa isa = kNewestIsa,
                   const WorkspaceShape& shape = kShape);
  Machine(Dtype activations, Device device, const WorkspaceShape& shape = kShape);

  Backend& backend() { return *device_.backend; }
  Dtype dtype_of(Role role) const;
  bool reference() const { return activations_ == Dtype::f64; }

  Memory memory(const Values& v) const;
  Memory zeros(Role role, const std::vector<int64_t>& shape) const;
  /// For what an operation overwrites: NaN, so that an element it forgets is seen.
  Memory unwritten(Role role, const std::vector<int64_t>& shape) const;

  /// What the operation of that name finds.
  double squared_norm(const Tensor& x);

 private:
  Dtype activations_;
  Device device_;
  Arena arena_;
};

/// An operation of Backend at given inputs.
struct Operation {
  Arrays inputs;
  std::function<Arrays(Machine&, const Arrays& inputs)> forward;
  /// Gradients under the names of the inputs, at `cotangents` of the results in `differentiated`.
  /// `saved` are all results of a forward pass. What the contract adds to something finds
  /// `existing` there and is named in `accumulated`; everything else finds NaN. Null: it has none.
  std::function<Arrays(Machine&, const Arrays& inputs, const Arrays& saved,
                       const Arrays& cotangents, double existing)>
      adjoint;
  std::vector<std::string> differentiated = {};
  std::vector<std::string> accumulated = {};
  /// Where the operation leaves no choice (cross entropy); otherwise random.
  Arrays cotangents = {};
  /// The size of the terms of a result or gradient whose sum is far smaller than they are: errors
  /// are then relative to this size.
  std::map<std::string, double> cancelling = {};
  /// The tolerance of results or gradients that have one of their own, whatever the others'.
  std::map<std::string, double> tolerances = {};
};

/// Central differences of f = sum of cotangents times results in fp64 against the adjoint, at up to
/// `entries` elements of each input: the largest error over the largest gradient of that input.
///
/// With h = 1e-5 the truncation is h^2 f''' / 6 = 2e-11 f''', the rounding u |f| / h = 1e-11 |f|;
/// third derivatives and sums of the cases stay below 1e3 of the gradient, so that a correct
/// adjoint is within kDifferenceTolerance and one that is off by 1 % is far outside.
double difference_error(const Operation& op, int64_t entries = 40);
constexpr double kDifferenceTolerance = 1e-7;

/// Checks every result and gradient of the CPU backend, for every instruction set that this machine
/// has, against the reference in `activations`.
/// Inputs are rounded to their dtype first, so that only arithmetic differs.
///
/// Both the norm of the error over the norm of the truth and the largest error over the largest
/// element must be within `f32_tolerance`, which the caller derives from the operation. In bf16 an
/// activation is rounded once when it is stored: kBf16 more.
void compare_with_reference(const Operation& op, Dtype activations, double f32_tolerance);
/// The same for other machines, all of these activations.
void compare_with_reference(const Operation& op, Dtype activations, double f32_tolerance,
                            const std::vector<Machine*>& machines);
/// The comparison of one array; `least` is the least size that errors are relative to.
void check_close(const std::string& name, const Values& found, const Values& truth,
                 double tolerance, double least = 0);

/// Checks that all elements are the same numbers, naming the first that are not.
void check_equal(const std::vector<double>& found, const std::vector<double>& truth);

/// Whether all results and gradients of the CPU backend have the same bits for 1, 2, 3 and 4
/// threads, each with a backend of its own.
bool same_for_any_threads(const Operation& op, Dtype activations,
                          const WorkspaceShape& shape = Machine::kShape);

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
