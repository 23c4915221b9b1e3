#pragma once
// Texts that the model generates during training: samples.jsonl.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "config/reader.h"
#include "eval/generate.h"

namespace bamtrain {

class Samples {
 public:
  /// Opens the tokenizer named by sample.tokenizer or the shards' manifest, and reads the prompts.
  /// Whatever lines() would refuse fails here: throws Error (data, config, usage, io) as
  /// open_tokenizer, Prompt and IncrementalDecoder, and (device) if there is too little memory.
  /// REQUIRES: config.sample has prompts.
  explicit Samples(const RunConfig& config);

  /// Host memory that lines() uses while it runs.
  int64_t bytes() const;

  /// Returns {"step", "prompt", "text"} for each prompt, from master weights in host memory.
  /// Computes in fp32 on the CPU, whatever the run uses. A pure function of the master weights, the
  /// step and the config.
  std::vector<nlohmann::ordered_json> lines(int64_t step, const Tensor& master_weights) const;

 private:
  RunConfig config_;
  Tokenizer tokenizer_;
  std::optional<int64_t> document_start_;
  std::vector<Prompt> prompts_;
  GenerationLimits limits_;
  int64_t longest_ = 0;
};

}  // namespace bamtrain
