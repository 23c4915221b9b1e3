#pragma once
// Copies between strided arrays. See copy in ops/ops.h.

#include <cstdint>

#include "launch.h"

namespace bamtrain::kernels {

/// An array of up to four dimensions; missing leading dimensions are 1. Sizes and strides in
/// elements; the last dimension is contiguous.
struct Strided {
  void* data = nullptr;
  int64_t shape[4] = {1, 1, 1, 1};
  int64_t stride[3] = {};
  int element = 0;  // size in bytes
};

/// dst = src; same shape and element size. Does nothing if they are empty. One kernel, with the
/// widest accesses that all rows allow. Refuses different shapes or elements, elements of other
/// than 2, 4 or 8 bytes, sizes below 0, null pointers and more than 2^31 - 1 blocks of accesses.
device::LaunchStatus copy_rows(const Strided& dst, const Strided& src, device::Stream stream);

/// dst (rows, columns) = src + by; dst_row and src_row are row strides in elements. One kernel.
/// Refuses sizes that are not positive, over 2^31 - 1 elements, row strides below `columns` and
/// null pointers.
device::LaunchStatus copy_shifted(int32_t* dst, int64_t dst_row, const int32_t* src,
                                  int64_t src_row, int64_t rows, int64_t columns, int32_t by,
                                  device::Stream stream);

}  // namespace bamtrain::kernels
