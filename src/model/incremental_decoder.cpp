#include "model/incremental_decoder.h"

#include <algorithm>

#include "model/causal_lm.h"

namespace bamtrain {

namespace {
constexpr int64_t kOneSequence[] = {0};  // the padding of begin_decoding()
}

void check_incremental_decoding(const ModelConfig& config) {
  check_causal_lm(config);
  if (counts_whole_sequence(config.attention.normalizer)) {
    throw Error(ExitCode::config, "model.attention.normalizer.of",
                "\"row\" with k \"n/2\": incremental decoding does not know the final length",
                "\"sequence\"", "--set model.attention.normalizer.of=row");
  }
}

bool supports_chunked_prefill(const ModelConfig& config, Backend& backend) {
  try {
    check_incremental_decoding(config);
  } catch (const Error&) {
    return false;
  }
  if (!backend.memory().on_host()) return true;
  const NormalizerChoice& normalizer = config.attention.normalizer;
  if (normalizer && !traits_of(normalizer.info().kind).fused) return false;
  for (int64_t l = 0; l < config.layers; ++l) {
    const PriorInfo& prior = config.attention.prior.of(l).info();
    const bool of_rows = prior.is<ContextualFamily>() || prior.is<TransformerXlFamily>();
    if (of_rows || config.attention.prior.mix_of(l)) return false;
  }
  return true;
}

bool prefers_chunked_prefill(const ModelConfig& config, Backend& backend, int64_t T) {
  constexpr int64_t kFullPassTokensOnDevice = 8 * kFullPassTokens;
  const int64_t whole = backend.memory().on_host() ? kFullPassTokens : kFullPassTokensOnDevice;
  return T > whole && supports_chunked_prefill(config, backend);
}

void evaluate_in_chunks(Model& model, const int32_t* tokens, const int32_t* targets, int64_t T,
                        std::optional<int64_t> document_start, double* losses, int32_t* likeliest,
                        const std::function<void(int64_t)>& progress) {
  model.begin_decoding(kOneSequence);
  for (int64_t at = 0; at < T;) {
    const int64_t n = std::min(kMaxPrefillChunk, T - at);
    model.append(tokens + at, targets + at, n, document_start, losses + at,
                 likeliest ? likeliest + at : nullptr);
    at += n;
    if (progress) progress(at);
  }
}

IncrementalDecoder::IncrementalDecoder(const ModelConfig& config, int64_t training_length,
                                       Backend& backend, Dtype activations,
                                       std::optional<int64_t> document_start, int64_t longest)
    : backend_(backend),
      document_start_(document_start),
      longest_(longest),
      model_(config, training_length, backend, activations) {
  require(longest >= 1, "room for a token");
  check_incremental_decoding(config);
  model_.check_length(longest);
  model_.plan(arena_, 1, longest, ModelUse::generation);
  arena_.add("head.logits", &logits_, backend.parameter_dtype(), {1, config.outputs()});
}

void IncrementalDecoder::commit(const Tensor& master_weights) {
  arena_.commit(backend_.memory());
  if (!backend_.memory().on_host()) host_logits_.resize(static_cast<size_t>(logits_.bytes()));
  model_.set_master_weights(master_weights);
  model_.refresh();
  clear();
}

void IncrementalDecoder::clear() { model_.begin_decoding(kOneSequence); }

Tensor IncrementalDecoder::append(std::span<const int32_t> tokens) {
  require(!tokens.empty(), "a token to append");
  while (!tokens.empty()) {
    const size_t n = std::min<size_t>(tokens.size(), kMaxPrefillChunk);
    const bool last = n == tokens.size();
    model_.append(tokens.data(), static_cast<int64_t>(n), document_start_,
                  last ? logits_ : Tensor());
    tokens = tokens.subspan(n);
  }
  if (backend_.memory().on_host()) return logits_;
  backend_.download(host_logits_.data(), logits_);
  Tensor host = logits_;
  host.data = host_logits_.data();
  return host;
}

}  // namespace bamtrain
