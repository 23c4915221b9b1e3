#include "kernels/attention_cases.h"

#include <algorithm>
#include <sstream>

#include "core/arena.h"
#include "kernels/attention_content.h"
#include "ops/cuda/mechanisms.h"
#include "ops/reference/reference.h"
#include "priors/fire.h"
#include "priors/softplus.h"

namespace bamtrain::test {

const std::vector<AttentionCase> kAttentionCases = {{1, 1, 2, 1},
                                                    {2, 64, 2, 2},
                                                    {2, 130, 4, 2, true},
                                                    {1, 200, 2, 1, false, 70},
                                                    {1, 161, 3, 1, true, 33},
                                                    {1, 129, 1, 1, false, 1},
                                                    {1, 257, 2, 2, true}};

std::string text_of(const AttentionCase& c, int D, const AttentionForm& form) {
  std::ostringstream text;
  text << "D " << D << " bias " << name_of(form.bias) << " scale " << form.scale << " of the bias "
       << form.scale_bias << " content scale " << form.content_scale << " B " << c.B << " T " << c.T
       << " H " << c.H << " K " << c.K << " documents " << c.documents << " window " << c.window
       << " causal " << c.causal << " normalizer " << static_cast<int>(form.normalizer.kind)
       << " alpha " << form.normalizer.alpha << " k " << form.normalizer.keys.number;
  if (form.mix) text << " mix " << static_cast<int>(*form.mix) << " hidden " << form.mix_hidden;
  return text.str();
}

namespace {

FireValues fire_values(const AttentionCase& c) {
  constexpr double kC = 0.3;
  FireValues f;
  for (int t = 0; t < c.T; ++t) {
    f.psi.push_back(as<float>(std::log1p(kC * t)));
    f.psi_dc.push_back(as<float>(t / (kC * t + 1)));
    const double N = std::log1p(kC * std::max(t, 20)) + 1e-6;
    f.inverse.push_back(as<float>(1 / N));
    for (int k = 0; k < kFireHidden; ++k) {
      const double kink = k < 20 ? 0.05 * (k - k % 5 / 4) : INFINITY;  // every fifth is repeated
      const double d = std::ceil(std::expm1(kink * N) / kC);
      f.ends.push_back(static_cast<int32_t>(std::min<double>(d, c.T)));
    }
  }
  const auto lines = static_cast<size_t>(c.H) * kFireSegments;
  f.slope = normal<float>("slope", lines, 0.5);
  f.offset = normal<float>("offset", lines, 0.5);
  return f;
}

}  // namespace

template <class A>
AttentionValues attention_values(const AttentionCase& c, int D) {
  const auto B = static_cast<size_t>(c.B), T = static_cast<size_t>(c.T);
  const auto H = static_cast<size_t>(c.H), K = static_cast<size_t>(c.K), d = static_cast<size_t>(D);
  AttentionValues x;
  x.qkv = normal<A>("qkv", B * T * (H + 2 * K) * d);
  x.dout = normal<A>("dout", B * T * H * d);
  for (size_t h = 0; h < H; ++h) {
    for (int d = c.causal ? 0 : 1 - c.T; d < c.T; ++d) {
      const double head = static_cast<double>(h), slope = d < 0 ? 0.07 : 0.1;
      x.table.push_back(as<float>(-slope * std::sqrt(std::abs(d)) * (1.0 + head)));
    }
  }
  for (size_t n = 0; n < B * H * T; ++n) {
    x.scale.push_back(as<float>(0.5 + 0.3 * static_cast<double>(n % 7)));
  }
  for (size_t h = 0; h < H; ++h) x.alphas.push_back(0.25 * static_cast<double>(h));
  // Rises by about 0.2 per key, far from 0.
  const Doubles rise = normal<float>("rise", B * H * T, 0.5);
  for (size_t n = 0; n < B * H * T; ++n) {
    const double before = n % T == 0 ? 1e5 : x.sums.back();
    x.sums.push_back(before + std::exp(rise[n] - 2));
  }
  x.fire = fire_values(c);
  for (size_t n = 0; n < std::size(kBiasForms); ++n) {
    Bias any = bias_of(static_cast<BiasForm>(n));
    const auto add = [&x, D](const std::string& name, Tensor*, Dtype dtype,
                             std::initializer_list<int64_t> dims) {
      if (dtype == Dtype::i32) return;
      int64_t size = 1;
      for (int64_t d : dims) size *= d;
      // r, u and w are scaled so that their bias is as large as s.
      const double deviation = dtype == Dtype::f32 ? 0.5 : 1;
      Doubles& values = x.others[name] = normal<float>(name, static_cast<size_t>(size), deviation);
      if (dtype == Dtype::f64) {
        for (double& v : values) v = softplus(v);
      }
      // Waves: if a count rounds across a position, it finds nearly the same slope. Scaled so that
      // b is as large as s.
      const auto count = static_cast<size_t>(AttentionShape().content_columns);
      for (size_t n = 0; name == "positions" && n < values.size(); ++n) {
        const double phase = static_cast<double>(n / count * 7 % 6);
        values[n] =
            as<float>(std::sqrt(2.0 / D) * std::sin(phase + static_cast<double>(n % count) / 20));
      }
    };
    std::visit([&](auto& bias) { bias.plan(c.shape(D), Dtype::f32, add); }, any);
  }
  // Sized for the largest network, so that f is as large as s.
  const auto hidden = static_cast<size_t>(kDapeMostHidden);
  for (const auto& [name, size] : std::map<std::string, size_t>{
           {"w1", 2 * hidden * H}, {"c1", hidden}, {"w2", hidden * H}, {"c2", H}}) {
    // Tensor cores read the weights in the same format as q and k.
    x.others[name] = name[0] == 'w' ? normal<A>(name, size, 0.25) : normal<float>(name, size, 0.25);
  }
  for (int b = 0; b < c.B; ++b) {
    int start = 0;
    for (int t = 0; t < c.T; ++t) {
      if (c.documents && t > 0 && (t * 7 + b * 3) % 41 == 0) start = t;
      x.fire.positions.push_back(t - start);
      x.first_key.push_back(c.window > 0 ? std::max(start, t - c.window + 1) : start);
    }
  }
  // Two rows see each other or neither does.
  for (size_t b = 0; b < B; ++b) {
    const auto first = x.first_key.begin() + static_cast<std::ptrdiff_t>(b * T);
    for (int t = 0; t < c.T; ++t) {
      x.last_key.push_back(
          static_cast<int32_t>(std::upper_bound(first + t, first + c.T, t) - first) - 1);
    }
  }
  return x;
}
template AttentionValues attention_values<float>(const AttentionCase&, int);
template AttentionValues attention_values<DeviceBf16>(const AttentionCase&, int);

namespace {

Doubles alphas_of(const AttentionValues& x, const AttentionForm& form) {
  Doubles alphas;
  for (double more : x.alphas) alphas.push_back(as<float>(form.normalizer.alpha + more));
  return alphas;
}

/// The values of a tensor that attention reads besides q, k, v and alphas.
const Doubles& values_of(const AttentionValues& x, const AttentionForm& form,
                         const std::string& name) {
  if (name == "numbers" && has_sums(form)) return x.sums;
  const std::map<std::string, const Doubles*> own = {
      {"table", &x.table},        {"scale", &x.scale},          {"psi", &x.fire.psi},
      {"psi_dc", &x.fire.psi_dc}, {"inverse", &x.fire.inverse}, {"slope", &x.fire.slope},
      {"offset", &x.fire.offset}};
  const auto it = own.find(name);
  return it != own.end() ? *it->second : x.others.at(name);
}
const std::vector<int32_t>& indices_of(const AttentionValues& x, const std::string& name) {
  return name == "first_key"  ? x.first_key
         : name == "last_key" ? x.last_key
         : name == "ends"     ? x.fire.ends
                              : x.fire.positions;
}

/// Splits (B, T, (H + 2 K) D) into dq, dk and dv.
void take_heads(Results& r, const Doubles& all, const AttentionCase& c, int D) {
  const auto width = static_cast<size_t>((c.H + 2 * c.K) * D);
  const auto queries = static_cast<size_t>(c.H * D), keys = static_cast<size_t>(c.K * D);
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t column = i % width;
    r[column < queries ? "dq" : column < queries + keys ? "dk" : "dv"].push_back(all[i]);
  }
}

}  // namespace

