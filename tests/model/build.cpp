#include "build.h"

#include <cmath>

#include "core/ignore_index.h"
#include "core/retrieval_input.h"
#include "core/rng.h"
#include "mixes/registry.h"
#include "normalizers/registry.h"
#include "ops/cpu/cpu.h"
#include "ops/host_view.h"
#include "ops/reference/reference.h"
#include "priors/registry.h"
#include "scales/registry.h"

namespace bamtrain::testing {

namespace {

template <class Info>
Choice<Info> mechanism(const Info& info, std::map<std::string, OptionValue> options) {
  Choice<Info> c(info);
  for (auto& [name, value] : options) {
    require(c.options.has(name), "an option that the mechanism declares");
    c.options.set(name, std::move(value));
  }
  return c;
}

double random_value(const Parameter& p, const Rng& rng, int64_t i) {
  const double z = rng.normal(static_cast<uint64_t>(i));
  const double sign = rng.bits(static_cast<uint64_t>(i)) % 2 ? 1 : -1;
  switch (p.group) {
    case ParameterGroup::matrix:
      return 1.2 * z / std::sqrt(static_cast<double>(p.shape[1]));
    case ParameterGroup::embedding:
      return 0.4 * z;
    case ParameterGroup::norm:
      return (p.leaf() == "weight" ? 1 : 0) + 0.3 * z;
    case ParameterGroup::bias:
      return 0.3 * z;
    case ParameterGroup::scale:
      // Gates of size 1/2: neither they nor log(n)^gamma let a single scale dominate.
      if (p.gate) return 0.5 * z / std::sqrt(static_cast<double>(p.shape[1]));
      return (p.leaf() == "beta_bias" || p.leaf() == "gamma_bias" ? 0 : 1) + 0.3 * z;
    case ParameterGroup::normalizer:
      return -0.4 + 0.3 * z;  // alpha about 1.5
    case ParameterGroup::prior:
      break;
  }
  if (p.of_mix) return p.shape.size() == 1 ? 0.3 * z : z / std::sqrt(1.0 * p.shape[1]);
  if (p.minimum > -INFINITY) return p.minimum + 0.1 + rng.uniform(static_cast<uint64_t>(i));
  if (p.leaf() == "theta_alpha") return -0.5 + 0.4 * z;
  if (p.leaf() == "theta_beta") return 0.6 + 0.4 * z;
  // The location, 2 sinh of this value, stays clear of the integers, where |.| has a kink.
  return sign * (0.1 + 0.3 * rng.uniform(static_cast<uint64_t>(i)));
}

std::vector<double> read_all(const Tensor& t) {
  std::vector<double> out;
  const HostView host(t);
  for (int64_t i = 0; i < t.size(); ++i) out.push_back(get(host.tensor(), i));
  return out;
}

}  // namespace

PriorChoice prior(const std::string& name, std::map<std::string, OptionValue> options) {
  return mechanism(*find_prior(name), std::move(options));
}
ScaleChoice scale(const std::string& name, std::map<std::string, OptionValue> options) {
  return mechanism(*find_scale(name), std::move(options));
}
NormalizerChoice normalizer(const std::string& name, std::map<std::string, OptionValue> options) {
  return mechanism(*find_normalizer(name), std::move(options));
}

PriorConfig mixed(const std::string& mix, PriorChoice base,
                  std::map<std::string, OptionValue> options) {
  PriorConfig out(std::move(base));
  out.mixes = {mechanism(*find_mix(mix), std::move(options))};
  return out;
}

std::vector<PriorConfig> every_prior() {
  std::vector<PriorConfig> all;
  for (const PriorInfo& p : all_priors()) all.emplace_back(prior(p.name));
  for (const MixInfo& m : all_mixes()) {
    for (const char* base : {"rope", "kerple", "cable"}) all.push_back(mixed(m.name, prior(base)));
  }
  return all;
}

PriorConfig priors(const std::vector<std::string>& by_layer) {
  static const std::string kOver = " over ";
  PriorConfig out;
  out.pattern.clear();
  out.mixes.clear();
  for (const std::string& name : by_layer) {
    const size_t over = name.find(kOver);
    const bool mixes = over != std::string::npos;
    out.pattern.push_back(prior(mixes ? name.substr(over + kOver.size()) : name));
    out.mixes.push_back(mixes ? mechanism(*find_mix(name.substr(0, over)), {}) : MixChoice());
  }
  return out;
}

ModelConfig small_config() {
  ModelConfig c;
  c.vocab = 29;
  c.width = 24;
  c.layers = 2;
  c.heads = 4;
  c.kv_heads = 2;
  c.mlp.hidden = 20;
  c.attention.prior = prior("nope");
  c.attention.scale = scale("none");
  return c;
}

ModelConfig retrieval_config() {
  ModelConfig c = small_config();
  c.kind = ModelKind::max_retrieval;
  c.vocab = RetrievalInput::kInputs;
  c.classes = RetrievalInput::kClasses;
  c.layers = c.heads = c.kv_heads = 1;
  c.mlp.kind = MlpKind::gelu_erf;
  return c;
}

std::string describe(const ModelConfig& c) {
  constexpr const char* kMlps[] = {"swiglu", "geglu", "gelu", "gelu_erf", "relu"};
  constexpr const char* kPositions[] = {"", ", norms behind", ", norms on both sides"};
  if (c.kind == ModelKind::max_retrieval) {
    const NormalizerChoice& n = c.attention.normalizer;
    return "max_retrieval, scale " + c.attention.scale.name() + ", " + (n ? n.name() : "softmax") +
           ", " + kMlps[static_cast<int>(c.mlp.kind)];
  }
  std::string s = c.attention.prior.names() + ", scale " + c.attention.scale.name() + ", heads " +
                  std::to_string(c.heads) + "/" + std::to_string(c.kv_heads) + ", window " +
                  std::to_string(c.attention.window) + ", " + kMlps[static_cast<int>(c.mlp.kind)];
  s += c.norm.kind == NormKind::rmsnorm ? ", rmsnorm" : ", layernorm";
  s += kPositions[static_cast<int>(c.norm_position)];
  if (c.own_head_dim > 0) s += ", head_dim " + std::to_string(c.own_head_dim);
  if (c.embed_scale) s += ", scaled embeddings";
  if (c.attention.document_mask) s += ", documents";
  if (!c.attention.causal) s += ", bidirectional";
  if (c.tied) s += ", tied";
  for (const auto& [name, part] : kBiasPartNames) {
    if (c.bias.*part) s += ", bias of " + name;
  }
  if (c.classes > 0) s += ", " + std::to_string(c.classes) + " classes";
  return s;
}

ModelUse use_of(const ModelConfig& c) {
  return c.attention.scale.info().evaluation_only ? ModelUse::evaluation : ModelUse::training;
}

Batch random_batch(int64_t B, int64_t T, int64_t vocab, bool document_start) {
  const Rng rng(5, "tokens");
  Batch b{B, T, {}, {}, {}};
  if (document_start) b.document_start = 0;
  for (int64_t r = 0; r < B; ++r) {
    const auto token = [&](int64_t t) {
      const auto i = static_cast<uint64_t>(r * (T + 1) + t);
      const bool start = rng.bits(i) % 8 == 0;
      return static_cast<int32_t>(start ? 0 : rng.below(i, static_cast<uint64_t>(vocab)));
    };
    for (int64_t t = 0; t < T; ++t) {
      b.tokens.push_back(token(t));
      b.targets.push_back(token(t + 1));
    }
  }
  return b;
}

Batch item_batch(int64_t T, const std::vector<int32_t>& counts) {
  const Rng rng(6, "items");
  Batch batch{std::ssize(counts), T, {}, {}, {}};
  for (int64_t b = 0; b < batch.B; ++b) {
    RetrievalInput highest = {0, -1};
    for (int64_t t = 0; t < T; ++t) {
      const auto i = static_cast<uint64_t>(2 * (b * T + t));
      RetrievalInput input = {
          t == 0 ? RetrievalInput::kQuery : static_cast<int32_t>(rng.below(i, 10)),
          static_cast<int32_t>(rng.below(i + 1, RetrievalInput::kNumbers))};
      const int32_t count = counts[static_cast<size_t>(b)];
      if (t > count) input = {};  // padding
      if (t > 0 && t <= count && input.number > highest.number) highest = input;
      batch.tokens.push_back(input.id());
      batch.targets.push_back(t == count ? highest.of_class : kIgnoreIndex);
    }
  }
  return batch;
}

Batch with_classes(Batch batch, int64_t O) {
  for (int32_t& target : batch.targets) target = static_cast<int32_t>(target % O);
  return batch;
}

Run::Run(const ModelConfig& config, Dtype activations, int64_t B, int64_t T, ModelUse use,
         int64_t trained_T)
    : Run(config, activations, B, T, use, trained_T,
          {activations == Dtype::f64 ? make_reference_backend() : make_cpu_backend(),
           &host_memory()},
          Recompute::none) {}

Run::Run(const ModelConfig& config, Dtype activations, int64_t B, int64_t T, Device device,
         Recompute recompute, ModelUse use)
    : Run(config, activations, B, T, use, 0, std::move(device), recompute) {}

Run::Run(const ModelConfig& config, Dtype activations, int64_t B, int64_t T, ModelUse use,
         int64_t trained_T, Device device, Recompute recompute)
    : device_(std::move(device)),
      network_(make_network(config, trained_T ? trained_T : T, *device_.backend, activations)) {
  const Dtype P = device_.backend->parameter_dtype();
  arena_.add("masters", &master_weights_, P, {network_->parameters().elements()});
  arena_.add("gradients.parameters", &gradients_, P, {network_->parameters().elements()});
  arena_.add("loss", &loss_, Dtype::f64, {1});
  network_->plan(arena_, B, T, use, recompute);
  arena_.commit(*device_.source);
  const HostView host(master_weights_);
  for (const Parameter& p : parameters()) {
    const Rng rng(3, p.name);
    for (int64_t i = 0; i < p.size; ++i) {
      put(host.tensor(), p.offset + i, rounded(random_value(p, rng, i), Dtype::f32));
    }
  }
  host.upload();
  network_->set_master_weights(master_weights_);
  network_->refresh();
}

std::vector<double> Run::parameter(const std::string& name) const {
  return read_all(network_->parameters().view(master_weights_, name));
}

void Run::set_parameter(const std::string& name, const std::vector<double>& values) {
  const Tensor t = network_->parameters().view(master_weights_, name);
  require(static_cast<size_t>(t.size()) == values.size(), "as many values as the parameter has");
  const HostView host(t);
  for (int64_t i = 0; i < t.size(); ++i) put(host.tensor(), i, values[static_cast<size_t>(i)]);
  host.upload();
  network_->refresh();
}

void Run::move(const Parameter& p, int64_t i, double by) {
  const HostView host(master_weights_);
  put(host.tensor(), p.offset + i, get(host.tensor(), p.offset + i) + by);
  host.upload();
  network_->refresh();
}

void Batch::set_lengths(const std::vector<int32_t>& of_rows) {
  lengths = of_rows;
  for (int64_t n = 0; n < B * T; ++n) {
    if (n % T >= lengths[static_cast<size_t>(n / T)]) {
      targets[static_cast<size_t>(n)] = kIgnoreIndex;
    }
  }
}

double Run::loss(const Batch& b) {
  std::vector<double> losses(b.tokens.size());
  network_->evaluate(b.tokens.data(), b.targets.data(), b.B, b.T, b.document_start, losses.data(),
                     nullptr, nullptr,
                     network_->randomization().in_evaluation ? b.positions.data() : nullptr,
                     b.lengths_or_all().data());
  double sum = 0;
  for (double l : losses) sum += l;
  return sum / static_cast<double>(losses.size());
}

double Run::differentiate(const Batch& b) {
  const double count = static_cast<double>(b.tokens.size());
  device_.backend->zero(gradients_);
  device_.backend->zero(loss_);
  network_->load(b.tokens.data(), b.targets.data(), b.T, b.document_start,
                 b.positions.empty() ? nullptr : b.positions.data(), b.lengths_or_all().data());
  device_.backend->run_captured(graph_key(0, b.T),
                                [&] { network_->forward_backward(1 / count, gradients_, loss_); });
  return read_all(loss_).at(0) / count;
}

std::vector<double> Run::gradient(const std::string& name) const {
  return read_all(network_->parameters().view(gradients_, name));
}

std::vector<double> Run::logits(const Batch& b) {
  const int64_t V = network_->config().outputs();
  const Memory out(device_.backend->parameter_dtype(), {b.B * b.T, V}, 0, *device_.source);
  network_->logits(b.tokens.data(), b.B, b.T, b.document_start, out.tensor(),
                   b.lengths_or_all().data());
  return read(out.tensor(), Role::parameter).x;
}

void round_weights(Run& run) {
  for (const Parameter& p : run.parameters()) {
    if (!p.decays()) continue;
    std::vector<double> weights = run.parameter(p.name);
    for (double& w : weights) w = rounded(w, Dtype::bf16);
    run.set_parameter(p.name, weights);
  }
}

double norm(const std::vector<double>& a) {
  double sum = 0;
  for (double x : a) sum += x * x;
  return std::sqrt(sum);
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  require(a.size() == b.size(), "vectors of one length");
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

GradientErrors::GradientErrors(const Run& run, const Run& truth) {
  double whole = 0, error = 0;
  for (const Parameter& p : truth.parameters())
    whole = std::hypot(whole, norm(truth.gradient(p.name)));
  for (const Parameter& p : truth.parameters()) {
    const std::vector<double> g = truth.gradient(p.name);
    const double e = distance(run.gradient(p.name), g);
    error = std::hypot(error, e);
    const double relative = e / (norm(g) + 1e-2 * whole);
    if (!(relative <= worst)) {
      worst = relative;
      name = p.name;
    }
  }
  all = error / whole;
}

}  // namespace bamtrain::testing
