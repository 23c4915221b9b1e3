// kernels/ is the same source for nvcc and for the engine, so device.cuh must hold everything that
// only nvcc understands.

#include <fstream>
#include <iterator>
#include <regex>

#include "catch.h"
#include "engine/support.h"

namespace {

namespace fs = std::filesystem;

/// The first construct in `text` that only nvcc understands, or "".
std::string forbidden_in(const std::string& text) {
  static const std::regex nvcc_only(
      "\\b(asm|__asm__)\\b|<<<|__nv_bfloat16|\\bnv_bfloat16|cuda_bf16\\.h|__syncthreads|__syncwarp|"
      "__shfl_|__ballot_sync|__shared__|__device__|__global__|\\b(threadIdx|blockIdx|blockDim)\\b");
  std::smatch match;
  return std::regex_search(text, match, nvcc_only) ? match.str() : "";
}

}  // namespace

TEST_CASE("what only nvcc knows is found in a text") {
  CHECK(forbidden_in("asm volatile(\"\")") == "asm");
  CHECK(forbidden_in("f<<<grid, block>>>(x);") == "<<<");
  CHECK(forbidden_in("const __nv_bfloat16* x") == "__nv_bfloat16");
  CHECK(forbidden_in("#include <cuda_bf16.h>") == "cuda_bf16.h");
  CHECK(forbidden_in("int i = threadIdx.x;") == "threadIdx");
  CHECK(forbidden_in("x << y; float basm; device::bf16 z;").empty());
}

TEST_CASE("no file of kernels but the boundary holds what only nvcc knows") {
  const fs::path root = bamtrain::engine::source_folder() / "kernels";
  bool boundary_seen = false;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    INFO(entry.path().string());
    std::ifstream in(entry.path());
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const bool boundary = fs::relative(entry.path(), root) == "device.cuh";
    boundary_seen |= boundary;
    if (boundary) {
      CHECK(forbidden_in(text) != "");
    } else {
      CHECK(forbidden_in(text) == "");
    }
  }
  CHECK(boundary_seen);
}
