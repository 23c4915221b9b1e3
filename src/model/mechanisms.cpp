#include "model/mechanisms.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/element.h"
#include "priors/fire.h"

namespace bamtrain {

namespace {

/// dst (rows, columns) P = f(row, column).
void upload_table(Backend& backend, const Tensor& dst,
                  const std::function<double(int64_t, int64_t)>& f) {
  std::vector<char> bytes(static_cast<size_t>(dst.bytes()));
  const Tensor host(bytes.data(), dst.dtype, {dst.shape[0], dst.shape[1]});
  for (int64_t i = 0; i < dst.size(); ++i) put(host, i, f(i / dst.shape[1], i % dst.shape[1]));
  backend.upload(dst, host.data);
}

}  // namespace

int64_t layer_window(const ModelConfig& config, int64_t layer, int64_t training_length) {
  const PriorChoice& prior = config.attention.prior.of(layer);
  return prior.info().window_of(prior.options, training_length, config.attention.window);
}

bool scale_bias(const ModelConfig& config, int64_t layer) {
  const Options& options = config.attention.scale.options;
  if (options.has("scale_bias") && options.text("scale_bias") != "auto") {
    return options.text("scale_bias") == "true";
  }
  const ScaleInfo& scale = config.attention.scale.info();
  return scale.default_scale_bias &&
         scale.default_scale_bias(config.attention.prior.of(layer).name());
}

Mechanisms::Mechanisms(const ModelConfig& config, int64_t training_length,
                       const ParameterLayout& layout, Backend& backend)
    : config_(config),
      backend_(backend),
      scale_(config.attention.scale.info()),
      training_length_(training_length) {
  const ModelShape shape = config.shape(training_length);
  for (int64_t l = 0; l < config.layers; ++l) add_prior(l, shape, layout);
  if (!scale_.is<std::monostate>()) {
    const auto parameters = config.attention.scale.parameters(shape);
    for (int64_t l = 0; l < config.layers; ++l) {
      of_scale_.push_back(find(parameters, "scale", l, layout));
    }
    scale_constants_ = scale_.constants_of(config.attention.scale.options, shape);
  }
  const NormalizerChoice& normalizer = config.attention.normalizer;
  if (!normalizer) return;
  normalizer_ = normalizer.info().form_of(normalizer.options);
  for (int64_t l = 0; l < config.layers; ++l) {
    of_normalizer_.push_back(find(normalizer.parameters(shape), "normalizer", l, layout));
  }
}

void Mechanisms::add_prior(int64_t layer, const ModelShape& shape, const ParameterLayout& layout) {
  const PriorConfig& all = config_.attention.prior;
  const PriorChoice& choice = all.of(layer);
  LayerPrior p{choice.info(), choice.options};
  const MechanismParameters parameters = choice.parameters(shape);
  const bool in_layer = !p.info.is<EmbeddingFamily>();
  of_prior_.push_back(in_layer ? find(parameters, "prior", layer, layout) : Parameters());
  const TableShape table = table_shape(p.info, p.options, shape, training_length_);
  p.form = table.form;
  p.gain = table.gain;
  if (const auto* const fire = p.info.as<FireFamily>()) {
    p.fire_length = fire->threshold_length(p.options, training_length_);
  }
  if (const auto* const sums = p.info.as<SumsFamily>()) {
    p.content_scale = sums->content_scale(p.options, shape);
  }
  if (const auto* const rotary = p.info.as<RotaryFamily>()) {
    const int64_t known = rotary->randomized_positions(p.options, training_length_);
    p.randomized = known > 0;
    randomized_positions_ = std::max(randomized_positions_, known);
  }
  if (p.info.first_scaled_head) p.first_scaled_head = p.info.first_scaled_head(config_.heads);
  p.scale_bias = bamtrain::scale_bias(config_, layer);

  const int64_t window = layer_window(config_, layer, training_length_);
  const auto at = std::find(windows_.begin(), windows_.end(), window);
  p.window = at - windows_.begin();
  if (at == windows_.end()) windows_.push_back(window);

  p.part = std::count_if(priors_.begin(), priors_.end(), [&p](const LayerPrior& q) {
    return q.owner && q.info.family.index() == p.info.family.index();
  });
  const bool shared = std::all_of(parameters.begin(), parameters.end(),
                                  [](const MechanismParameter& q) { return q.shared; });
  for (int64_t l = 0; shared && p.owner && l < layer; ++l) {
    if (!(all.of(l) == choice)) continue;
    p.part = prior(l).part;
    p.owner = false;
  }
  priors_.push_back(p);
}

Mechanisms::Parameters Mechanisms::find(const MechanismParameters& list, const char* kind,
                                        int64_t layer, const ParameterLayout& layout) const {
  Parameters out;
  for (const MechanismParameter& p : list) {
    if (p.gate) continue;
    out.push_back(layout.find(mechanism_parameter_name(p, kind, layer)));
    require(out.back() != nullptr, "a mechanism's parameter in the layout");
  }
  return out;
}

int64_t Mechanisms::largest_parameter() const {
  int64_t most = 0;
  for (const auto* of : {&of_prior_, &of_scale_, &of_normalizer_}) {
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

void Mechanisms::plan(Arena& arena, int64_t B, int64_t T, ModelUse use) {
  const bool training = use == ModelUse::training;
  const int64_t H = config_.heads, half = config_.head_dim() / 2;
  const Dtype P = backend_.parameter_dtype();
  T_ = T;
  remembers_ = use == ModelUse::generation;
  require(!remembers_ || (B == 1 && backend_.memory().on_host()), "one text, in host memory");
  check_normalizer(use);
  if (const int64_t n = parts<TableFamily>(); n > 0) {
    arena.add("mechanisms.tables", &tables_, P, {n, H, T});
    if (training) arena.add("mechanisms.dtable", &dtable_, P, {H, T});
  }
  if (has<SumsFamily>()) {
    const int64_t kept = use == ModelUse::generation ? config_.layers : B;
    arena.add("mechanisms.sums", &sums_, Dtype::f64, {kept, H, T});
    if (training) arena.add("mechanisms.dsums", &dsums_, P, {B, H, T});
  }
  if (const int64_t n = parts<FireFamily>(); n > 0) {
    for (Tensor* t : {&fire_.psi, &fire_.psi_dc, &fire_.inverse}) {
      arena.add("mechanisms.fire", t, P, {n, T});
    }
    arena.add("mechanisms.fire_ends", &fire_.ends, Dtype::i32, {n, T, kFireHidden});
    arena.add("mechanisms.fire", &fire_.slope, P, {n, H, kFireSegments});
    arena.add("mechanisms.fire", &fire_.offset, P, {n, H, kFireSegments});
    if (training) {
      arena.add("mechanisms.dfire", &dfire_, Dtype::f64, {H, kFireSegments, 2});
      arena.add("mechanisms.dfire_u", &dfire_u_, P, {B, H, T});
      arena.add("mechanisms.dfire_psi", &dfire_psi_, P, {B, H, T});
    }
  }
  if (const int64_t n = parts<RotaryFamily>(); n > 0) {
    const int64_t known = randomized_positions_;
    if (known > 0 && T > known) {
      throw Error(ExitCode::config, "model.attention.prior.randomized_length",
                  "at most " + std::to_string(known) + " positions, those that training draws from",
                  std::to_string(T), "evaluate at shorter lengths, or train with more positions");
    }
    const int64_t rows = training && known > 0 ? known : T;
    arena.add("mechanisms.cosine", &cosine_, P, {n, rows, half});
    arena.add("mechanisms.sine", &sine_, P, {n, rows, half});
  }
  if (sinusoidal()) arena.add("mechanisms.positions", &position_table_, P, {T, config_.width});
  require(!training || !scale_.evaluation_only, "a scale that trains");
  if (!scale_.is<std::monostate>()) {
    arena.add("mechanisms.scale", &scale_rows_, P, {B, H, T});
    if (training) arena.add("mechanisms.dscale", &dscale_, P, {B, H, T});
  }
  if (normalizer_.learned) {
    arena.add("mechanisms.alphas", &alphas_, P, {config_.layers, H});
    if (training) arena.add("mechanisms.dalpha", &dalpha_, P, {B, H, T});
  }
}

void Mechanisms::check_normalizer(ModelUse use) const {
  const std::string name = config_.attention.normalizer ? config_.attention.normalizer.name() : "";
  if (normalizer_.kind != NormalizerKind::softmax && !backend_.memory().on_host()) {
    throw Error(ExitCode::config, "model.attention.normalizer", "softmax on a GPU", name,
                "set device to cpu, or choose softmax");
  }
  const TopkKeys& keys = normalizer_.keys;
  if (use == ModelUse::generation && normalizer_.kind == NormalizerKind::topk && keys.number == 0 &&
      keys.of_sequence) {
    throw Error(ExitCode::config, "model.attention.normalizer.of",
                "\"row\" with k \"n/2\": the length of a text that grows is not known",
                "\"sequence\"", "--set model.attention.normalizer.of=row");
  }
}

void Mechanisms::check_length(int64_t T) const {
  const auto* const by_length = scale_.as<LengthKind>();
  if (!by_length || !by_length->longest) return;
  const int64_t longest = by_length->longest(scale_constants_);
  for (const int64_t window : windows_) {
    const int64_t most = window > 0 ? std::min(window, T) : T;
    if (most <= longest) continue;
    throw Error(ExitCode::config, "model.attention.scale.lengths",
                "at most " + std::to_string(longest) + " visible keys, the learned table",
                std::to_string(most), "use shorter sequences, or train with a longer table");
  }
}

void Mechanisms::refresh(const Tensor& masters) {
  masters_ = masters;
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    const LayerPrior& p = prior(layer);
    if (!p.owner) continue;
    if (p.info.is<TableFamily>()) {
      backend_.table_forward(table_of(p), prior_use(layer), theta(of_prior_, layer));
    } else if (p.info.is<FireFamily>()) {
      backend_.fire_forward(fire_of(p), theta(of_prior_, layer), p.fire_length);
    }
  }
  for (int64_t layer = 0; normalizer_.learned && layer < config_.layers; ++layer) {
    backend_.alpha_forward(alphas_of(layer), theta(of_normalizer_, layer)[0]);
  }
  if (!constants_ready_) upload_constants();
}

/// What does not depend on any parameter.
void Mechanisms::upload_constants() {
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    const LayerPrior& p = prior(layer);
    const auto* const rotary = p.info.as<RotaryFamily>();
    if (!p.owner || !rotary) continue;
    const std::vector<double> frequency =
        rotary->inverse_frequencies(p.options, config_.head_dim(), training_length_);
    const double amplitude = rotary->amplitude(p.options);
    const Rotation r = rotation(layer);
    const auto angle = [&](int64_t t, int64_t c) {
      return static_cast<double>(t) * frequency[static_cast<size_t>(c)];
    };
    upload_table(backend_, r.cosine,
                 [&](int64_t t, int64_t c) { return amplitude * std::cos(angle(t, c)); });
    upload_table(backend_, r.sine,
                 [&](int64_t t, int64_t c) { return amplitude * std::sin(angle(t, c)); });
  }
  if (position_table_) {
    const auto* const embedding = prior(0).info.as<EmbeddingFamily>();
    upload_table(backend_, position_table_, [&](int64_t t, int64_t c) {
      return embedding->value(prior(0).options, t, c, config_.width);
    });
  }
  constants_ready_ = true;
}

/// The bias of the prior's gates in a layer, or its part of the gradients.
Tensor Mechanisms::sums_bias(int64_t layer, const Tensor& flat) const {
  return view_of(flat, of_prior_[static_cast<size_t>(layer)].at(0));
}

Tensor Mechanisms::alphas_of(int64_t layer) const {
  return alphas_.slice(0, layer, 1).reshaped({config_.heads});
}

Tensor Mechanisms::table_of(const LayerPrior& p) const {
  return tables_.slice(0, p.part, 1).reshaped({config_.heads, T_});
}

FireTables Mechanisms::fire_of(const LayerPrior& p) const {
  const int64_t H = config_.heads, n = p.part;
  const auto row = [n](const Tensor& t) { return t.slice(0, n, 1).reshaped({t.shape[1]}); };
  const auto of_heads = [n, H](const Tensor& t) {
    return t.slice(0, n, 1).reshaped({H, kFireSegments});
  };
  return {row(fire_.psi),        row(fire_.psi_dc),
          row(fire_.inverse),    fire_.ends.slice(0, n, 1).reshaped({T_, kFireHidden}),
          of_heads(fire_.slope), of_heads(fire_.offset)};
}

Rotation Mechanisms::rotation(int64_t layer) const {
  const LayerPrior& p = prior(layer);
  if (!p.info.is<RotaryFamily>()) return {};
  const auto of_part = [&p](const Tensor& t) {
    return t.slice(0, p.part, 1).reshaped({t.shape[1], t.shape[2]});
  };
  return {of_part(cosine_), of_part(sine_), p.randomized};
}

void Mechanisms::attach(int64_t layer, Attention& a, const Tensor& gates, const Tensor& positions) {
  const LayerPrior& p = prior(layer);
  a.content_scale = p.content_scale;
  a.normalizer = {normalizer_, normalizer_.learned ? alphas_of(layer) : Tensor()};
  if (p.info.is<FireFamily>()) a.bias = FireBias{fire_of(p), positions};
  if (p.info.is<TableFamily>()) a.bias = TableBias{table_of(p)};
  if (p.info.is<SumsFamily>()) form_sums(layer, a, gates);
  if (!scale_rows_) return;
  const Tensor scale(scale_rows_.data, scale_rows_.dtype,
                     {a.first_key.shape[0], config_.heads, a.first_key.shape[1]});
  form_scale(layer, scale, a, gates);
  a.scale = {scale, p.scale_bias};
}

void Mechanisms::form_sums(int64_t layer, Attention& a, const Tensor& gates) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = config_.heads, past = a.past();
  Tensor sums(sums_.data, sums_.dtype, {B, H, T});
  if (remembers_) sums = sums_.slice(0, layer, B).slice(2, 0, past + T);
  backend_.sums_forward(sums.slice(2, past, T), of_prior(layer, gates), sums_bias(layer, masters_));
  a.bias = SumsBias{sums, prior(layer).info.as<SumsFamily>()->bias};
  if (past == 0) return;
  for (int64_t h = 0; h < H; ++h) {
    double* S = sums.ptr<double>() + h * sums.stride[1] + past;
    for (int64_t t = 0; t < T; ++t) S[t] += S[-1];
  }
}

