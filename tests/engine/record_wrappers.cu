// Records what a GPU computes for the kernels of wrapper_kernels.cuh, the golden file that the
// engine must reproduce. Build by hand, from the root of the source tree:
//
//     nvcc -std=c++20 -O2 -arch=native -I. -Isrc -Itests tests/engine/record_wrappers.cu -o
//     record_wrappers
//     ./record_wrappers tests/golden/wrappers.txt
//
// Format: lines that start with # name the device. Then each case has its name, its number of
// words, and the words in hexadecimal.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/wrapper_cases.h"

namespace {

void check(int code, const char* message, const std::string& what) {
  if (code == 0) return;
  std::fprintf(stderr, "%s: %s\n", what.c_str(), message);
  std::exit(1);
}
void check(cudaError_t error, const std::string& what) {
  check(static_cast<int>(error), cudaGetErrorString(error), what);
}

std::vector<uint32_t> run(const bamtrain::wrappers::Case& c) {
  uint32_t *in = nullptr, *out = nullptr;
  const size_t out_bytes = c.out_words * sizeof(uint32_t);
  check(cudaMalloc(&in, c.in.size() * sizeof(uint32_t)), c.name);
  check(cudaMalloc(&out, out_bytes), c.name);
  check(cudaMemset(out, 0xFF, out_bytes), c.name);
  check(cudaMemcpy(in, c.in.data(), c.in.size() * sizeof(uint32_t), cudaMemcpyHostToDevice),
        c.name);
  const auto status =
      bamtrain::device::launch(c.kernel, {}, {32, 1, 1}, c.shared_bytes, nullptr, in, out);
  check(status.code, status.message, c.name);
  std::vector<uint32_t> result(c.out_words);
  check(cudaMemcpy(result.data(), out, out_bytes, cudaMemcpyDeviceToHost), c.name);
  check(cudaFree(in), c.name);
  check(cudaFree(out), c.name);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }
  cudaDeviceProp device = {};
  int runtime = 0;
  check(cudaGetDeviceProperties(&device, 0), "device 0");
  check(cudaRuntimeGetVersion(&runtime), "runtime");
  std::FILE* file = std::fopen(argv[1], "w");
  if (file == nullptr) {
    std::perror(argv[1]);
    return 1;
  }
  std::fprintf(file, "# %s, compute capability %d.%d, CUDA %d\n", device.name, device.major,
               device.minor, runtime);
  for (const auto& c : bamtrain::wrappers::cases()) {
    const std::vector<uint32_t> words = run(c);
    std::fprintf(file, "%s %zu\n", c.name.c_str(), words.size());
    for (size_t i = 0; i < words.size(); ++i) {
      std::fprintf(file, "%08x%c", words[i], i % 8 == 7 || i + 1 == words.size() ? '\n' : ' ');
    }
  }
  if (std::fclose(file) != 0) {
    std::perror(argv[1]);
    return 1;
  }
  return 0;
}