Results attention_truth(const AttentionCase& c, int D, const AttentionValues& x,
                        const AttentionForm& form, bool rounds_out) {
  const int64_t B = c.B, T = c.T, H = c.H, K = c.K, W = (H + 2 * K) * D;
  const auto backend = make_reference_backend();
  Arena arena;
  Tensor qkv, dqkv;
  AttentionCall call;
  arena.add("qkv", &qkv, Dtype::f64, {B, T, W});
  arena.add("dqkv", &dqkv, Dtype::f64, {B, T, W});
  form_call(call, form, c.shape(D), Dtype::f64, Dtype::f64,
            [&](const char* name, Tensor* t, Dtype dtype, std::initializer_list<int64_t> dims) {
              arena.add(name, t, dtype, dims);
            });
  backend->plan(arena, {B, T, H, K, D, H * D, true});
  arena.commit();
  const auto part = [&](const Tensor& all, int64_t head, int64_t heads) {
    Tensor t(all.ptr<double>() + head * D, Dtype::f64, {B, T, heads, D});
    t.stride[0] = T * W;
    t.stride[1] = W;
    return t;
  };
  Attention& a = call.a;
  AttentionGradients& g = call.g;
  a.q = part(qkv, 0, H);
  a.k = part(qkv, H, K);
  a.v = part(qkv, H + K, K);
  g.dq = part(dqkv, 0, H);
  g.dk = part(dqkv, H, K);
  g.dv = part(dqkv, H + K, K);
  std::copy(x.qkv.begin(), x.qkv.end(), qkv.ptr<double>());
  std::copy(x.dout.begin(), x.dout.end(), call.dout.ptr<double>());
  for_tensors(a, [&](const std::string& name, const Tensor& t) {
    if (!t || name == "q" || name == "k" || name == "v") return;
    if (t.dtype == Dtype::i32) {
      std::ranges::copy(indices_of(x, name), t.ptr<int32_t>());
    } else {
      const Doubles values = name == "alphas" ? alphas_of(x, form) : values_of(x, form, name);
      std::copy_n(values.begin(), t.size(), t.ptr<double>());
    }
  });
  backend->attention_forward(call.out, call.saved, a);
  Results r;
  const auto take = [&](const char* name, const Tensor& t) {
    if (t) r[name].assign(t.ptr<double>(), t.ptr<double>() + t.size());
  };
  take("out", call.out);
  if (rounds_out) std::ranges::transform(r["out"], call.out.ptr<double>(), as<DeviceBf16>);
  backend->attention_backward(g, call.dout, call.out, call.saved, a);
  take("lse", call.saved.level);
  Doubles all(dqkv.ptr<double>(), dqkv.ptr<double>() + dqkv.size());
  take_heads(r, all, c, D);
  take("dscale", g.dscale);
  take("dalpha", g.dalpha);
  std::visit([&](const auto& of_bias) { for_tensors(of_bias, take); }, g.bias);
  for_tensors(g.mix, take);
  // The other normalizers ignore a constant added to all logits of a row.
  if (form.normalizer.kind != NormalizerKind::stick_breaking) r.erase("dc2");
  return r;
}

