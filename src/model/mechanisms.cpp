#include "model/mechanisms.h"

#include <cmath>
#include <functional>

#include "core/element.h"

namespace bamtrain {

namespace {

bool resolve_scale_bias(const ModelConfig& c, const ScaleInfo& scale) {
  const Options& o = c.attention.scale.options;
  if (o.has("scale_bias") && o.text("scale_bias") != "auto") return o.text("scale_bias") == "true";
  return scale.default_scale_bias(c.attention.prior.name);
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

Mechanisms::Mechanisms(const ModelConfig& config, const ParameterLayout& layout, Backend& backend)
    : config_(config),
      layout_(layout),
      backend_(backend),
      prior_(*find_prior(config.attention.prior.name)),
      scale_(*find_scale(config.attention.scale.name)),
      scale_bias_(resolve_scale_bias(config, scale_)) {
  const PriorShape shape = prior_shape(config, 0);
  std::vector<MechanismParameter> of_prior;
  if (prior_.family != Family::embedding) {
    of_prior = prior_.parameters(config.attention.prior.options, shape);
  }
  const std::vector<MechanismParameter> of_scale =
      scale_.parameters(config.attention.scale.options, shape);
  prior_names_ = names(of_prior, "prior");
  scale_names_ = names(of_scale, "scale");
  shared_table_ = true;
  for (const MechanismParameter& p : of_prior) shared_table_ &= p.shared;
  theta_.reserve(std::max(of_prior.size(), of_scale.size()));
  dtheta_.reserve(theta_.capacity());
}

Mechanisms::Names Mechanisms::names(const std::vector<MechanismParameter>& list,
                                    const char* kind) const {
  Names out(static_cast<size_t>(config_.layers));
  for (int64_t l = 0; l < config_.layers; ++l) {
    for (const MechanismParameter& p : list) {
      out[static_cast<size_t>(l)].push_back(
          (p.shared ? std::string("model.") : layer_prefix(l) + "self_attn.") + kind + "." +
          p.name);
    }
  }
  return out;
}

std::span<const Tensor> Mechanisms::views(const Tensor& flat, const std::vector<std::string>& names,
                                          bool trained_only, std::vector<Tensor>& out) const {
  out.clear();
  for (const std::string& name : names) {
    const bool wanted = !trained_only || layout_.find(name)->trained;
    out.push_back(wanted ? layout_.view(flat, name) : Tensor());
  }
  return out;
}

void Mechanisms::plan(Arena& arena, int64_t B, int64_t T, bool training) {
  const int64_t L = config_.layers, H = config_.heads, half = config_.head_dim() / 2;
  const Dtype P = backend_.parameter_dtype();
  T_ = T;
  if (prior_.family == Family::table) {
    arena.add("mechanisms.tables", &tables_, P, {shared_table_ ? 1 : L, H, T});
    if (training) arena.add("mechanisms.dtable", &dtable_, P, {H, T});
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
      backend_.table_forward(
          tables_.slice(0, layer, 1).reshaped({config_.heads, T_}), prior_,
          views(masters, prior_names_[static_cast<size_t>(layer)], false, theta_));
    }
  }
  if (!constants_ready_) upload_constants();
}

/// What does not depend on any parameter.
void Mechanisms::upload_constants() {
  if (cosine_) {
    const std::vector<double> frequency =
        prior_.inverse_frequencies(config_.attention.prior.options, config_.head_dim());
    const auto angle = [&](int64_t t, int64_t c) {
      return static_cast<double>(t) * frequency[static_cast<size_t>(c)];
    };
    upload_table(backend_, cosine_, [&](int64_t t, int64_t c) { return std::cos(angle(t, c)); });
    upload_table(backend_, sine_, [&](int64_t t, int64_t c) { return std::sin(angle(t, c)); });
  }
  if (position_table_) {
    upload_table(backend_, position_table_,
                 [&](int64_t t, int64_t c) { return prior_.embedding(t, c, config_.width); });
  }
  constants_ready_ = true;
}

void Mechanisms::attach(int64_t layer, Attention& a) {
  if (tables_) {
    a.table = tables_.slice(0, shared_table_ ? 0 : layer, 1).reshaped({config_.heads, T_});
  }
  if (!scale_rows_) return;
  a.scale = Tensor(scale_rows_.data, scale_rows_.dtype,
                   {a.first_key.shape[0], config_.heads, a.first_key.shape[1]});
  a.scale_bias = scale_bias_;
  backend_.scale_forward(a.scale, a.first_key, scale_, config_.attention.scale.options,
                         views(masters_, scale_names_[static_cast<size_t>(layer)], false, theta_));
}

void Mechanisms::attach(AttentionGradients& g) const {
  g.dtable = dtable_;
  g.dscale = dscale_;
}

void Mechanisms::backward(int64_t layer, const AttentionGradients& g, const Attention& a,
                          const Tensor& gradients) {
  const auto l = static_cast<size_t>(layer);
  if (g.dtable && !prior_names_[l].empty()) {
    backend_.table_backward(views(gradients, prior_names_[l], true, dtheta_), g.dtable, prior_,
                            views(masters_, prior_names_[l], false, theta_));
  }
  if (g.dscale) {
    backend_.scale_backward(views(gradients, scale_names_[l], true, dtheta_), g.dscale, a.first_key,
                            scale_, config_.attention.scale.options,
                            views(masters_, scale_names_[l], false, theta_));
  }
}

}  // namespace bamtrain
