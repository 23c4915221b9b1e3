#include "ops/check/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/element.h"

namespace bamtrain {

namespace {

/// Elements spanned by a tensor in memory, gaps included.
int64_t extent(const Tensor& t) {
  int64_t last = 0;
  for (int d = 0; d < t.rank; ++d) last += (t.shape[d] - 1) * t.stride[d];
  return t.size() == 0 ? 0 : last + 1;
}

Tensor flat(const Tensor& t) { return Tensor(t.data, t.dtype, {extent(t)}); }

}  // namespace

Tensor CheckedCall::mirror(TensorUse use, const char* name, const Tensor& t) {
  if (!t) return t;
  const Dtype P = trusted_.parameter_dtype();
  Operand& o = operands_.emplace_back();
  o.name = name;
  o.tested = t;
  o.use = use;
  o.trusted = t;
  if (t.dtype == Dtype::f32 || t.dtype == Dtype::bf16) o.trusted.dtype = P;
  o.bytes.resize(static_cast<size_t>(extent(t)) * size_of(o.trusted.dtype));
  o.trusted.data = o.bytes.data();
  half_precision_ |=
      t.dtype == Dtype::bf16 && (use == TensorUse::read || use == TensorUse::updated);
  if (use == TensorUse::written || use == TensorUse::counted) {
    const double unwritten = t.dtype == Dtype::i32 ? -1 : std::nan("");
    for_elements(t, [&](int64_t at, int64_t) { put(o.trusted, at, unwritten); });
  } else {
    const std::vector<char> bytes = contents(t);
    Tensor host = t;
    host.data = const_cast<char*>(bytes.data());
    for_elements(t, [&](int64_t at, int64_t) { put(o.trusted, at, get(host, at)); });
  }
  return o.trusted;
}

std::vector<char> CheckedCall::contents(const Tensor& t) const {
  std::vector<char> bytes(static_cast<size_t>(extent(t)) * size_of(t.dtype));
  tested_.download(bytes.data(), flat(t));
  return bytes;
}

void CheckedCall::compare(const Operand& o) const {
  const std::vector<char> bytes = contents(o.tested);
  Tensor found = o.tested;
  found.data = const_cast<char*>(bytes.data());
  double error = 0, size = 0, worst = -1, largest = 0;
  int64_t place = 0;
  if (o.beside) {
    for_elements(o.beside, [&](int64_t at, int64_t) {
      const double y = get(o.beside, at);
      size += y * y;
      largest = std::max(largest, std::abs(y));
    });
  }
  for_elements(o.tested, [&](int64_t at, int64_t) {
    const double x = get(found, at), y = get(o.trusted, at);
    // Infinities must be equal; NaN agrees only with NaN.
    const bool same = x == y || (std::isnan(x) && std::isnan(y));
    const double difference =
        std::max(std::abs(x - y) - (o.use == TensorUse::counted ? 1 : 0), 0.0);
    const double e = same                        ? 0
                     : std::isfinite(difference) ? difference
                                                 : std::numeric_limits<double>::infinity();
    if (e > worst) {
      worst = e;
      place = at;
    }
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    error += e * e;
    size += y * y;
    largest = std::max(largest, std::abs(y));
  });
  const bool rounded = half_precision_ || o.tested.dtype == Dtype::bf16;
  const double limit = rounded ? (o.cancels ? limits_.cancelling : limits_.bf16)
                               : (o.cancels ? limits_.cancelling_f32 : limits_.f32);
  // An absolute floor for tiny values.
  constexpr double kFloor = 1e-30;
  if (std::sqrt(error) <= limit * std::sqrt(size) + kFloor && worst <= limit * largest + kFloor) {
    return;
  }
  fail(fmt::format("{} {} at element {}", o.name, o.tested.describe(), place), get(found, place),
       get(o.trusted, place));
}

void CheckedCall::fail(const std::string& what, double found, double truth) const {
  throw Error(ExitCode::internal, std::string(operation_) + ": " + what,
              fmt::format("{} as on {}", truth, trusted_.name()),
              fmt::format("{} on {}", found, tested_.name()),
              "one of the two backends is wrong" + doubt_);
}

}  // namespace bamtrain
