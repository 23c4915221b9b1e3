#include "ops/cpu/bf16_gemm.h"

#if defined(BAMTRAIN_BF16_PRODUCTS)
#include <sys/syscall.h>
#include <unistd.h>

#include <dnnl.hpp>
#endif

namespace bamtrain {

#if defined(BAMTRAIN_BF16_PRODUCTS)

namespace v4_amx {
extern const Bf16Gemm kProducts;
}

namespace {

/// Linux grants a process the tile registers on request.
bool tiles_are_given() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

const Bf16Gemm* bf16_gemm(CpuIsa most) {
  constexpr auto kAmx = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_amx);
  const bool used = (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & kAmx) == kAmx;
  return most >= CpuIsa::avx512_amx && used && tiles_are_given() ? &v4_amx::kProducts : nullptr;
}

#else

const Bf16Gemm* bf16_gemm(CpuIsa) { return nullptr; }

#endif

}  // namespace bamtrain
