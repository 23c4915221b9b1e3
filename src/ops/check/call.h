#pragma once
// One operation on two backends: mirrors its operands, runs both, and compares the outputs.

#include <deque>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "ops/check/check.h"
#include "ops/ops.h"

namespace bamtrain {

/// A tensor among an operation's arguments; the name of one that is only read is not used.
struct CheckedTensor {
  TensorUse use;
  const char* name;
  Tensor tensor;
};

class CheckedCall {
 public:
  /// `trusted` keeps its arrays in host memory. All arguments outlive the call.
  CheckedCall(Backend& tested, Backend& trusted, const CheckLimits& limits, const char* operation)
      : tested_(tested), trusted_(trusted), limits_(limits), operation_(operation) {}

  /// The mirror of an operand of `tested`, with its shape and strides; real operands get the dtype
  /// of `trusted`. Null for null. Counts may differ by one each, since rounding can move an element
  /// across the bound.
  Tensor mirror(TensorUse use, const char* name, const Tensor& t);
  /// Written: sums over rows whose terms sum to zero (CheckLimits::cancelling). `beside`, if set,
  /// is the mirror of sums of the same terms times numbers of size 1. Errors are then relative to
  /// the size of both together.
  Tensor cancelling(const char* name, const Tensor& t, const Tensor& beside = {}) {
    const Tensor to = mirror(TensorUse::written, name, t);
    if (!t) return to;
    operands_.back().cancels = true;
    operands_.back().beside = beside;
    return to;
  }
  /// Mirrors of all tensors of a struct of ops/attention.h.
  template <class X>
  X mirrors(TensorUse use, const X& x) {
    X copy = x;
    for_tensors(copy, [&](const char* name, Tensor& t) { t = mirror(use, name, t); });
    return copy;
  }

  /// Adds another possible cause of a difference to the error message.
  void doubt(const std::string& other) { doubt_ = ", or " + other; }

  /// Runs operation(backend, tested) on both backends; `tested` says whether the operands are the
  /// caller's or mirrors. Throws Error (internal) if outputs of the tested backend exceed the
  /// limits.
  template <class F>
  void run(F&& operation) {
    operation(trusted_, false);
    operation(tested_, true);
    for (const Operand& o : operands_) {
      if (o.use != TensorUse::read) compare(o);
    }
  }

  /// Runs an operation whose arguments are tensors, structs of tensors that are read, and values.
  template <class... Parameters, class... Arguments>
  void compare(void (Backend::*operation)(Parameters...), const Arguments&... arguments) {
    const std::tuple<std::decay_t<Parameters>...> mirrored = {mirror_of(arguments)...};
    run([&](Backend& b, bool own) {
      if (own) return (b.*operation)(own_of(arguments)...);
      std::apply([&](const auto&... mirror) { (b.*operation)(mirror...); }, mirrored);
    });
  }

 private:
  template <class X>
  static const X& own_of(const X& x) {
    return x;
  }
  static const Tensor& own_of(const CheckedTensor& x) { return x.tensor; }
  template <class X>
  X mirror_of(const X& x) {
    return x;
  }
  Attention mirror_of(const Attention& x) { return mirrors(TensorUse::read, x); }
  AttentionSaved mirror_of(const AttentionSaved& x) { return mirrors(TensorUse::read, x); }
  Tensor mirror_of(const CheckedTensor& x) { return mirror(x.use, x.name, x.tensor); }

  struct Operand {
    std::string name;
    Tensor tested;   // the caller's
    Tensor trusted;  // same shape and strides, in `bytes`
    TensorUse use = TensorUse::read;
    std::vector<char> bytes;
    bool cancels = false;  // see cancelling()
    Tensor beside = {};    // a mirror
  };

  std::vector<char> contents(const Tensor& t) const;
  void compare(const Operand& o) const;
  [[noreturn]] void fail(const std::string& what, double found, double truth) const;

  Backend &tested_, &trusted_;
  const CheckLimits& limits_;
  const char* operation_;
  std::string doubt_;
  std::deque<Operand> operands_;  // a deque: addresses are stable
  bool half_precision_ = false;   // any input is bf16, so all outputs are compared as such
};

}  // namespace bamtrain
