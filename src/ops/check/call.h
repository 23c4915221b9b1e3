#pragma once
// One operation on two backends: its operands are mirrored first, then both run, then what they
// wrote is compared.

#include <deque>
#include <string>
#include <vector>

#include "ops/check/check.h"
#include "ops/ops.h"

namespace bamtrain {

class CheckedCall {
 public:
  /// `trusted` keeps its arrays in host memory. All outlive the call.
  CheckedCall(Backend& tested, Backend& trusted, const CheckLimits& limits, const char* operation)
      : tested_(tested), trusted_(trusted), limits_(limits), operation_(operation) {}

  /// The mirror of an operand of `tested`, of its shape and strides, in the dtype of `trusted`
  /// where it is real. Null for null.
  Tensor read(const Tensor& t) { return add("", t, Use::read); }
  Tensor written(const char* name, const Tensor& t) { return add(name, t, Use::written); }
  /// Counts of what lies on one side of a bound: an element may have one more or less, which the
  /// last digit of a number decided.
  Tensor counted(const char* name, const Tensor& t) { return add(name, t, Use::counted); }
  /// Written or left as it was, and not read.
  Tensor replaced(const char* name, const Tensor& t) { return add(name, t, Use::replaced); }
  Tensor updated(const char* name, const Tensor& t) { return add(name, t, Use::updated); }
  /// Written, of sums over rows whose terms sum to zero (CheckLimits::cancelling). Errors are
  /// relative to the size of `beside` where that is given and larger: the mirror of sums of the
  /// same terms times numbers of size 1.
  Tensor cancelling(const char* name, const Tensor& t, const Tensor& beside = {}) {
    const Tensor mirror = add(name, t, Use::written);
    if (!t) return mirror;
    operands_.back().cancels = true;
    operands_.back().beside = beside;
    return mirror;
  }

  /// That of an operand that is used so.
  Tensor mirror(const char* name, TensorUse use, const Tensor& t);
  /// Of all tensors of a struct of ops/attention.h.
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

  /// What else a difference may come from, for the error.
  void doubt(const std::string& other) { doubt_ = ", or " + other; }

  /// operation(backend, whether it is the tested one, whose operands are the caller's), on both.
  /// Throws Error (internal): what the tested one wrote lies past the limits.
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
  std::deque<Operand> operands_;  // addresses stay
  bool half_precision_ = false;   // of what goes in, and so of all that comes out
};

}  // namespace bamtrain
