#pragma once
// The parameters of a model in the names and layout of transformers' GPT2LMHeadModel.

#include <cstdint>
#include <string>
#include <vector>

namespace bamtrain {

struct Gpt2Tensor {
  std::string name;                // "transformer.h.0.attn.c_attn.weight"
  std::vector<std::string> parts;  // parameters, concatenated along their outputs
  bool transposed = false;         // (inputs, outputs); parameters are (outputs, inputs)
};

/// The tensors of a model with this many layers, each once. `tied`: without a head of its own.
std::vector<Gpt2Tensor> gpt2_tensors(int64_t layers, bool tied);

/// The transpose of a row-major matrix of `rows` rows.
std::vector<float> transposed(const std::vector<float>& matrix, int64_t rows, int64_t columns);

}  // namespace bamtrain
