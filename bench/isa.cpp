#include "isa.h"

#include <dnnl.hpp>

#include "core/error.h"
#include "ops/cpu/cpu.h"

namespace bamtrain::bench {

std::unique_ptr<Backend> make_backend_for(const std::string& isa, Dtype activations) {
  if (isa == "newest") return make_cpu_backend();
  require(isa == "avx2", "newest or avx2 as an instruction set");
  if (activations != Dtype::f32) {
    throw Error(ExitCode::usage, "--isa avx2", "fp32", name_of(activations),
                "bf16 needs AVX-512: choose fp32 with --precision");
  }
  if (dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2) != dnnl::status::success) {
    throw Error(ExitCode::device, "--isa avx2", "a oneDNN that stays at AVX2 where told to",
                "one that refuses", "use a oneDNN built with ONEDNN_ENABLE_MAX_CPU_ISA");
  }
  auto backend = make_cpu_backend(CpuIsa::avx2);
  if (backend->name() != std::string("cpu (v3)")) {
    throw Error(ExitCode::device, "--isa avx2", "a build that has code for AVX2",
                std::string("one whose code is ") + backend->name(), "build without -Dnative=true");
  }
  return backend;
}

}  // namespace bamtrain::bench