void Mechanisms::form_scale(int64_t layer, const Tensor& scale, const Attention& a,
                            const Tensor& gates) {
  if (scale_.is<LengthKind>()) {
    backend_.scale_forward(scale, a.first_key, scale_use(layer), theta(of_scale_, layer));
  } else if (scale_.is<AdaptiveKind>()) {
    backend_.adaptive_scale_forward(scale, of_scale(layer, gates), a.first_key, scale_use(layer),
                                    theta(of_scale_, layer));
  } else if (scale_.is<EntropyKind>()) {
    backend_.attention_entropy(scale, a);
    backend_.entropy_scale(scale, scale, prior(layer).first_scaled_head);
  }
}

void Mechanisms::attach(int64_t layer, AttentionGradients& g, int64_t B, int64_t T) const {
  const auto of_rows = [&](const Tensor& planned) {
    return planned ? Tensor(planned.data, planned.dtype, {B, config_.heads, T}) : Tensor();
  };
  const PriorInfo& p = prior(layer).info;
  g.dscale = of_rows(dscale_);
  g.dalpha = of_rows(dalpha_);
  if (p.is<TableFamily>()) g.bias = TableBiasGradients{dtable_};
  if (p.is<SumsFamily>()) g.bias = SumsBiasGradients{of_rows(dsums_)};
  if (p.is<FireFamily>()) {
    g.bias = FireBiasGradients{dfire_, of_rows(dfire_u_), of_rows(dfire_psi_)};
  }
}

