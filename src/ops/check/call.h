#pragma once
// One operation on two backends: mirrors its operands, runs both, and compares the outputs.

#include <deque>
#include <string>
#include <vector>

#include "ops/check/check.h"
#include "ops/ops.h"

namespace bamtrain {

class CheckedCall {
 public:
  /// `trusted` keeps its arrays in host memory. All arguments outlive the call.
  CheckedCall(Backend& tested, Backend& trusted, const CheckLimits& limits, const char* operation)
      : tested_(tested), trusted_(trusted), limits_(limits), operation_(operation) {}

  /// The mirror of an operand of `tested`, with its shape and strides; real operands get the dtype
  /// of `trusted`. Null for null.
  Tensor read(const Tensor& t) { return add("", t, Use::read); }
  Tensor written(const char* name, const Tensor& t) { return add(name, t, Use::written); }
  /// Written: counts of elements on one side of a bound. Each may differ by one, since rounding can
  /// move an element across the bound.
  Tensor counted(const char* name, const Tensor& t) { return add(name, t, Use::counted); }
  /// Written or left unchanged, and not read.
  Tensor replaced(const char* name, const Tensor& t) { return add(name, t, Use::replaced); }
  Tensor updated(const char* name, const Tensor& t) { return add(name, t, Use::updated); }
  /// Written: sums over rows whose terms sum to zero (CheckLimits::cancelling). `beside`, if set,
  /// is the mirror of sums of the same terms times numbers of size 1. Errors are then relative to
  /// the size of both together.
  Tensor cancelling(const char* name, const Tensor& t, const Tensor& beside = {}) {
    const Tensor mirror = add(name, t, Use::written);
    if (!t) return mirror;
    operands_.back().cancels = true;
    operands_.back().beside = beside;
    return mirror;
  }

  /// The mirror of an operand with this use.
  Tensor mirror(const char* name, TensorUse use, const Tensor& t);
  /// Mirrors of all tensors of a struct of ops/attention.h.
  template <class X>
  X read_parts(const X& x) {
    X copy = x;
    for_tensors(copy, [this](const char*, Tensor& t) { t = read(t); });
    return copy;
  }
  template <class X>
  X written_parts(const X& x) {
    X copy = x;
    for_tensors(copy, [this](const char* name, Tensor& t) { t = written(name, t); });
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
      if (o.use != Use::read) compare(o);
    }
  }

 private:
  enum class Use { read, written, counted, replaced, updated };

  struct Operand {
    std::string name;
    Tensor tested;   // the caller's
    Tensor trusted;  // same shape and strides, in `bytes`
    Use use = Use::read;
    std::vector<char> bytes;
    bool cancels = false;  // see cancelling()
    Tensor beside = {};    // a mirror
  };

  Tensor add(const char* name, const Tensor& t, Use use);
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