double relative_error(const Doubles& found, const Doubles& truth) {
  REQUIRE(found.size() == truth.size());
  double error = 0, size = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    if (!std::isfinite(found[i])) return INFINITY;
    error += (found[i] - truth[i]) * (found[i] - truth[i]);
    size += truth[i] * truth[i];
  }
  if (size == 0) return error == 0 ? 0 : INFINITY;
  return std::sqrt(error / size);
}

// --- on the engine ------------------------------------------------------------------------------

BiasArrays::BiasArrays(const AttentionCase& c, int D, const AttentionValues& x,
                       const AttentionForm& form)
    : bias_(bias_of(form.bias)) {
  const AttentionShape shape = c.shape(D);
  const auto input = [&](const std::string& name, Tensor* t, Dtype dtype,
                         std::initializer_list<int64_t> dims) {
    *t = array(dtype, dims);
    if (dtype == Dtype::i32) {
      std::ranges::copy(indices_of(x, name), t->ptr<int32_t>());
    } else if (dtype == Dtype::f64) {
      std::ranges::copy(values_of(x, form, name), t->ptr<double>());
    } else {
      std::copy_n(elements<float>(values_of(x, form, name)).begin(), t->size(), t->ptr<float>());
    }
  };
  const auto output = [&](const char*, Tensor* t, Dtype dtype,
                          std::initializer_list<int64_t> dims) { *t = array(dtype, dims); };
  std::visit(
      [&]<class B>(B& bias) {
        bias.plan(shape, Dtype::f32, input);
        gradients_.template emplace<typename B::Gradients>().plan(shape, Dtype::f32, output);
      },
      bias_);
  mix_form_ = form.mix;
  if (!form.mix) return;
  mix_.plan(*form.mix, c.H, form.mix_hidden, Dtype::f32, input);
  mix_gradients_.plan(*form.mix, c.H, form.mix_hidden, Dtype::f32, output);
}