void Mechanisms::backward(int64_t layer, const AttentionGradients& g, const Attention& a,
                          const Tensor& gates, const Tensor& dgates, const Tensor& gradients) {
  if (const auto* of_bias = std::get_if<SumsBiasGradients>(&g.bias)) {
    backend_.sums_backward(of_prior(layer, dgates), sums_bias(layer, gradients), of_bias->dsums,
                           of_prior(layer, gates), sums_bias(layer, masters_));
  }
  if (const auto* of_bias = std::get_if<FireBiasGradients>(&g.bias)) {
    backend_.fire_backward(dtheta(of_prior_, layer, gradients), *of_bias,
                           std::get<FireBias>(a.bias).positions, theta(of_prior_, layer),
                           prior(layer).fire_length);
  }
  const auto* of_table = std::get_if<TableBiasGradients>(&g.bias);
  if (of_table && !of_prior_[static_cast<size_t>(layer)].empty()) {
    backend_.table_backward(dtheta(of_prior_, layer, gradients), of_table->dtable, prior_use(layer),
                            theta(of_prior_, layer));
  }
  if (g.dscale && scale_.is<AdaptiveKind>()) {
    backend_.adaptive_scale_backward(of_scale(layer, dgates), dtheta(of_scale_, layer, gradients),
                                     g.dscale, of_scale(layer, gates), a.first_key,
                                     scale_use(layer), theta(of_scale_, layer));
  } else if (g.dscale) {
    backend_.scale_backward(dtheta(of_scale_, layer, gradients), g.dscale, a.first_key,
                            scale_use(layer), theta(of_scale_, layer));
  }
  if (g.dalpha) {
    backend_.alpha_backward(dtheta(of_normalizer_, layer, gradients)[0], g.dalpha,
                            theta(of_normalizer_, layer)[0]);
  }
}

}  // namespace bamtrain
