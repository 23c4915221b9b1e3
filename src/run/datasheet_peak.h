#pragma once
// Peak matmul throughput that NVIDIA's datasheets state, relative to which others report MFU.

#include <optional>
#include <string>

namespace bamtrain {

/// FLOP/s of dense bf16 products with fp32 sums, for a GPU by the name that CUDA reports ("NVIDIA
/// H200"). Empty for a GPU that is not in the table; for parts of a GPU (MIG), too.
std::optional<double> datasheet_bf16_peak(const std::string& gpu);

}  // namespace bamtrain
