#include "commands/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ops/cpu/cpu.h"
#include "record/run_text.h"

namespace bamtrain {

namespace {

TokenizerSource tokenizer_source(const RunConfig& c) {
  return {"sample.tokenizer", c.sample.tokenizer, training_tokenizer_sha256(c), c.out_dir, "",
          ExitCode::config};
}

/// A decoder of the run's model, with its backend.
struct Text {
  std::unique_ptr<Backend> backend = make_cpu_backend();
  IncrementalDecoder model;

  Text(const RunConfig& c, std::optional<int64_t> document_start, int64_t longest)
      : model(c.model, c.data.sequence_length, *backend, Dtype::f32, document_start, longest) {}
};

}  // namespace

Samples::Samples(const RunConfig& config)
    : config_(config),
      tokenizer_(open_tokenizer(tokenizer_source(config), config)),
      document_start_(document_start(config, tokenizer_)) {
  const SampleConfig& s = config.sample;
  require(!s.prompts.empty(), "prompts");
  limits_ = {s.max_tokens, {s.temperature, s.top_k, s.top_p, s.min_p}, {}};
  for (size_t n = 0; n < s.prompts.size(); ++n) {
    prompts_.emplace_back(tokenizer_, document_start_, s.prompts[n],
                          fmt::format("sample.prompts[{}]", n));
    longest_ = std::max(longest_, prompts_.back().longest(limits_));
  }
  try {
    check_incremental_decoding(config.model);
  } catch (const Error& e) {
    throw e.or_else("remove sample.prompts");
  }
  int64_t needed = 0;
  try {
    needed = bytes();
  } catch (const Error& e) {  // a mechanism does not support texts of that length
    throw e.as(ExitCode::config, "sample.max_tokens", "lower it, or shorten sample.prompts");
  }
  host_memory().check_fits(needed);
}

int64_t Samples::bytes() const {
  return Text(config_, document_start_, longest_).model.planned_bytes();
}

std::vector<nlohmann::ordered_json> Samples::lines(int64_t step,
                                                   const Tensor& master_weights) const {
  Text text(config_, document_start_, longest_);
  text.model.commit(master_weights);
  std::vector<nlohmann::ordered_json> lines;
  for (size_t n = 0; n < prompts_.size(); ++n) {
    std::string written;
    const Rng rng(config_.seed, fmt::format("samples.{}.{}", step, n));
    generate(text.model, tokenizer_, document_start_, prompts_[n], limits_, rng,
             [&written](const std::string& piece) { written += piece; });
    lines.push_back({{"step", step}, {"prompt", config_.sample.prompts[n]}, {"text", written}});
  }
  return lines;
}

}  // namespace bamtrain
