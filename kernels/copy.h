#pragma once
// A copy between arrays whose rows lie apart. See copy in ops/ops.h.

#include <cstdint>

#include "launch.h"

namespace bamtrain::kernels {

/// An array of up to four dimensions, the first ones 1 where it has fewer: sizes and strides in
/// elements, those of the last dimension contiguous.
struct Strided {
  void* data = nullptr;
  int64_t shape[4] = {1, 1, 1, 1};
  int64_t stride[3] = {};
  int element = 0;  // its bytes
};

/// dst = src, of one shape and element; nothing where there is none. One kernel, by the widest
/// accesses that all rows take. Refuses different shapes or elements, elements of other than 2, 4
/// or 8 bytes, sizes below 0, null pointers and more than 2^31 - 1 blocks of accesses.
device::LaunchStatus copy_rows(const Strided& dst, const Strided& src, device::Stream stream);

/// dst (rows, columns) = src + by, rows so many elements apart. One kernel. Refuses sizes that are
/// not positive, over 2^31 - 1 elements, rows shorter than their elements and null pointers.
device::LaunchStatus copy_shifted(int32_t* dst, int64_t dst_row, const int32_t* src,
                                  int64_t src_row, int64_t rows, int64_t columns, int32_t by,
                                  device::Stream stream);

}  // namespace bamtrain::kernels
