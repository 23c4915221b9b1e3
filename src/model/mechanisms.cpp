#include "model/mechanisms.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/element.h"
#include "priors/fire.h"

namespace bamtrain {

namespace {

bool resolve_scale_bias(const ModelConfig& c, const ScaleInfo& scale) {
  const Options& o = c.attention.scale.options;
  if (o.has("scale_bias") && o.text("scale_bias") != "auto") return o.text("scale_bias") == "true";
  return scale.default_scale_bias && scale.default_scale_bias(c.attention.prior.name);
}

/// dst (rows, columns) P = f(row, column).
void upload_table(Backend& backend, const Tensor& dst,
                  const std::function<double(int64_t, int64_t)>& f) {
  std::vector<char> bytes(static_cast<size_t>(dst.bytes()));
  const Tensor host(bytes.data(), dst.dtype, {dst.shape[0], dst.shape[1]});
  for (int64_t i = 0; i < dst.size(); ++i) put(host, i, f(i / dst.shape[1], i % dst.shape[1]));
  backend.upload(dst, host.data);
}

}  // namespace

Mechanisms::Mechanisms(const ModelConfig& config, int64_t training_length,
                       const ParameterLayout& layout, Backend& backend)
    : config_(config),
      backend_(backend),
      prior_(*find_prior(config.attention.prior.name)),
      scale_(*find_scale(config.attention.scale.name)),
      training_length_(training_length),
      window_(config.attention.window),
      scale_bias_(resolve_scale_bias(config, scale_)) {
  const PriorShape shape = prior_shape(config, training_length);
  if (window_ == 0 && prior_.window) window_ = prior_.window(training_length);
  if (prior_.family == Family::table || prior_.family == Family::sums ||
      prior_.family == Family::fire) {
    const auto parameters = prior_.parameters(config.attention.prior.options, shape);
    of_prior_ = find(parameters, "prior", layout);
    if (prior_.form) prior_form_ = prior_.form(config.attention.prior.options);
    shared_table_ = prior_.family == Family::table &&
                    std::all_of(parameters.begin(), parameters.end(),
                                [](const MechanismParameter& p) { return p.shared; });
  }
  if (prior_.threshold_length) {
    fire_length_ = prior_.threshold_length(config.attention.prior.options, training_length);
  }
  if (prior_.first_scaled_head) first_scaled_head_ = prior_.first_scaled_head(config.heads);
  if (scale_.value) {
    of_scale_ = find(scale_.parameters(config.attention.scale.options, shape), "scale", layout);
    if (scale_.constants) {
      scale_constants_ = scale_.constants(config.attention.scale.options, shape);
    }
  }
}

std::vector<Mechanisms::Parameters> Mechanisms::find(const std::vector<MechanismParameter>& list,
                                                     const char* kind,
                                                     const ParameterLayout& layout) const {
  std::vector<Parameters> out(static_cast<size_t>(config_.layers));
  for (int64_t l = 0; l < config_.layers; ++l) {
    for (const MechanismParameter& p : list) {
      const Parameter* found = layout.find(mechanism_parameter_name(p, kind, l));
      require(found != nullptr, "a mechanism's parameter in the layout");
      out[static_cast<size_t>(l)].push_back(found);
    }
  }
  return out;
}

int64_t Mechanisms::largest_parameter() const {
  int64_t most = 0;
  for (const auto* of : {&of_prior_, &of_scale_}) {
    for (const Parameters& layer : *of) {
      for (const Parameter* p : layer) most = std::max(most, p->size);
    }
  }
  return most;
}

std::span<const Tensor> Mechanisms::theta(const std::vector<Parameters>& of, int64_t layer) {
  theta_.clear();
  for (const Parameter* p : of[static_cast<size_t>(layer)]) theta_.push_back(view_of(masters_, p));
  return theta_;
}

std::span<const Tensor> Mechanisms::dtheta(const std::vector<Parameters>& of, int64_t layer,
                                           const Tensor& gradients) {
  dtheta_.clear();
  for (const Parameter* p : of[static_cast<size_t>(layer)]) {
    dtheta_.push_back(p->trained ? view_of(gradients, p) : Tensor());
  }
  return dtheta_;
}

void Mechanisms::plan(Arena& arena, int64_t B, int64_t T, bool training) {
  const int64_t L = config_.layers, H = config_.heads, half = config_.head_dim() / 2;
  const Dtype P = backend_.parameter_dtype();
  T_ = T;
  if (prior_.family == Family::table) {
    arena.add("mechanisms.tables", &tables_, P, {shared_table_ ? 1 : L, H, T});
    if (training) arena.add("mechanisms.dtable", &dtable_, P, {H, T});
  }
  if (prior_.family == Family::sums) {
    arena.add("mechanisms.sums", &sums_, Dtype::f64, {B, H, T});
    if (training) arena.add("mechanisms.dsums_key", &dsums_key_, P, {B, H, T});
    if (training && prior_.sum_bias != SumBias::difference) {
      arena.add("mechanisms.dsums_query", &dsums_query_, P, {B, H, T});
    }
  }
  if (prior_.family == Family::fire) {
    for (Tensor* t : {&fire_.psi, &fire_.psi_dc, &fire_.inverse}) {
      arena.add("mechanisms.fire", t, P, {L, T});
    }
    arena.add("mechanisms.fire_ends", &fire_.ends, Dtype::i32, {L, T, kFireHidden});
    arena.add("mechanisms.fire", &fire_.slope, P, {L, H, kFireSegments});
    arena.add("mechanisms.fire", &fire_.offset, P, {L, H, kFireSegments});
    if (training) {
      arena.add("mechanisms.dfire", &dfire_, Dtype::f64, {H, kFireSegments, 2});
      arena.add("mechanisms.dfire_u", &dfire_u_, P, {B, H, T});
      arena.add("mechanisms.dfire_psi", &dfire_psi_, P, {B, H, T});
    }
  }
  if (prior_.family == Family::rotary) {
    arena.add("mechanisms.cosine", &cosine_, P, {T, half});
    arena.add("mechanisms.sine", &sine_, P, {T, half});
  }
  if (sinusoidal()) arena.add("mechanisms.positions", &position_table_, P, {T, config_.width});
  if (scale_.value) {
    arena.add("mechanisms.scale", &scale_rows_, P, {B, H, T});
    if (training) arena.add("mechanisms.dscale", &dscale_, P, {B, H, T});
  }
}

void Mechanisms::refresh(const Tensor& masters) {
  masters_ = masters;
  if (tables_) {
    for (int64_t layer = 0; layer < tables_.shape[0]; ++layer) {
      backend_.table_forward(tables_.slice(0, layer, 1).reshaped({config_.heads, T_}), prior_use(),
                             theta(of_prior_, layer));
    }
  }
  for (int64_t layer = 0; fire_.psi && layer < config_.layers; ++layer) {
    backend_.fire_forward(fire_of(layer), theta(of_prior_, layer), fire_length_);
  }
  if (!constants_ready_) upload_constants();
}

/// What does not depend on any parameter.
void Mechanisms::upload_constants() {
  if (cosine_) {
    const Options& options = config_.attention.prior.options;
    const std::vector<double> frequency =
        prior_.inverse_frequencies(options, config_.head_dim(), training_length_);
    const double amplitude = prior_.rotary_amplitude ? prior_.rotary_amplitude(options) : 1;
    const auto angle = [&](int64_t t, int64_t c) {
      return static_cast<double>(t) * frequency[static_cast<size_t>(c)];
    };
    upload_table(backend_, cosine_,
                 [&](int64_t t, int64_t c) { return amplitude * std::cos(angle(t, c)); });
    upload_table(backend_, sine_,
                 [&](int64_t t, int64_t c) { return amplitude * std::sin(angle(t, c)); });
  }
  if (position_table_) {
    upload_table(backend_, position_table_,
                 [&](int64_t t, int64_t c) { return prior_.embedding(t, c, config_.width); });
  }
  constants_ready_ = true;
}

/// The bias of the prior's gates in a layer, or its part of the gradients.
Tensor Mechanisms::sums_bias(int64_t layer, const Tensor& flat) const {
  return view_of(flat, of_prior_[static_cast<size_t>(layer)].at(1));
}

FireBias Mechanisms::fire_of(int64_t layer) const {
  const int64_t H = config_.heads;
  const auto row = [layer](const Tensor& t) { return t.slice(0, layer, 1).reshaped({t.shape[1]}); };
  const auto of_heads = [layer, H](const Tensor& t) {
    return t.slice(0, layer, 1).reshaped({H, kFireSegments});
  };
  return {row(fire_.psi),        row(fire_.psi_dc),
          row(fire_.inverse),    fire_.ends.slice(0, layer, 1).reshaped({T_, kFireHidden}),
          of_heads(fire_.slope), of_heads(fire_.offset)};
}

void Mechanisms::attach(int64_t layer, Attention& a, const Tensor& gates) {
  if (fire_.psi) a.fire = fire_of(layer);
  if (tables_) {
    a.table = tables_.slice(0, shared_table_ ? 0 : layer, 1).reshaped({config_.heads, T_});
  }
  if (sums_) {
    a.sums = Tensor(sums_.data, sums_.dtype,
                    {a.first_key.shape[0], config_.heads, a.first_key.shape[1]});
    a.sum_bias = prior_.sum_bias;
    backend_.sums_forward(a.sums, of_prior(gates), sums_bias(layer, masters_));
  }
  if (!scale_rows_) return;
  if (scale_.longest) {
    const int64_t T = a.first_key.shape[1], most = window_ > 0 ? std::min(window_, T) : T;
    const int64_t longest = scale_.longest(scale_constants_);
    if (most > longest) {
      throw Error(ExitCode::config, "model.attention.scale",
                  "at most " + std::to_string(longest) + " visible keys, the learned table",
                  std::to_string(most),
                  "evaluate at shorter lengths, or train with a longer table");
    }
  }
  a.scale = Tensor(scale_rows_.data, scale_rows_.dtype,
                   {a.first_key.shape[0], config_.heads, a.first_key.shape[1]});
  a.scale_bias = scale_bias_;
  backend_.scale_forward(a.scale, a.first_key, scale_use(), theta(of_scale_, layer));
}

void Mechanisms::attach(AttentionGradients& g, int64_t B, int64_t T) const {
  g.dtable = dtable_;
  g.dfire = dfire_;
  for (const auto& [to, planned] : {std::pair{&g.dscale, &dscale_},
                                    {&g.dfire_u, &dfire_u_},
                                    {&g.dfire_psi, &dfire_psi_},
                                    {&g.dsums_key, &dsums_key_},
                                    {&g.dsums_query, &dsums_query_}}) {
    if (*planned) *to = Tensor(planned->data, planned->dtype, {B, config_.heads, T});
  }
}

void Mechanisms::backward(int64_t layer, const AttentionGradients& g, const Attention& a,
                          const Tensor& gates, const Tensor& dgates, const Tensor& gradients) {
  if (g.dsums_key) {
    backend_.sums_backward(of_prior(dgates), sums_bias(layer, gradients), g.dsums_key,
                           g.dsums_query, of_prior(gates), sums_bias(layer, masters_));
  }
  if (g.dfire) {
    backend_.fire_backward(dtheta(of_prior_, layer, gradients), g, a.positions,
                           theta(of_prior_, layer), fire_length_);
  }
  if (g.dtable && !of_prior_[static_cast<size_t>(layer)].empty()) {
    backend_.table_backward(dtheta(of_prior_, layer, gradients), g.dtable, prior_use(),
                            theta(of_prior_, layer));
  }
  if (g.dscale) {
    backend_.scale_backward(dtheta(of_scale_, layer, gradients), g.dscale, a.first_key, scale_use(),
                            theta(of_scale_, layer));
  }
}

}  // namespace bamtrain