Tensor BiasArrays::array(Dtype dtype, std::initializer_list<int64_t> dims) {
  size_t size = 1;
  for (int64_t d : dims) size *= static_cast<size_t>(d);
  switch (dtype) {
    case Dtype::i32:
      return {indices_.emplace_back(size).data(), dtype, dims};
    case Dtype::f64:
      return {doubles_.emplace_back(size).data(), dtype, dims};
    default:
      return {floats_.emplace_back(size).data(), dtype, dims};
  }
}

void BiasArrays::set(kernels::BiasInputs& in) const {
  std::visit([&in](const auto& bias) { bias.on_cuda(in); }, bias_);
  if (mix_form_) mix_.on_cuda(in, *mix_form_);
}
void BiasArrays::set(kernels::BiasOutputs& g) const {
  std::visit([&g](const auto& of_bias) { of_bias.on_cuda(g); }, gradients_);
  mix_gradients_.on_cuda(g);
}

Results BiasArrays::gradients() const {
  Results r;
  const auto take = [&r](const char* name, const Tensor& t) {
    if (!t) return;
    if (t.dtype == Dtype::f64) {
      r[name].assign(t.ptr<double>(), t.ptr<double>() + t.size());
    } else {
      r[name].assign(t.ptr<float>(), t.ptr<float>() + t.size());
    }
  };
  std::visit([&](const auto& of_bias) { for_tensors(of_bias, take); }, gradients_);
  for_tensors(mix_gradients_, take);
  return r;
}

namespace {
int positions_of(const AttentionForm& form) {
  return form.bias == BiasForm::contextual ? static_cast<int>(AttentionShape().content_columns) : 0;
}
/// Scratch for parts of several sequences, or the minimum.
size_t content_logits(const AttentionCase& c) {
  const int64_t least = kernels::kPartRows * c.H * kernels::content_stride(c.T);
  const int64_t one = c.B > 1 ? kernels::content_logits(c.B, c.T, c.H) : least;
  return static_cast<size_t>(3 * one);
}
}  // namespace

template <class A>
AttentionArrays<A>::AttentionArrays(const AttentionCase& c, int D, const AttentionValues& x,
                                    const AttentionForm& form)
    : c_(c),
      D_(D),
      form_(form),
      bias_(c, D, x, form),
      qkv_(elements<A>(x.qkv)),
      dout_(elements<A>(x.dout)),
      dqkv_(x.qkv.size()),
      out_(x.dout.size()),
      scale_(elements<float>(x.scale)),
      lse_(x.scale.size()),
      row_product_(static_cast<size_t>(kernels::attention_row_products(c.B, c.T, c.H))),
      dscale_(x.scale.size()),
      partial_(static_cast<size_t>(cuda::most_partial(c.shape(D)))),
      threshold_(x.scale.size()),
      alphas_(elements<float>(alphas_of(x, form))),
      dalpha_(x.scale.size()),
      carries_(static_cast<size_t>(kernels::attention_carries(c.B, c.T, c.H, c.K))),
      content_logits_(content_logits(c)),
      content_sums_(static_cast<size_t>(kernels::content_sums(
          c.B, c.T, c.H, c.K, D, positions_of(form), form.mix ? form.mix_hidden : 0, true))),
      last_(x.scale.size()),
      live_(static_cast<size_t>(c.B * c.H * live_groups(c.T) * live_words(c.T))),
      first_key_(x.first_key),
      last_key_(x.last_key) {}

template <class A>
template <class Element>
kernels::Rows<Element> AttentionArrays<A>::part(Element* data, int head) const {
  const int64_t width = int64_t{c_.H + 2 * c_.K} * D_;
  return {data + head * D_, c_.T * width, width, D_};
}
template <class A>
template <class Element>
kernels::Rows<Element> AttentionArrays<A>::heads(Element* data) const {
  const int64_t width = int64_t{c_.H} * D_;
  return {data, c_.T * width, width, D_};
}

