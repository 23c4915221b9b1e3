#include "ops/cpu/cpu.h"

#include "core/error.h"

namespace bamtrain {

#if defined(__x86_64__)

namespace v3 {
std::unique_ptr<Backend> make_backend();
}
namespace v4 {
std::unique_ptr<Backend> make_backend();
}

namespace {

bool has_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
}
bool has_v4() {
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(CpuIsa most) {
  if (most == CpuIsa::avx512 && has_v4()) return v4::make_backend();
  if (has_v3()) return v3::make_backend();
  throw Error(ExitCode::device, "device: cpu", "a processor with AVX2 and FMA (2013 or later)",
              "an older one", "run on a newer machine");
}

#else

namespace generic {
std::unique_ptr<Backend> make_backend();
}

std::unique_ptr<Backend> make_cpu_backend(CpuIsa) { return generic::make_backend(); }

#endif

}  // namespace bamtrain
