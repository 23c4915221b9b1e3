#pragma once
// The parameters of a model as transformers' GPT2LMHeadModel names and lays them out.

#include <cstdint>
#include <string>
#include <vector>

namespace bamtrain {

struct Gpt2Tensor {
  std::string name;                // "transformer.h.0.attn.c_attn.weight"
  std::vector<std::string> parts;  // parameters, one after the other along their outputs
  bool transposed = false;         // (inputs, outputs), where a parameter is (outputs, inputs)
};

/// Of a model of so many layers, each tensor once; `tied`: without a head of its own.
std::vector<Gpt2Tensor> gpt2_tensors(int64_t layers, bool tied);

/// The transpose of a row-major matrix of `rows` rows.
std::vector<float> transposed(const std::vector<float>& matrix, int64_t rows, int64_t columns);

}  // namespace bamtrain