template <class A>
kernels::AttentionForward<A> AttentionArrays<A>::forward() {
  kernels::AttentionForward<A> f;
  const A* qkv = qkv_.data();
  f.in.B = c_.B;
  f.in.T = c_.T;
  f.in.H = c_.H;
  f.in.K = c_.K;
  f.in.D = D_;
  f.in.content_divisor = static_cast<float>(
      form_.content_scale != 0 ? 1 / form_.content_scale : std::sqrt(static_cast<double>(D_)));
  f.in.q = part(qkv, 0);
  f.in.k = part(qkv, c_.H);
  f.in.v = part(qkv, c_.H + c_.K);
  f.in.causal = c_.causal;
  if (!c_.causal) f.in.last_key = last_key_.data();
  bias_.set(f.in);
  if (form_.scale) f.in.scale = scale_.data();
  f.in.scale_bias = form_.scale_bias;
  f.in.first_key = first_key_.data();
  f.in.content = {content_logits_.data(), static_cast<int64_t>(content_logits_.size()),
                  content_sums_.data(), static_cast<int64_t>(content_sums_.size())};
  const NormalizerForm& normalizer = form_.normalizer;
  f.in.normalizer = {normalizer.kind, static_cast<float>(normalizer.alpha),
                     normalizer.learned ? alphas_.data() : nullptr, normalizer.keys};
  f.out = heads(out_.data());
  f.saved = {lse_.data(), threshold_.data(), last_.data(), nullptr};
  if (!traits_of(normalizer.kind).fused) f.saved.live = live_.data();
  return f;
}

template <class A>
kernels::AttentionBackward<A> AttentionArrays<A>::backward() {
  kernels::AttentionBackward<A> g;
  const A* out = out_.data();
  const A* dout = dout_.data();
  g.in = forward().in;
  g.out = heads(out);
  g.dout = heads(dout);
  g.saved = forward().saved;
  g.dq = part(dqkv_.data(), 0);
  g.dk = part(dqkv_.data(), c_.H);
  g.dv = part(dqkv_.data(), c_.H + c_.K);
  g.causal = c_.causal;
  bias_.set(g);
  if (form_.scale) g.dscale = dscale_.data();
  if (form_.normalizer.learned) g.dalpha = dalpha_.data();
  g.carries = carries_.data();
  g.row_product = row_product_.data();
  g.partial = partial_.data();
  return g;
}

template <class A>
Results AttentionArrays<A>::results() const {
  Results r = bias_.gradients();
  if (form_.normalizer.kind != NormalizerKind::stick_breaking) r.erase("dc2");
  r["out"] = doubles(out_);
  if (traits_of(form_.normalizer.kind).level) r["lse"] = doubles(lse_);
  if (form_.normalizer.learned) r["dalpha"] = doubles(dalpha_);
  take_heads(r, doubles(dqkv_), c_, D_);
  if (form_.scale) r["dscale"] = doubles(dscale_);
  return r;
}

template <class A>
Results attention_on_engine(Kernels which, const AttentionCase& c, int D, const AttentionValues& x,
                            const AttentionForm& form) {
  AttentionArrays<A> arrays(c, D, x, form);
  const kernels::AttentionForward<A> f = arrays.forward();
  const kernels::AttentionBackward<A> g = arrays.backward();
  if (which == Kernels::reference) {
    REQUIRE(kernels::attention_reference_forward(f, nullptr).ok());
    REQUIRE(kernels::attention_reference_backward(g, nullptr).ok());
  } else {
    const bool general = which == Kernels::general;
    REQUIRE(kernels::attention_forward(f, nullptr, general).ok());
    REQUIRE(kernels::attention_backward(g, nullptr, general).ok());
  }
  return arrays.results();
}

template <class A>
void check_every_schedule(Kernels kernels, const AttentionCase& c, int D,
                          const AttentionForm& form) {
  INFO(text_of(c, D, form));
  const AttentionValues x = attention_values<A>(c, D);
  check_same_under_all_schedules([&] {
    Doubles all;
    for (const auto& [name, values] : attention_on_engine<A>(kernels, c, D, x, form)) {
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  });
}

template void check_every_schedule<float>(Kernels, const AttentionCase&, int, const AttentionForm&);
template void check_every_schedule<DeviceBf16>(Kernels, const AttentionCase&, int,
                                               const AttentionForm&);
template class AttentionArrays<float>;
template class AttentionArrays<DeviceBf16>;
template Results attention_on_engine<float>(Kernels, const AttentionCase&, int,
                                            const AttentionValues&, const AttentionForm&);
template Results attention_on_engine<DeviceBf16>(Kernels, const AttentionCase&, int,
                                                 const AttentionValues&, const AttentionForm&);

}  // namespace bamtrain::test
