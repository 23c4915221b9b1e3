#pragma once
// Structs of tensors that list them, for what treats all of them alike: to plan, mirror, compare or
// count them.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "core/tensor.h"

namespace bamtrain {

/// f(name, tensor) for every tensor of a struct of tensors, empty or not, in the order of its
/// members. Of an operation: f(name, use, tensor).
template <class X, class F>
void for_tensors(X& x, F&& f) {
  std::remove_const_t<X>::each(x, f);
}

/// A call of attention: T rows of queries, whose keys begin with `past` others.
struct AttentionShape {
  int64_t B = 1, T = 1, H = 1, K = 1, D = 1;
  int64_t past = 0;
  int64_t content_columns = 64;  // of the matrix that a bias multiplies queries with
  bool causal = true;            // no row sees keys behind its own

  /// Of tables by distance i - j: from 0 on, or from -(T - 1).
  int64_t distances() const { return causal ? past + T : 2 * T - 1; }
};

/// What an operation does with a tensor; updated: adds to it.
enum class TensorUse { read, written, updated };

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

/// f(name, use, tensor) for each of a list.
template <class List, class F>
void each_of(List& list, const char* name, TensorUse use, F&& f) {
  for (auto& t : list) f(name, use, t);
}

}  // namespace bamtrain
