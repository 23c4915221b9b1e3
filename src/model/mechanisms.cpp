#include "model/mechanisms.h"

#include <cmath>

#include "core/element.h"
#include "core/parallel.h"

namespace bamtrain {

namespace {

bool resolve_scale_bias(const ModelConfig& c, const ScaleInfo& scale) {
  const Options& o = c.attention.scale.options;
  if (o.has("scale_bias") && o.text("scale_bias") != "auto") return o.text("scale_bias") == "true";
  return scale.default_scale_bias(c.attention.prior.name);
}

}  // namespace

MechanismValues::MechanismValues(const ParameterLayout& layout,
                                 const std::vector<std::string>& names, const Tensor& masters)
    : layout_(layout), names_(names) {
  for (const std::string& name : names_) {
    const Tensor x = layout.view(masters, name);
    std::vector<double> values(static_cast<size_t>(x.size()));
    for (int64_t i = 0; i < x.size(); ++i) values[static_cast<size_t>(i)] = get(x, i);
    gradients_.emplace_back(values.size(), 0.0);
    values_.push_back(std::move(values));
  }
  for (size_t p = 0; p < names_.size(); ++p) {
    pointers_.push_back(values_[p].data());
    gradient_pointers_.push_back(gradients_[p].data());
  }
}

void MechanismValues::add_gradients(const Tensor& flat) const {
  for (size_t p = 0; p < names_.size(); ++p) {
    if (!layout_.find(names_[p])->trained) continue;
    const Tensor g = layout_.view(flat, names_[p]);
    for (int64_t i = 0; i < g.size(); ++i) {
      put(g, i, get(g, i) + gradients_[p][static_cast<size_t>(i)]);
    }
  }
}

Mechanisms::Mechanisms(const ModelConfig& config, const ParameterLayout& layout,
                       Dtype parameter_dtype)
    : config_(config),
      layout_(layout),
      prior_(*find_prior(config.attention.prior.name)),
      scale_(*find_scale(config.attention.scale.name)),
      dtype_(parameter_dtype),
      scale_bias_(resolve_scale_bias(config, scale_)) {
  const PriorShape shape = prior_shape(config, 0);
  if (prior_.family != Family::embedding) {
    prior_parameters_ = prior_.parameters(config.attention.prior.options, shape);
  }
  scale_parameters_ = scale_.parameters(config.attention.scale.options, shape);
  shared_table_ = true;
  for (const MechanismParameter& p : prior_parameters_) shared_table_ &= p.shared;
}

std::vector<std::string> Mechanisms::names(const std::vector<MechanismParameter>& list,
                                           const char* kind, int64_t layer) const {
  std::vector<std::string> out;
  for (const MechanismParameter& p : list) {
    out.push_back((p.shared ? std::string("model.") : layer_prefix(layer) + "self_attn.") + kind +
                  "." + p.name);
  }
  return out;
}

void Mechanisms::plan(Arena& arena, int64_t B, int64_t T, bool training) {
  const int64_t L = config_.layers, H = config_.heads, half = config_.head_dim() / 2;
  T_ = T;
  if (prior_.family == Family::table) {
    arena.add("mechanisms.tables", &tables_, dtype_, {shared_table_ ? 1 : L, H, T});
    if (training) arena.add("mechanisms.dtable", &dtable_, dtype_, {H, T});
  }
  if (prior_.family == Family::rotary) {
    arena.add("mechanisms.cosine", &cosine_, dtype_, {T, half});
    arena.add("mechanisms.sine", &sine_, dtype_, {T, half});
  }
  if (sinusoidal()) arena.add("mechanisms.positions", &position_table_, dtype_, {T, config_.width});
  if (scale_.value) {
    arena.add("mechanisms.scale_by_length", &scale_by_length_, dtype_, {L, H, T + 1});
    arena.add("mechanisms.scale", &scale_rows_, dtype_, {B, H, T});
    if (training) arena.add("mechanisms.dscale", &dscale_, dtype_, {B, H, T});
  }
}

void Mechanisms::refresh(const Tensor& masters) {
  const int64_t H = config_.heads, T = T_, half = config_.head_dim() / 2;
  if (tables_) {
    parallel_for(tables_.shape[0], [&](int64_t layer) {
      const MechanismValues values(layout_, names(prior_parameters_, "prior", layer), masters);
      std::vector<double> table(static_cast<size_t>(H * T));
      prior_.table(values.theta(), H, T, table.data());
      const Tensor out = tables_.slice(0, layer, 1);
      for (int64_t i = 0; i < H * T; ++i) put(out, i, table[static_cast<size_t>(i)]);
    });
  }
  if (scale_by_length_) {
    parallel_for(config_.layers, [&](int64_t layer) {
      const MechanismValues values(layout_, names(scale_parameters_, "scale", layer), masters);
      const Tensor out = scale_by_length_.slice(0, layer, 1);
      for (int64_t h = 0; h < H; ++h) {
        for (int64_t n = 1; n <= T; ++n) {
          put(out, h * (T + 1) + n,
              scale_.value(config_.attention.scale.options, values.theta(), h, n));
        }
      }
    });
  }
  if (cosine_) {
    const std::vector<double> frequency =
        prior_.inverse_frequencies(config_.attention.prior.options, config_.head_dim());
    for (int64_t t = 0; t < T; ++t) {
      for (int64_t c = 0; c < half; ++c) {
        const double angle = static_cast<double>(t) * frequency[static_cast<size_t>(c)];
        put(cosine_, t * half + c, std::cos(angle));
        put(sine_, t * half + c, std::sin(angle));
      }
    }
  }
  if (position_table_) {
    for (int64_t t = 0; t < T; ++t) {
      for (int64_t c = 0; c < config_.width; ++c) {
        put(position_table_, t * config_.width + c, prior_.embedding(t, c, config_.width));
      }
    }
  }
}

void Mechanisms::attach(int64_t layer, Attention& a) {
  const int64_t H = config_.heads;
  if (tables_) a.table = tables_.slice(0, shared_table_ ? 0 : layer, 1).reshaped({H, T_});
  if (!scale_rows_) return;
  const int64_t B = a.first_key.shape[0], T = a.first_key.shape[1];
  const Tensor by_length = scale_by_length_.slice(0, layer, 1);
  const int32_t* first = a.first_key.ptr<int32_t>();
  a.scale = Tensor(scale_rows_.data, dtype_, {B, H, T});
  a.scale_bias = scale_bias_;
  parallel_for(B * H, [&](int64_t row) {
    const int64_t b = row / H, h = row % H;
    for (int64_t i = 0; i < T; ++i) {
      const int64_t n = i - first[b * T + i] + 1;
      put(a.scale, row * T + i, get(by_length, h * (T_ + 1) + n));
    }
  });
}

void Mechanisms::attach(AttentionGradients& g) const {
  g.dtable = dtable_;
  g.dscale = dscale_;
}

void Mechanisms::backward(int64_t layer, const AttentionGradients& g, const Attention& a,
                          const Tensor& masters, const Tensor& gradients) {
  const int64_t H = config_.heads;
  if (g.dtable && !prior_parameters_.empty()) {
    MechanismValues values(layout_, names(prior_parameters_, "prior", layer), masters);
    std::vector<double> dtable(static_cast<size_t>(H * T_));
    for (int64_t i = 0; i < H * T_; ++i) dtable[static_cast<size_t>(i)] = get(g.dtable, i);
    prior_.table_adjoint(values.theta(), H, T_, dtable.data(), values.gradients());
    values.add_gradients(gradients);
  }
  if (g.dscale) {
    MechanismValues values(layout_, names(scale_parameters_, "scale", layer), masters);
    const int64_t B = a.first_key.shape[0], T = a.first_key.shape[1];
    const int32_t* first = a.first_key.ptr<int32_t>();
    parallel_for(H, [&](int64_t h) {
      // t depends on (h, n) alone: dt is summed by n first, in order.
      std::vector<double> by_length(static_cast<size_t>(T + 1), 0.0);
      for (int64_t b = 0; b < B; ++b) {
        for (int64_t i = 0; i < T; ++i) {
          const int64_t n = i - first[b * T + i] + 1;
          by_length[static_cast<size_t>(n)] += get(g.dscale, (b * H + h) * T + i);
        }
      }
      for (int64_t n = 1; n <= T; ++n) {
        scale_.accumulate(config_.attention.scale.options, values.theta(), h, n,
                          by_length[static_cast<size_t>(n)], values.gradients());
      }
    });
    values.add_gradients(gradients);
  }
}

}  // namespace bamtrain
