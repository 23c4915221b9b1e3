#pragma once
// The tensor type: a non-owning view of memory that an Arena (or a test) owns.
//
// Shape letters used everywhere: B batch, T time, C width, H heads, K key/value heads,
// D head dimension, F mlp hidden width, V vocabulary, L layers, N = B*T rows.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/dtype.h"
#include "core/error.h"

namespace bamtrain {

/// A strided view of up to four dimensions. Strides count elements. An empty Tensor (rank 0, null)
/// means "absent" (no bias, no table).
struct Tensor {
  static constexpr int kMaxRank = 4;

  void* data = nullptr;
  Dtype dtype = Dtype::f32;
  int rank = 0;
  std::array<int64_t, kMaxRank> shape{};
  std::array<int64_t, kMaxRank> stride{};

  Tensor() = default;
  /// A contiguous row-major view. REQUIRES: 1 to kMaxRank dimensions, all >= 0.
  Tensor(void* memory, Dtype type, std::initializer_list<int64_t> dims)
      : data(memory), dtype(type), rank(static_cast<int>(dims.size())) {
    require(rank >= 1 && rank <= kMaxRank, "a tensor of 1 to 4 dimensions");
    int i = 0;
    for (int64_t d : dims) shape[i++] = d;
    int64_t s = 1;
    for (i = rank - 1; i >= 0; --i) {
      stride[i] = s;
      s *= shape[i];
    }
  }

  explicit operator bool() const { return data != nullptr; }

  int64_t size() const {
    int64_t n = rank == 0 ? 0 : 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
  int64_t bytes() const { return size() * static_cast<int64_t>(size_of(dtype)); }

  bool contiguous() const {
    int64_t s = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (shape[i] != 1 && stride[i] != s) return false;
      s *= shape[i];
    }
    return true;
  }

  /// The first element as a T*. REQUIRES: T is this tensor's dtype.
  template <class T>
  T* ptr() const {
    require(dtype == DtypeOf<T>::value, "the tensor's own element type");
    return static_cast<T*>(data);
  }

  /// The same memory with other dimensions. REQUIRES: contiguous, same number of elements.
  Tensor reshaped(std::initializer_list<int64_t> dims) const {
    Tensor t(data, dtype, dims);
    require(contiguous() && t.size() == size(), "a contiguous tensor of the same size to reshape");
    return t;
  }

  /// Elements [begin, begin + count) of dimension `dim`.
  Tensor slice(int dim, int64_t begin, int64_t count) const {
    require(dim >= 0 && dim < rank && begin >= 0 && count >= 0 && begin + count <= shape[dim],
            "a slice inside the tensor");
    Tensor t = *this;
    t.shape[dim] = count;
    t.data = static_cast<char*>(data) + begin * stride[dim] * static_cast<int64_t>(size_of(dtype));
    return t;
  }

  /// "(2, 16, 64) bf16", for messages.
  std::string describe() const {
    std::string s = "(";
    for (int i = 0; i < rank; ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
    return s + ") " + name_of(dtype);
  }
};

}  // namespace bamtrain
