#include "model/parameters.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/checked.h"
#include "core/parallel.h"
#include "core/retrieval_input.h"
#include "core/rng.h"

namespace bamtrain {

namespace {

constexpr int64_t kAlignment = 16;  // elements: 64 bytes of fp32

int64_t align(int64_t elements) { return ceil_div(elements, kAlignment) * kAlignment; }

bool ends_with(const std::string& s, const std::string& end) {
  return s.size() >= end.size() && s.compare(s.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

std::string layer_prefix(int64_t layer) { return "model.layers." + std::to_string(layer) + "."; }

std::string mechanism_parameter_name(const MechanismParameter& p, const char* kind, int64_t layer) {
  return (p.shared ? "model." : layer_prefix(layer) + "self_attn.") + kind + "." + p.name;
}

void ParameterLayout::add(const std::string& name, std::vector<int64_t> shape, ParameterGroup group,
                          ReadIn read, bool trained, bool after_previous) {
  Parameter p;
  p.name = name;
  p.shape = std::move(shape);
  p.group = group;
  p.trained = trained;
  p.size = 1;
  for (int64_t d : p.shape) p.size = checked_mul(p.size, d, name);
  p.rounded = read == ReadIn::A;
  int64_t& end = p.rounded ? elements_ : exact_;
  p.offset = after_previous ? parameters_.back().offset + parameters_.back().size : end;
  end = align(checked_add(p.offset, p.size, name));
  by_name_.emplace(name, parameters_.size());
  parameters_.push_back(std::move(p));
}

ParameterLayout::ParameterLayout(const ModelConfig& config, int64_t sequence_length) {
  add_all(config, sequence_length);
  for (Parameter& p : parameters_) p.offset += p.rounded ? exact_ : 0;
  elements_ = checked_add(exact_, elements_, "parameters");
}

/// Of those with ReadIn::A, offsets and elements_ count from the first one.
void ParameterLayout::add_all(const ModelConfig& c, int64_t sequence_length) {
  using G = ParameterGroup;
  const ModelShape shape = c.shape(sequence_length);
  const std::vector<PriorChoice>& priors = c.attention.prior.pattern;
  require(!priors.empty() && c.layers % static_cast<int64_t>(priors.size()) == 0,
          "a pattern of priors that repeats within the layers");
  const bool embedding = priors[0].info().is<EmbeddingFamily>();
  std::vector<MechanismParameters> prior_parameters;  // by prior
  for (const PriorChoice& p : priors) {
    require(priors.size() == 1 || !p.info().is<EmbeddingFamily>(), "priors of layers");
    prior_parameters.push_back(p.parameters(shape));
  }
  const MechanismParameters scale_parameters = c.attention.scale.parameters(shape);
  const NormalizerChoice& normalizer = c.attention.normalizer;
  const MechanismParameters normalizer_parameters =
      normalizer ? normalizer.parameters(shape) : MechanismParameters();
  const int64_t C = c.width, D = c.head_dim(), Q = c.heads * D, KV = c.kv_heads * D;
  const bool norm_bias = c.bias.norm && c.norm.kind == NormKind::layernorm;

  const auto norm = [&](const std::string& name) {
    add(name + ".weight", {C}, G::norm, ReadIn::P);
    if (norm_bias) add(name + ".bias", {C}, G::norm, ReadIn::P);
  };
  const auto gates_of = [](const MechanismParameters& list) {
    int64_t gates = 0;
    for (const MechanismParameter& p : list) gates += p.gate ? p.shape[0] : 0;
    return gates;
  };
  int64_t gates = 0;
  for (const auto& list : prior_parameters) gates = std::max(gates, gates_of(list));
  gates += gates_of(scale_parameters);
  gate_columns_ = ceil_div(gates, kGateColumns) * kGateColumns;

  /// Adds matrices that share their input: adjacent in memory, followed by their biases if
  /// `biased`. `more_weights` adds weights without biases, to fill `more` rows.
  const auto linears = [&](const std::vector<std::pair<std::string, int64_t>>& outputs, int64_t I,
                           bool biased, int64_t more = 0,
                           const std::function<void()>& more_weights = {}) {
    int64_t rows = more;
    for (size_t i = 0; i < outputs.size(); ++i) {
      add(outputs[i].first + ".weight", {outputs[i].second, I}, G::matrix, ReadIn::A, true, i > 0);
      rows += outputs[i].second;
    }
    if (more > 0) {
      const int64_t begin = parameters_[parameters_.size() - outputs.size()].offset;
      more_weights();
      elements_ = std::max(elements_, align(begin + rows * I));
    }
    for (size_t i = 0; biased && i < outputs.size(); ++i) {
      add(outputs[i].first + ".bias", {outputs[i].second}, G::bias, ReadIn::P, true, i > 0);
    }
    if (biased && more > 0) {
      exact_ = align(parameters_[parameters_.size() - outputs.size()].offset + rows);
    }
  };
  const auto mechanism = [&](const MechanismParameters& list, const char* kind, G group,
                             int64_t layer, bool gates_only) {
    for (const MechanismParameter& p : list) {
      const std::string name = mechanism_parameter_name(p, kind, layer);
      if (p.gate != gates_only || (p.shared && find(name))) continue;
      add(name, p.shape, group, p.gate ? ReadIn::A : ReadIn::P, p.trained, p.gate);
      parameters_.back().gate = p.gate;
      parameters_.back().marked_to_decay = p.decays;
      parameters_.back().layer = layer;
      parameters_.back().minimum = p.minimum;
      parameters_.back().maximum = p.maximum;
    }
  };

  const auto of_attention = [&](int64_t l, bool gates_only) {
    if (!embedding) {
      mechanism(prior_parameters[static_cast<size_t>(l) % priors.size()], "prior", G::prior, l,
                gates_only);
    }
    const size_t before = parameters_.size();
    mechanism(c.attention.prior.mix_parameters(l, shape), "mix", G::prior, l, gates_only);
    for (size_t n = before; n < parameters_.size(); ++n) parameters_[n].of_mix = true;
    mechanism(scale_parameters, "scale", G::scale, l, gates_only);
    mechanism(normalizer_parameters, "normalizer", G::normalizer, l, gates_only);
  };

  if (c.kind == ModelKind::max_retrieval) {
    require(c.layers == 1 && c.heads == 1, "one attention of one head");
    const std::string attention = layer_prefix(0) + "self_attn.";
    const auto network = [&](const std::string& name, int64_t I, int64_t O, int64_t features) {
      linears({{name + ".hidden", c.mlp.hidden}}, I, true);
      for (size_t n = parameters_.size() - 2; n < parameters_.size(); ++n) {
        parameters_[n].features = features;
      }
      linears({{name + ".output", O}}, c.mlp.hidden, true);
    };
    network("model.items.mlp", kFeatureColumns, C, 1 + RetrievalInput::kClasses);
    network("model.query.mlp", kFeatureColumns, C, 1);
    linears({{attention + "q_proj", Q}}, C, true, gate_columns_, [&] { of_attention(0, true); });
    linears({{attention + "k_proj", KV}, {attention + "v_proj", KV}}, C, true);
    of_attention(0, false);
    network("model.answer", C, c.outputs(), 0);
    return;
  }
  add("model.embed_tokens.weight", {c.vocab, C}, G::embedding, ReadIn::A);
  if (embedding) {
    for (const MechanismParameter& p : prior_parameters[0]) {
      add("model.embed_positions." + p.name, p.shape, G::embedding, ReadIn::P, p.trained);
    }
  }
  for (int64_t l = 0; l < c.layers; ++l) {
    const std::string prefix = layer_prefix(l);
    const std::string attention = prefix + "self_attn.", mlp = prefix + "mlp.";
    if (c.norm_position != NormPosition::post) norm(prefix + "input_layernorm");
    linears({{attention + "q_proj", Q}, {attention + "k_proj", KV}, {attention + "v_proj", KV}}, C,
            c.bias.attention, gate_columns_, [&] { of_attention(l, true); });
    linears({{attention + "o_proj", C}}, Q, c.bias.attention);
    of_attention(l, false);
    norm(prefix + "post_attention_layernorm");
    if (c.norm_position == NormPosition::both) norm(prefix + "pre_feedforward_layernorm");
    if (is_gated(c.mlp.kind)) {
      linears({{mlp + "gate_proj", c.mlp.hidden}, {mlp + "up_proj", c.mlp.hidden}}, C, c.bias.mlp);
    } else {
      linears({{mlp + "up_proj", c.mlp.hidden}}, C, c.bias.mlp);
    }
    linears({{mlp + "down_proj", C}}, c.mlp.hidden, c.bias.mlp);
    if (c.norm_position != NormPosition::pre) norm(prefix + "post_feedforward_layernorm");
  }
  if (c.norm_position != NormPosition::post) norm("model.norm");
  require(!c.tied || c.outputs() == c.vocab, "a head of its own where classes are no ids");
  if (!c.tied) add("lm_head.weight", {c.outputs(), C}, G::matrix, ReadIn::A);
  if (c.bias.head) add("lm_head.bias", {c.outputs()}, G::bias, ReadIn::P);
}

const Parameter* ParameterLayout::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found != by_name_.end() ? &parameters_[found->second] : nullptr;
}

Tensor ParameterLayout::view(const Tensor& flat, const std::string& name) const {
  return view_of(flat, find(name));
}

Tensor view_of(const Tensor& flat, const Parameter* p) {
  if (!p) return {};
  const Tensor part = flat.slice(0, p->offset, p->size);
  return p->shape.size() == 1 ? part : part.reshaped({p->shape[0], p->shape[1]});
}

Tensor fused_view_of(const Tensor& flat, const Parameter* p, int64_t rows, int64_t columns) {
  if (!p) return {};
  const Tensor part = flat.slice(0, p->offset, rows * columns);
  return p->shape.size() == 1 ? part : part.reshaped({rows, columns});
}

int64_t ParameterLayout::count(std::initializer_list<ParameterGroup> groups) const {
  int64_t n = 0;
  for (const Parameter& p : parameters_) {
    if (std::find(groups.begin(), groups.end(), p.group) != groups.end()) n += p.size;
  }
  return n;
}

namespace {

/// The rule for a matrix or an embedding: normal(0, std), truncated at two std if `cut`, or
/// uniform(-bound, bound).
struct MatrixInit {
  double std = 0;
  double bound = 0;
  bool cut = false;
};

MatrixInit matrix_init(const Parameter& p, const ModelConfig& c) {
  const bool residual = ends_with(p.name, "o_proj.weight") || ends_with(p.name, "down_proj.weight");
  const auto fan_in = static_cast<double>(p.features > 0 ? p.features : p.shape[1]);
  const double L = static_cast<double>(c.layers), C = static_cast<double>(c.width);
  switch (c.init) {
    case InitKind::gpt2:
      return {0.02 * (residual ? 1 / std::sqrt(2 * L) : 1), 0};
    case InitKind::neox:
      return {residual ? 2 / (L * std::sqrt(C)) : std::sqrt(2 / (5 * C)), 0};
    case InitKind::plain:
      return {0.02, 0};
    case InitKind::lecun:
      if (p.group == ParameterGroup::embedding) return {0.02, 0, true};
      return {1 / std::sqrt(fan_in), 0, true};
    case InitKind::torch:
      break;
  }
  if (p.group == ParameterGroup::embedding) return {1, 0};
  return {0, 1 / std::sqrt(fan_in)};
}

/// The first draw of element i within two standard deviations. Its draws are `size` apart.
double cut_normal(const Rng& rng, uint64_t i, int64_t size) {
  double z = rng.normal(i);
  while (std::abs(z) > 2) z = rng.normal(i += static_cast<uint64_t>(size));
  return z;
}

/// The input width of the matrix with this bias.
int64_t fan_in_of_bias(const Parameter& p, const ModelConfig& c) {
  if (ends_with(p.name, "down_proj.bias") || ends_with(p.name, ".output.bias")) {
    return c.mlp.hidden;
  }
  if (p.features > 0) return p.features;
  if (ends_with(p.name, "o_proj.bias")) return c.heads * c.head_dim();
  return c.width;
}

/// The initial value of element i of a mechanism's parameter, from its registry.
using MechanismInit = std::function<double(int64_t i, double uniform, double normal)>;

MechanismInit mechanism_init(const MechanismInfo& info, const Options& options,
                             const ModelShape& shape, const Parameter& p) {
  for (const MechanismParameter& q : info.parameters(options, shape)) {
    if (q.name != p.leaf()) continue;
    return [&info, &options, shape, q](int64_t i, double uniform, double normal) {
      return info.initial(options, shape, q, i, uniform, normal);
    };
  }
  require(false, "a mechanism parameter that its registry declares");
  return {};
}

}  // namespace

void initialize(const Parameter& p, const ModelConfig& c, int64_t sequence_length, uint64_t seed,
                Tensor out) {
  const Rng rng(seed, p.name);
  const ModelShape shape = c.shape(sequence_length);
  MechanismInit mechanism;
  if (p.of_mix) {
    const MixChoice& mix = c.attention.prior.mix_of(p.layer);
    mechanism =
        mechanism_init(mix.info(), mix.options, c.attention.prior.mix_shape(p.layer, shape), p);
  } else if (p.group == ParameterGroup::prior || p.name == "model.embed_positions.weight") {
    const PriorChoice& prior = c.attention.prior.of(p.layer);
    mechanism = mechanism_init(prior.info(), prior.options, shape, p);
  } else if (p.group == ParameterGroup::scale) {
    mechanism = mechanism_init(c.attention.scale.info(), c.attention.scale.options, shape, p);
  } else if (p.group == ParameterGroup::normalizer) {
    const NormalizerChoice& normalizer = c.attention.normalizer;
    mechanism = mechanism_init(normalizer.info(), normalizer.options, shape, p);
  }
  const auto value = [&](int64_t i) -> double {
    const auto index = static_cast<uint64_t>(i);
    if (mechanism) return mechanism(i, rng.uniform(index), rng.normal(index));
    if (p.group == ParameterGroup::norm) return p.leaf() == "bias" ? 0 : 1;
    if (p.group == ParameterGroup::bias) {
      if (c.init != InitKind::torch) return 0;
      const double bound = 1 / std::sqrt(static_cast<double>(fan_in_of_bias(p, c)));
      return bound * (2 * rng.uniform(index) - 1);
    }
    if (p.features > 0 && i % p.shape[1] >= p.features) return 0;
    const MatrixInit rule = matrix_init(p, c);
    if (rule.bound > 0) return rule.bound * (2 * rng.uniform(index) - 1);
    return rule.std * (rule.cut ? cut_normal(rng, index, p.size) : rng.normal(index));
  };
  parallel_ranges(p.size, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (out.dtype == Dtype::f64) {
        out.ptr<double>()[i] = value(i);
      } else {
        out.ptr<float>()[i] = static_cast<float>(value(i));
      }
    }
  });
}

}  // namespace bamtrain
