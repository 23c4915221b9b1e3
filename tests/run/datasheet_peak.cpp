#include "run/datasheet_peak.h"

#include "catch.h"

using namespace bamtrain;

TEST_CASE("the datasheet's peak is multiprocessors x FLOPs per clock x boost clock") {
  // FLOPs per clock and multiprocessor, of dense bf16 products with fp32 sums: 2,048 (A100), 4,096
  // (H100), 1,024 (Ada), 512 (RTX 4090, where fp32 sums halve the rate).
  const auto peak = [](double processors, double flops, double mhz) {
    return processors * flops * mhz * 1e6;
  };
  CHECK(datasheet_bf16_peak("NVIDIA A100-SXM4-80GB").value() ==
        Approx(peak(108, 2048, 1410)).epsilon(1e-3));
  CHECK(datasheet_bf16_peak("NVIDIA H100 80GB HBM3").value() ==
        Approx(peak(132, 4096, 1830)).epsilon(1e-3));
  CHECK(datasheet_bf16_peak("NVIDIA H200").value() == Approx(peak(132, 4096, 1830)).epsilon(1e-3));
  CHECK(datasheet_bf16_peak("NVIDIA H100 PCIe").value() ==
        Approx(peak(114, 4096, 1620)).epsilon(1e-3));
  CHECK(datasheet_bf16_peak("NVIDIA GeForce RTX 4090").value() ==
        Approx(peak(128, 512, 2520)).epsilon(1e-3));
  CHECK(datasheet_bf16_peak("NVIDIA L40S").value() == Approx(peak(142, 1024, 2520)).epsilon(0.02));
}

TEST_CASE("another GPU, and a part of one, has no peak") {
  for (const char* name :
       {"", "NVIDIA H200 NVL", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA A1"}) {
    CHECK_FALSE(datasheet_bf16_peak(name));
  }
}
