// A thread moves one word of a row, the widest that divides every row of both arrays.

#include "arguments.h"
#include "copy.h"
#include "device.cuh"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

constexpr int kCopyThreads = 256;

template <int kBytes>
struct alignas(kBytes) CopiedWord {
  uint16_t parts[kBytes / 2];
};

/// In words.
struct CopyShape {
  int64_t size[3];  // of all dimensions but the first
  int64_t dst[3], src[3];
};

template <class Word>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kCopyThreads)
    copy_words(Word* dst, const Word* src, int64_t words, const CopyShape s) {
  const int64_t n = static_cast<int64_t>(device::block_index().x) * kCopyThreads +
                    static_cast<int64_t>(device::thread_index().x);
  if (n >= words) return;
  const int64_t column = n % s.size[2];
  int64_t rest = n / s.size[2];
  const int64_t third = rest % s.size[1];
  rest /= s.size[1];
  const int64_t second = rest % s.size[0], first = rest / s.size[0];
  dst[first * s.dst[0] + second * s.dst[1] + third * s.dst[2] + column] =
      src[first * s.src[0] + second * s.src[1] + third * s.src[2] + column];
}

BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kCopyThreads)
    shift_elements(int32_t* dst, int64_t dst_row, const int32_t* src, int64_t src_row,
                   int64_t elements, int64_t columns, int32_t by) {
  const int64_t n = static_cast<int64_t>(device::block_index().x) * kCopyThreads +
                    static_cast<int64_t>(device::thread_index().x);
  if (n >= elements) return;
  dst[n / columns * dst_row + n % columns] = src[n / columns * src_row + n % columns] + by;
}

/// Whether the array can be accessed in words of `bytes` bytes.
bool takes_words(const Strided& x, int64_t bytes) {
  bool fits = reinterpret_cast<uintptr_t>(x.data) % static_cast<uintptr_t>(bytes) == 0 &&
              x.shape[3] * x.element % bytes == 0;
  for (int d = 0; d < 3; ++d) {
    fits = fits && (x.shape[d] == 1 || x.stride[d] * x.element % bytes == 0);
  }
  return fits;
}

template <int kBytes>
LaunchStatus copy_by(const Strided& dst, const Strided& src, Stream stream) {
  const auto in_words = [](int64_t elements, int element) { return elements * element / kBytes; };
  CopyShape s = {{dst.shape[1], dst.shape[2], in_words(dst.shape[3], dst.element)}, {}, {}};
  for (int d = 0; d < 3; ++d) {
    s.dst[d] = in_words(dst.stride[d], dst.element);
    s.src[d] = in_words(src.stride[d], src.element);
  }
  const int64_t words = dst.shape[0] * s.size[0] * s.size[1] * s.size[2];
  const int64_t blocks = blocks_of(words, kCopyThreads);
  if (blocks > kMaxBlocks) return device::refused("copy: more words than a grid has threads");
  using Word = CopiedWord<kBytes>;
  return device::launch(copy_words<Word>, grid_of(blocks), {kCopyThreads, 1, 1}, 0, stream,
                        static_cast<Word*>(dst.data), static_cast<const Word*>(src.data), words, s);
}

}  // namespace

LaunchStatus copy_rows(const Strided& dst, const Strided& src, Stream stream) {
  int64_t elements = 1;
  for (int d = 0; d < 4; ++d) {
    if (dst.shape[d] != src.shape[d] || dst.shape[d] < 0) {
      return device::refused("copy: one shape, no size below 0");
    }
    elements *= dst.shape[d];
  }
  if (dst.element != src.element || (dst.element != 2 && dst.element != 4 && dst.element != 8)) {
    return device::refused("copy: elements of 2, 4 or 8 bytes, the same in both");
  }
  if (elements == 0) return {};
  if (dst.data == nullptr || src.data == nullptr) return device::refused("copy: dst and src");
  const auto fits = [&](int64_t bytes) {
    return takes_words(dst, bytes) && takes_words(src, bytes);
  };
  if (fits(16)) return copy_by<16>(dst, src, stream);
  if (fits(8)) return copy_by<8>(dst, src, stream);
  if (fits(4)) return copy_by<4>(dst, src, stream);
  return copy_by<2>(dst, src, stream);
}

LaunchStatus copy_shifted(int32_t* dst, int64_t dst_row, const int32_t* src, int64_t src_row,
                          int64_t rows, int64_t columns, int32_t by, Stream stream) {
  if (rows < 1 || columns < 1 || rows > INT32_MAX / columns) {
    return device::refused("copy: 1 to 2^31 - 1 elements");
  }
  if (dst_row < columns || src_row < columns) return device::refused("copy: rows that overlap");
  if (dst == nullptr || src == nullptr) return device::refused("copy: dst and src");
  return device::launch(shift_elements, grid_of(blocks_of(rows * columns, kCopyThreads)),
                        {kCopyThreads, 1, 1}, 0, stream, dst, dst_row, src, src_row, rows * columns,
                        columns, by);
}

}  // namespace bamtrain::kernels
