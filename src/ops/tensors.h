#pragma once
// Structs of tensors that enumerate their members, for generic code that plans, mirrors, compares
// or counts them.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>

#include "core/tensor.h"

namespace bamtrain {

/// The shape of an attention call: T queries, and past + T keys.
struct AttentionShape {
  int64_t B = 1, T = 1, H = 1, K = 1, D = 1;
  int64_t past = 0;
  int64_t content_columns = 64;  // columns of the matrix that a bias multiplies queries with
  bool causal = true;            // no row sees keys after its own

  /// Distances i - j of a table: from 0, or from -(T - 1) if not causal.
  int64_t distances() const { return causal ? past + T : 2 * T - 1; }
};

/// A struct of tensors that plans them: plan(shape, P, add) calls add(name, &tensor, dtype, dims)
/// for all its members in order, whatever the shape, and does no more.
template <class X>
concept PlansTensors = requires(X x) {
  x.plan(AttentionShape(), Dtype::f32,
         [](const char*, Tensor*, Dtype, std::initializer_list<int64_t>) {});
};

/// Calls f(name, tensor) for every tensor of a struct of tensors, empty or not, in member order.
/// For an operation: f(name, use, tensor).
template <class X, class F>
void for_tensors(X& x, F&& f) {
  using Struct = std::remove_const_t<X>;
  if constexpr (PlansTensors<Struct>) {
    using Member = std::conditional_t<std::is_const_v<X>, const Tensor, Tensor>;
    const auto add = [&f](const char* name, Member* t, Dtype, std::initializer_list<int64_t>) {
      f(name, *t);
    };
    const_cast<Struct&>(x).plan(AttentionShape(), Dtype::f32, add);  // only `add` could change x
  } else {
    Struct::each(x, f);
  }
}

/// How an operation uses a tensor. updated: the operation adds to it. replaced: written or left
/// unchanged, and not read. counted: written; numbers of elements on one side of a bound.
enum class TensorUse { read, written, updated, replaced, counted };

/// A mechanism's parameters, or their gradients.
class TensorList {
 public:
  static constexpr size_t kMost = 8;

  TensorList() = default;
  template <class List>
  requires std::convertible_to<const List&, std::span<const Tensor>> TensorList(const List& list)
      : size_(list.size()) {
    require(size_ <= kMost, "a mechanism of at most 8 parameters");
    std::copy(list.begin(), list.end(), of_);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Tensor* begin() { return of_; }
  Tensor* end() { return of_ + size_; }
  const Tensor* begin() const { return of_; }
  const Tensor* end() const { return of_ + size_; }
  const Tensor& operator[](size_t n) const { return of_[n]; }

 private:
  Tensor of_[kMost];
  size_t size_ = 0;
};

/// Calls f(name, use, tensor) for each tensor of a list.
template <class List, class F>
void each_of(List& list, const char* name, TensorUse use, F&& f) {
  for (auto& t : list) f(name, use, t);
}

}  // namespace bamtrain
