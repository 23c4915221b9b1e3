#include "ops/cpu/cpu.h"

#include "core/error.h"
#include "ops/cpu/bf16_gemm.h"

namespace bamtrain {

#if defined(BAMTRAIN_ONLY_ISA)

namespace BAMTRAIN_ONLY_ISA {
std::unique_ptr<Backend> make_backend(const Bf16Gemm*);
}

std::unique_ptr<Backend> make_cpu_backend(CpuIsa most) {
  return BAMTRAIN_ONLY_ISA::make_backend(bf16_gemm(most));
}

#else

namespace v3 {
std::unique_ptr<Backend> make_backend(const Bf16Gemm*);
}
namespace v4 {
std::unique_ptr<Backend> make_backend(const Bf16Gemm*);
}

std::unique_ptr<Backend> make_cpu_backend(CpuIsa most) {
  if (most >= CpuIsa::avx512 && __builtin_cpu_supports("x86-64-v4")) {
    return v4::make_backend(bf16_gemm(most));
  }
  if (__builtin_cpu_supports("x86-64-v3")) return v3::make_backend(nullptr);
  throw Error(ExitCode::device, "device: cpu",
              "a processor with x86-64-v3 (AVX2, FMA, BMI2; 2013 or later)", "an older one",
              "run on a newer machine");
}

#endif

}  // namespace bamtrain
