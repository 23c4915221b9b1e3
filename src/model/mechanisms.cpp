#include "model/mechanisms.h"

#include <algorithm>
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
                                 const std::vector<MechanismParameter>& list, const char* kind,
                                 int64_t layer) {
  for (const MechanismParameter& p : list) {
    parameters_.push_back(layout.find(mechanism_parameter_name(p, kind, layer)));
    require(parameters_.back() != nullptr, "a mechanism's parameter in the layout");
    const auto size = static_cast<size_t>(parameters_.back()->size);
    values_.emplace_back(size, 0.0);
    gradients_.emplace_back(size, 0.0);
    pointers_.push_back(values_.back().data());
    gradient_pointers_.push_back(gradients_.back().data());
  }
}

void MechanismValues::read(const Tensor& masters) {
  for (size_t p = 0; p < parameters_.size(); ++p) {
    const int64_t first = parameters_[p]->offset;
    for (size_t i = 0; i < values_[p].size(); ++i) {
      values_[p][i] = get(masters, first + static_cast<int64_t>(i));
      gradients_[p][i] = 0;
    }
  }
}

void MechanismValues::add_gradients(const Tensor& flat) const {
  for (size_t p = 0; p < parameters_.size(); ++p) {
    if (!parameters_[p]->trained) continue;
    for (size_t i = 0; i < gradients_[p].size(); ++i) {
      const int64_t at = parameters_[p]->offset + static_cast<int64_t>(i);
      put(flat, at, get(flat, at) + gradients_[p][i]);
    }
  }
}

Mechanisms::Mechanisms(const ModelConfig& config, const ParameterLayout& layout,
                       Dtype parameter_dtype)
    : config_(config),
      prior_(*find_prior(config.attention.prior.name)),
      scale_(*find_scale(config.attention.scale.name)),
      dtype_(parameter_dtype),
      scale_bias_(resolve_scale_bias(config, scale_)) {
  const PriorShape shape = prior_shape(config, 0);
  if (prior_.family == Family::table) {
    const auto parameters = prior_.parameters(config.attention.prior.options, shape);
    const bool shared = std::all_of(parameters.begin(), parameters.end(),
                                    [](const MechanismParameter& p) { return p.shared; });
    for (int64_t l = 0; l < (shared ? 1 : config.layers); ++l) {
      prior_values_.emplace_back(layout, parameters, "prior", l);
    }
  }
  if (scale_.value) {
    const auto parameters = scale_.parameters(config.attention.scale.options, shape);
    for (int64_t l = 0; l < config.layers; ++l) {
      scale_values_.emplace_back(layout, parameters, "scale", l);
    }
  }
}

MechanismValues& Mechanisms::prior_values(int64_t layer) {
  return prior_values_[static_cast<size_t>(prior_values_.size() > 1 ? layer : 0)];
}

void Mechanisms::plan(Arena& arena, int64_t B, int64_t T, bool training) {
  const int64_t L = config_.layers, H = config_.heads, half = config_.head_dim() / 2;
  T_ = T;
  fixed_tables_formed_ = false;
  if (prior_.family == Family::table) {
    const auto layers = static_cast<int64_t>(prior_values_.size());
    arena.add("mechanisms.tables", &tables_, dtype_, {layers, H, T});
    arena.add("mechanisms.exact", &exact_, Dtype::f64,
              {std::min<int64_t>(layers, max_threads()), H, T});
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
    if (training) {
      arena.add("mechanisms.dscale", &dscale_, dtype_, {B, H, T});
      arena.add("mechanisms.dscale_sums", &dscale_sums_, Dtype::f64, {H, T + 1});
    }
  }
}

void Mechanisms::refresh(const Tensor& masters) {
  const int64_t H = config_.heads, T = T_;
  if (tables_) {
    const int64_t layers = tables_.shape[0], at_a_time = exact_.shape[0];
    parallel_for(at_a_time, [&](int64_t slot) {
      double* exact = exact_.ptr<double>() + slot * H * T;
      for (int64_t layer = slot; layer < layers; layer += at_a_time) {
        MechanismValues& values = prior_values(layer);
        values.read(masters);
        prior_.table(values.theta(), H, T, exact);
        const Tensor out = tables_.slice(0, layer, 1);
        for (int64_t i = 0; i < H * T; ++i) put(out, i, exact[i]);
      }
    });
  }
  if (scale_by_length_) {
    parallel_for(config_.layers, [&](int64_t layer) {
      MechanismValues& values = scale_values_[static_cast<size_t>(layer)];
      values.read(masters);
      const Tensor out = scale_by_length_.slice(0, layer, 1);
      for (int64_t h = 0; h < H; ++h) {
        for (int64_t n = 1; n <= T; ++n) {
          put(out, h * (T + 1) + n,
              scale_.value(config_.attention.scale.options, values.theta(), h, n));
        }
      }
    });
  }
  if (!fixed_tables_formed_) form_fixed_tables();
}

/// Tables that depend on no parameter.
void Mechanisms::form_fixed_tables() {
  const int64_t T = T_, half = config_.head_dim() / 2;
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
  fixed_tables_formed_ = true;
}

void Mechanisms::attach(int64_t layer, Attention& a) {
  const int64_t H = config_.heads;
  if (tables_) a.table = tables_.slice(0, tables_.shape[0] > 1 ? layer : 0, 1).reshaped({H, T_});
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
  if (g.dtable && !prior_values(layer).empty()) {
    MechanismValues& values = prior_values(layer);
    values.read(masters);
    backward_prior(values, g.dtable);
    values.add_gradients(gradients);
  }
  if (g.dscale) {
    MechanismValues& values = scale_values_[static_cast<size_t>(layer)];
    values.read(masters);
    backward_scale(values, g.dscale, a);
    values.add_gradients(gradients);
  }
}

void Mechanisms::backward_prior(MechanismValues& values, const Tensor& dtable) {
  const int64_t H = config_.heads;
  double* exact = exact_.ptr<double>();
  for (int64_t i = 0; i < H * T_; ++i) exact[i] = get(dtable, i);
  prior_.table_adjoint(values.theta(), H, T_, exact, values.gradients());
}

void Mechanisms::backward_scale(MechanismValues& values, const Tensor& dscale, const Attention& a) {
  const int64_t H = config_.heads, B = a.first_key.shape[0], T = a.first_key.shape[1];
  const int32_t* first = a.first_key.ptr<int32_t>();
  parallel_for(H, [&](int64_t h) {
    // t depends on (h, n) alone: dt is summed by n first, in order.
    double* by_length = dscale_sums_.ptr<double>() + h * (T_ + 1);
    std::fill_n(by_length, T + 1, 0.0);
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t i = 0; i < T; ++i) {
        by_length[i - first[b * T + i] + 1] += get(dscale, (b * H + h) * T + i);
      }
    }
    for (int64_t n = 1; n <= T; ++n) {
      scale_.accumulate(config_.attention.scale.options, values.theta(), h, n, by_length[n],
                        values.gradients());
    }
  });
}

}  // namespace bamtrain
