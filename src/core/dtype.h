#pragma once
// Element types. bf16 is the project's own 2-byte struct, so host builds need no CUDA toolkit.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/error.h"

namespace bamtrain {

/// f16 and u8 occur only in files from other programs; no tensor of this project has them.
enum class Dtype : uint8_t { f64, f32, bf16, i32, f16, u8 };

constexpr size_t size_of(Dtype t) {
  switch (t) {
    case Dtype::f64:
      return 8;
    case Dtype::f32:
      return 4;
    case Dtype::bf16:
      return 2;
    case Dtype::i32:
      return 4;
    case Dtype::f16:
      return 2;
    case Dtype::u8:
      return 1;
  }
  return 0;
}

constexpr const char* name_of(Dtype t) {
  switch (t) {
    case Dtype::f64:
      return "f64";
    case Dtype::f32:
      return "f32";
    case Dtype::bf16:
      return "bf16";
    case Dtype::i32:
      return "i32";
    case Dtype::f16:
      return "f16";
    case Dtype::u8:
      return "u8";
  }
  return "?";
}

/// Brain floating point: the upper half of an IEEE fp32. Conversion rounds to nearest even and
/// keeps NaN a NaN.
struct bf16 {
  uint16_t bits = 0;

  bf16() = default;
  explicit bf16(float f) {
    const uint32_t u = std::bit_cast<uint32_t>(f);
    const uint32_t rounded = u + 0x7FFFu + ((u >> 16) & 1u);
    const bool nan = (u & 0x7FFFFFFFu) > 0x7F800000u;
    bits = static_cast<uint16_t>(nan ? (u >> 16) | 0x40u : rounded >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};
static_assert(sizeof(bf16) == 2);

/// IEEE half precision, as stored in files. Every value, also a subnormal one, is exact in fp32.
struct f16 {
  uint16_t bits = 0;

  explicit operator float() const {
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16, rest = bits & 0x7FFFu;
    if (rest >= 0x7C00u) return std::bit_cast<float>(sign | 0x7F800000u | (rest & 0x3FFu) << 13);
    // Subnormal: a multiple of 2^-24; else fp32's exponent is larger by 127 - 15.
    const float magnitude = rest < 0x400u ? static_cast<float>(rest) * 0x1p-24F
                                          : std::bit_cast<float>((rest << 13) + (112u << 23));
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
};
static_assert(sizeof(f16) == 2);

template <class T>
struct DtypeOf;
template <>
struct DtypeOf<double> {
  static constexpr Dtype value = Dtype::f64;
};
template <>
struct DtypeOf<float> {
  static constexpr Dtype value = Dtype::f32;
};
template <>
struct DtypeOf<bf16> {
  static constexpr Dtype value = Dtype::bf16;
};
template <>
struct DtypeOf<int32_t> {
  static constexpr Dtype value = Dtype::i32;
};
template <>
struct DtypeOf<f16> {
  static constexpr Dtype value = Dtype::f16;
};
template <>
struct DtypeOf<uint8_t> {
  static constexpr Dtype value = Dtype::u8;
};

}  // namespace bamtrain
