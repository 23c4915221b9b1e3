#include "run/datasheet_peak.h"

namespace bamtrain {

namespace {

struct KnownGpu {
  const char* name;
  double teraflops;
};

/// NVIDIA datasheets; those of Hopper state twice as much, "with sparsity". RTX 4090: NVIDIA Ada
/// GPU architecture whitepaper.
constexpr KnownGpu kKnownGpus[] = {
    {"NVIDIA A100-SXM4-40GB", 312},
    {"NVIDIA A100-SXM4-80GB", 312},
    {"NVIDIA A100-PCIE-40GB", 312},
    {"NVIDIA A100 80GB PCIe", 312},
    {"NVIDIA A10", 125},
    {"NVIDIA A40", 149.7},
    {"NVIDIA L4", 121},
    {"NVIDIA L40S", 362},
    {"NVIDIA GeForce RTX 4090", 165.2},
    {"NVIDIA H100 80GB HBM3", 989.4},  // SXM
    {"NVIDIA H100 PCIe", 756},
    {"NVIDIA H200", 989.4},
};

}  // namespace

std::optional<double> datasheet_bf16_peak(const std::string& gpu) {
  for (const KnownGpu& known : kKnownGpus) {
    if (gpu == known.name) return 1e12 * known.teraflops;
  }
  return std::nullopt;
}

}  // namespace bamtrain
