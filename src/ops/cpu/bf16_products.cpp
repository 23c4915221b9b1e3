#include "ops/cpu/bf16_products.h"

#if defined(BAMTRAIN_BF16_PRODUCTS)
#include <sys/syscall.h>
#include <unistd.h>

#include <dnnl.hpp>
#endif

namespace bamtrain {

#if defined(BAMTRAIN_BF16_PRODUCTS)

namespace v4_bf16 {
extern const Bf16Products kProducts;
}
namespace v4_amx {
extern const Bf16Products kProducts;
}

namespace {

/// Linux gives a process the registers of tiles when it asks for them.
bool tiles_are_given() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

const Bf16Products* bf16_products(CpuIsa most) {
  using Isa = dnnl::cpu_isa;
  const Isa isa = dnnl::get_effective_cpu_isa();
  const auto includes = [isa](Isa part) {
    return (static_cast<unsigned>(isa) & static_cast<unsigned>(part)) ==
           static_cast<unsigned>(part);
  };
  if (most >= CpuIsa::avx512_amx && includes(Isa::avx512_core_amx) && tiles_are_given()) {
    return &v4_amx::kProducts;
  }
  if (most >= CpuIsa::avx512_bf16 && includes(Isa::avx512_core_bf16)) return &v4_bf16::kProducts;
  return nullptr;
}

#else

const Bf16Products* bf16_products(CpuIsa) { return nullptr; }

#endif

}  // namespace bamtrain
