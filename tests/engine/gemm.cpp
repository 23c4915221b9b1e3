// The CUDA backend's matrix products, for the engine: plain loops with fp32 accumulation. TF32
// rounds the operands.

#include "ops/cuda/gemm.h"

#include <bit>
#include <vector>

#include "engine/calls.h"

namespace bamtrain::cuda {

namespace {

float read(const Matrix& m, int64_t row, int64_t column) {
  const int64_t at = m.transposed ? column * m.ld + row : row * m.ld + column;
  if (m.dtype == Dtype::f32) return static_cast<const float*>(m.data)[at];
  return static_cast<float>(static_cast<const bf16*>(m.data)[at]);
}

/// Rounds to 10 bits of mantissa: to nearest, ties away from zero, like cvt.rna.tf32.f32.
float rounded_to_tf32(float x) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000) & ~uint32_t{0x1fff});
}

/// A row-major copy, for contiguous loops.
std::vector<float> dense(const Matrix& m, bool tf32) {
  std::vector<float> out;
  out.reserve(static_cast<size_t>(m.rows * m.columns));
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < m.columns; ++j) {
      const float x = read(m, i, j);
      out.push_back(tf32 && m.dtype == Dtype::f32 ? rounded_to_tf32(x) : x);
    }
  }
  return out;
}

void run(const Matrix& c, const Matrix& a, const Matrix& b, bool accumulate, bool tf32) {
  const std::vector<float> left = dense(a, tf32), right = dense(b, tf32);
  std::vector<float> row(static_cast<size_t>(c.columns));
  for (int64_t i = 0; i < c.rows; ++i) {
    row.assign(row.size(), 0.0f);
    for (int64_t k = 0; k < a.columns; ++k) {
      const float factor = left[static_cast<size_t>(i * a.columns + k)];
      const float* from = right.data() + k * c.columns;
      for (size_t j = 0; j < row.size(); ++j) row[j] += factor * from[j];
    }
    for (int64_t j = 0; j < c.columns; ++j) {
      const float sum = row[static_cast<size_t>(j)];
      if (c.dtype == Dtype::f32) {
        float& to = static_cast<float*>(c.data)[i * c.ld + j];
        to = accumulate ? to + sum : sum;
      } else {
        bf16& to = static_cast<bf16*>(c.data)[i * c.ld + j];
        to = bf16(accumulate ? static_cast<float>(to) + sum : sum);
      }
    }
  }
}

}  // namespace

struct Gemm::State {
  bool tf32;
};

Gemm::Gemm(bool tf32) : state_(std::make_unique<State>(tf32)) {}
Gemm::Gemm(NoDevice) {}
Gemm::~Gemm() = default;

void Gemm::multiply(const Matrix& c, const Matrix& a, const Matrix& b, bool accumulate,
                    device::Stream) {
  require(a.dtype == b.dtype && (c.dtype == Dtype::f32 || c.dtype == a.dtype) && !c.transposed &&
              a.columns == b.rows && c.rows == a.rows && c.columns == b.columns,
          "operands of one type and matching shapes");
  const auto work = [=, tf32 = state_->tf32] { run(c, a, b, accumulate, tf32); };
  if (engine::recording()) {
    engine::record(work);
  } else {
    work();
  }
}

}  // namespace bamtrain::cuda
