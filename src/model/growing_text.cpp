#include "model/growing_text.h"

#include <algorithm>

#include "model/text_model.h"

namespace bamtrain {

namespace {
constexpr int64_t kOneText[] = {0};  // the padding of begin_texts()
}

void check_grows(const ModelConfig& config) {
  check_text_model(config);
  if (counts_whole_sequence(config.attention.normalizer)) {
    throw Error(ExitCode::config, "model.attention.normalizer.of",
                "\"row\" with k \"n/2\": the length of a text that grows is not known",
                "\"sequence\"", "--set model.attention.normalizer.of=row");
  }
}

bool takes_pieces(const ModelConfig& config, Backend& backend) {
  try {
    check_grows(config);
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

bool reads_in_pieces(const ModelConfig& config, Backend& backend, int64_t T) {
  constexpr int64_t kReadWholeOnDevice = 8 * kReadWhole;
  const int64_t whole = backend.memory().on_host() ? kReadWhole : kReadWholeOnDevice;
  return T > whole && takes_pieces(config, backend);
}

void evaluate_in_pieces(Model& model, const int32_t* tokens, const int32_t* targets, int64_t T,
                        std::optional<int64_t> document_start, double* losses, int32_t* likeliest,
                        const std::function<void(int64_t)>& progress) {
  model.begin_texts(kOneText);
  for (int64_t at = 0; at < T;) {
    const int64_t n = std::min(kMostAppended, T - at);
    model.append(tokens + at, targets + at, n, document_start, losses + at,
                 likeliest ? likeliest + at : nullptr);
    at += n;
    if (progress) progress(at);
  }
}

GrowingText::GrowingText(const ModelConfig& config, int64_t training_length, Backend& backend,
                         Dtype activations, std::optional<int64_t> document_start, int64_t longest)
    : backend_(backend),
      document_start_(document_start),
      longest_(longest),
      model_(config, training_length, backend, activations) {
  require(longest >= 1, "room for a token");
  check_grows(config);
  model_.check_length(longest);
  model_.plan(arena_, 1, longest, ModelUse::generation);
  arena_.add("head.logits", &logits_, backend.parameter_dtype(), {1, config.outputs()});
}

void GrowingText::commit(const Tensor& masters) {
  arena_.commit(backend_.memory());
  if (!backend_.memory().on_host()) host_logits_.resize(static_cast<size_t>(logits_.bytes()));
  model_.set_masters(masters);
  model_.refresh();
  clear();
}

void GrowingText::clear() { model_.begin_texts(kOneText); }

Tensor GrowingText::append(std::span<const int32_t> tokens) {
  require(!tokens.empty(), "a token to append");
  while (!tokens.empty()) {
    const size_t n = std::min<size_t>(tokens.size(), kMostAppended);
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
