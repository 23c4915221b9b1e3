#include "mechanisms.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "catch.h"
#include "core/rng.h"
#include "priors/differences.h"
#include "priors/fire.h"
#include "roles.h"

namespace bamtrain::testing {
namespace {

constexpr int64_t kH = 4, kD = 16, kC = kH * kD;

/// Values that are the same in bf16 and fp32.
Values normal_of_bf16(std::vector<int64_t> shape, const std::string& stream) {
  Values v = random_values(A, std::move(shape), stream);
  for (double& x : v.x) x = rounded(x, Dtype::bf16);
  return v;
}

/// The parameters of a prior or scale near their initial values, and the gates that some of them
/// compute from x.
class Parameters {
 public:
  std::vector<Tensor> theta, dtheta;  // without the gates' weights
  Tensor gates, dgates;               // (1, T, columns); empty without gates

  Parameters(const Machine& m, const MechanismInfo& info, const Options& options,
             const ModelShape& shape)
      : x_(normal_of_bf16({shape.sequence_length, kC}, "x").x) {
    std::vector<double> columns;  // (columns, kC)
    for (const MechanismParameter& p : info.parameters(options, shape)) {
      const Rng start(5, p.name), step(6, p.name);
      int64_t size = 1;
      for (int64_t n : p.shape) size *= n;
      Values v{P, p.shape, {}};
      for (int64_t i = 0; i < size; ++i) {
        const auto n = static_cast<uint64_t>(i);
        const double x = info.initial(options, shape, p, i, start.uniform(n), step.normal(n));
        const double moved = x + (p.gate ? 0 : 0.1 * start.normal(n));
        v.x.push_back(std::clamp(moved, p.minimum, p.maximum));
      }
      if (p.gate) {
        gate_names_.push_back(p.name);
        columns.insert(columns.end(), v.x.begin(), v.x.end());
        continue;
      }
      names_.push_back(p.name);
      theta.push_back(keep(m.memory(v)));
      dtheta.push_back(keep(m.zeros(P, p.shape)));
    }
    if (columns.empty()) return;
    Values g{A, {1, shape.sequence_length, static_cast<int64_t>(columns.size()) / kC}, {}};
    for (auto row = x_.begin(); row != x_.end(); row += kC) {
      for (auto column = columns.begin(); column != columns.end(); column += kC) {
        g.x.push_back(rounded(std::inner_product(row, row + kC, column, 0.0), Dtype::bf16));
      }
    }
    gates = keep(m.memory(g));
    dgates = keep(m.unwritten(A, g.shape));
  }

  /// Adds gradients by name; for gates' weights, dgates^T x.
  void take(Arrays& to, const std::string& owner) const {
    for (size_t p = 0; p < names_.size(); ++p) to[owner + names_[p]] = read(dtheta[p], P);
    if (!gates) return;
    const std::vector<double> d = read(dgates, A).x;
    const size_t n = gate_names_.size() * kH;
    for (size_t p = 0; p < gate_names_.size(); ++p) {
      Values w = constant_values(P, {kH, kC}, 0);
      for (size_t e = 0; e < d.size(); ++e) {
        if (e % n / kH != p) continue;
        for (size_t c = 0; c < kC; ++c) w.x[e % kH * kC + c] += d[e] * x_[e / n * kC + c];
      }
      to[owner + gate_names_[p]] = w;
    }
  }

 private:
  Tensor keep(Memory memory) {
    memory_.push_back(std::move(memory));
    return memory_.back().tensor();
  }

  std::vector<double> x_;  // (T, kC)
  std::vector<std::string> names_, gate_names_;
  std::vector<Memory> memory_;
};

}  // namespace

WorkspaceShape mechanism_workspace(int64_t T) {
  WorkspaceShape shape;
  shape.B = 1;
  shape.T = T;
  shape.H = shape.K = kH;
  shape.D = kD;
  shape.C = kC;
  shape.mechanism_values = kH * std::max<int64_t>(T, 64);
  shape.gates = 2 * kH;
  shape.attention = {
      {.bias = BiasForm::fire}, {.bias = BiasForm::relative}, {.bias = BiasForm::contextual}};
  return shape;
}

Arrays parameter_gradients(Machine& m, const Mechanisms& of, int64_t T) {
  ModelShape shape = {1, kH, kD, kC, T};
  shape.causal = of.causal;
  const int64_t distances = of.causal ? T : 2 * T - 1;
  Parameters prior(m, of.prior, of.prior_options, shape),
      scale(m, of.scale, of.scale_options, shape);
  Backend& backend = m.backend();
  std::vector<Memory> memory;
  const auto keep = [&](Memory x) {
    memory.push_back(std::move(x));
    return memory.back().tensor();
  };
  const auto of_rows = [&](Role role) { return keep(m.unwritten(role, {1, kH, T})); };
  const auto of_tokens = [&](const char* name) {
    return keep(m.memory(normal_of_bf16({1, T, kH, kD}, name)));
  };
  Attention a;
  AttentionGradients g;
  a.q = of_tokens("q");
  a.k = of_tokens("k");
  a.v = of_tokens("v");
  for (Tensor* d : {&g.dq, &g.dk, &g.dv}) *d = keep(m.unwritten(A, {1, T, kH, kD}));
  a.first_key = keep(m.zeros(Role::index, {1, T}));
  if (!of.causal) {  // all keys; rows of the last third see only themselves
    Values first{Role::index, {1, T}, {}}, last = first;
    for (int64_t i = 0; i < T; ++i) {
      first.x.push_back(i < T - T / 3 ? 0 : static_cast<double>(i));
      last.x.push_back(static_cast<double>(std::max(i, T - T / 3 - 1)));
    }
    a.first_key = keep(m.memory(first));
    a.last_key = keep(m.memory(last));
  }

  const TableShape table = table_shape(of.prior, of.prior_options, shape, T);
  const PriorUse use = {of.prior, table.form, table.gain, !of.causal, table.asymmetry};
  if (of.prior.is<TableFamily>()) {
    const Tensor table = keep(m.unwritten(P, {kH, distances}));
    a.bias = TableBias{table};
    g.bias = TableBiasGradients{keep(m.unwritten(P, {kH, distances}))};
    backend.run(TableForward{table, use, prior.theta});
  }
  if (const auto* const of_sums = of.prior.as<SumsFamily>()) {
    const Tensor sums = of_rows(Role::wide);
    a.bias = TokenBias{sums, of_sums->bias};
    g.bias = TokenBiasGradients{of_rows(P)};
    backend.run(SumsForward{sums, prior.gates, prior.theta.at(0)});
  }
  double L0 = 0, slope = 0;
  if (const auto* const fire = of.prior.as<FireFamily>()) {
    L0 = fire->threshold_length(of.prior_options, T);
    slope = fire->negative_slope(of.prior_options);
    FireTables tables;
    for (Tensor* t : {&tables.psi, &tables.psi_dc, &tables.inverse}) *t = keep(m.zeros(P, {T}));
    tables.ends = keep(m.zeros(Role::index, {T, kFireHidden}));
    tables.slope = keep(m.zeros(P, {kH, kFireSegments}));
    tables.offset = keep(m.zeros(P, {kH, kFireSegments}));
    Values positions{Role::index, {1, T}, {}};
    for (int64_t t = 0; t < T; ++t) positions.x.push_back(static_cast<double>(t));
    a.bias = FireBias{tables, keep(m.memory(positions))};
    const Tensor dfire = keep(m.unwritten(Role::wide, {kH, kFireSegments, 2}));
    g.bias = FireBiasGradients{dfire, of_rows(P), of_rows(P)};
    backend.run(FireForward{tables, prior.theta, L0, slope});
  }
  Tensor sinusoids;
  if (const auto* const relative = of.prior.as<TransformerXlFamily>()) {
    Values by_distance{P, {distances, kC}, {}};
    for (int64_t n = 0; n < distances * kC; ++n) {
      by_distance.x.push_back(relative->sinusoid(n / kC - (distances - T), n % kC, kC));
    }
    sinusoids = keep(m.memory(by_distance));
    const Tensor r = keep(m.unwritten(P, {distances, kH, kD})),
                 dr = keep(m.unwritten(P, {distances, kH, kD}));
    const Tensor du = keep(m.unwritten(P, {kH, kD})), dw = keep(m.unwritten(P, {kH, kD}));
    a.bias = RelativeBias{r, prior.theta[1], prior.theta[2]};
    g.bias = RelativeBiasGradients{dr, du, dw};
    backend.linear_forward(r.reshaped({distances, kC}), sinusoids, prior.theta[0], {});
  }
  if (of.prior.is<ContextualFamily>()) {
    a.bias = ContextualBias{prior.theta.at(0)};
    g.bias = ContextualBiasGradients{prior.dtheta.at(0)};
  }
  const FormulaConstants constants = of.scale.constants_of(of.scale_options, shape);
  const ScaleUse scale_use = {of.scale, constants,
                              of.prior.first_scaled_head ? of.prior.first_scaled_head(kH) : 0};
  const GatedUse gated = {GatedRule::adaptive, constants, scale_use.first_head};
  if (!of.scale.is<std::monostate>()) {
    a.form.scale_bias = of.scale_bias;
    a.scale = of_rows(P);
    g.dscale = of_rows(P);
    scale.gates
        ? backend.run(
              GatedRowsForward{a.scale, scale.gates, a.first_key, gated, scale.theta, a.last_key})
        : backend.run(ScaleForward{a.scale, a.first_key, scale_use, scale.theta, a.last_key});
  }

  const Tensor out = keep(m.unwritten(A, {1, T, kH, kD})), lse = of_rows(P);
  backend.attention_forward(out, {lse}, a);
  backend.attention_backward(g, of_tokens("dout"), out, {lse}, a);
  if (const auto* of_bias = std::get_if<TableBiasGradients>(&g.bias)) {
    backend.run(TableBackward{prior.dtheta, of_bias->dtable, use, prior.theta});
  }
  if (of.prior.is<SumsFamily>()) {
    const Tensor dsums = std::get<TokenBiasGradients>(g.bias).dnumbers;
    backend.run(
        SumsBackward{prior.dgates, prior.dtheta.at(0), dsums, prior.gates, prior.theta.at(0)});
  }
  if (const auto* of_bias = std::get_if<FireBiasGradients>(&g.bias)) {
    backend.run(FireBackward{prior.dtheta, *of_bias, std::get<FireBias>(a.bias).positions,
                             prior.theta, L0, slope});
  }
  if (const auto* of_bias = std::get_if<RelativeBiasGradients>(&g.bias)) {
    const Tensor dr = of_bias->dr.reshaped({distances, kC});
    backend.linear_backward_weight(prior.dtheta[0], {}, dr, sinusoids);
    backend.add(prior.dtheta[1], of_bias->du);
    backend.add(prior.dtheta[2], of_bias->dw);
  }
  if (g.dscale && scale.gates) {
    backend.run(GatedRowsBackward{scale.dgates, scale.dtheta, g.dscale, scale.gates, a.first_key,
                                  gated, scale.theta, a.last_key});
  } else if (g.dscale) {
    backend.run(
        ScaleBackward{scale.dtheta, g.dscale, a.first_key, scale_use, scale.theta, a.last_key});
  }
  Arrays all{{"lse", read(lse, P)}};
  prior.take(all, of.prior.name + ".");
  scale.take(all, of.scale.name + ".");
  return all;
}

Arrays tables_and_scales(Machine& m, const Mechanisms& of, int64_t B, int64_t T) {
  ModelShape shape = {1, kH, kD, kC, T};
  shape.causal = of.causal;
  const int64_t distances = of.causal ? T : 2 * T - 1;
  Arrays all;
  if (of.prior.is<TableFamily>()) {
    Parameters prior(m, of.prior, of.prior_options, shape);
    const TableShape form = table_shape(of.prior, of.prior_options, shape, T);
    const PriorUse use = {of.prior, form.form, form.gain, !of.causal, form.asymmetry};
    const Memory table = m.unwritten(P, {kH, distances}),
                 dtable = m.memory(random_values(P, {kH, distances}, "dtable"));
    m.backend().run(TableForward{table.tensor(), use, prior.theta});
    m.backend().run(TableBackward{prior.dtheta, dtable.tensor(), use, prior.theta});
    all["table"] = read(table.tensor(), P);
    prior.take(all, of.prior.name + ".");
  }
  if (const auto* const fire = of.prior.as<FireFamily>()) {
    Parameters prior(m, of.prior, of.prior_options, shape);
    Values positions{Role::index, {B, T}, {}};
    for (int64_t i = 0; i < B * T; ++i) positions.x.push_back(static_cast<double>(i % T));
    const Memory at = m.memory(positions),
                 dfire = m.memory(random_values(Role::wide, {kH, kFireSegments, 2}, "dfire")),
                 of_u = m.memory(random_values(P, {B, kH, T}, "of u")),
                 of_psi = m.memory(random_values(P, {B, kH, T}, "of psi"));
    m.backend().run(FireBackward{prior.dtheta,
                                 {dfire.tensor(), of_u.tensor(), of_psi.tensor()},
                                 at.tensor(),
                                 prior.theta,
                                 fire->threshold_length(of.prior_options, T),
                                 fire->negative_slope(of.prior_options)});
    prior.take(all, of.prior.name + ".");
  }
  if (of.scale.is<LengthKind>()) {
    Parameters scale(m, of.scale, of.scale_options, shape);
    Values keys{Role::index, {B, T}, {}};
    for (int64_t i = 0; i < B * T; ++i) keys.x.push_back(static_cast<double>(i % T / 700 * 700));
    Values ends = keys;
    for (double& j : ends.x) j = std::min(j + 699, static_cast<double>(T - 1));
    const Memory first_key = m.memory(keys), last = m.memory(ends),
                 rows = m.unwritten(P, {B, kH, T}),
                 drows = m.memory(random_values(P, {B, kH, T}, "dscale"));
    const Tensor last_key = of.causal ? Tensor() : last.tensor();
    const FormulaConstants constants = of.scale.constants_of(of.scale_options, shape);
    const ScaleUse use = {of.scale, constants, 1};
    m.backend().run(ScaleForward{rows.tensor(), first_key.tensor(), use, scale.theta, last_key});
    m.backend().run(ScaleBackward{scale.dtheta, drows.tensor(), first_key.tensor(), use,
                                  scale.theta, last_key});
    all["scale"] = read(rows.tensor(), P);
    scale.take(all, of.scale.name + ".");
  }
  return all;
}

std::vector<Mechanisms> all_mechanisms() {
  const PriorInfo& nope = *find_prior("nope");
  const ScaleInfo &none = *find_scale("none"), &ssmax = *find_scale("ssmax");
  std::vector<Mechanisms> all;
  const auto add = [&](const PriorInfo& p, const Options& options, const ScaleInfo& s, bool bias) {
    all.push_back({p, options, s, default_options(s.options), bias});
  };
  for (const PriorInfo& p : all_priors()) {
    if (p.is<RotaryFamily>() || p.is<EmbeddingFamily>()) continue;
    for (const Options& o : every_form(p)) add(p, o, none, false);
    const bool of_distance = p.is<TableFamily>() || p.is<std::monostate>();
    if (!of_distance || ssmax.default_scale_bias(p.name)) {
      add(p, default_options(p.options), ssmax, true);
    }
  }
  for (const ScaleInfo& s : all_scales()) {
    if (!s.evaluation_only) add(nope, default_options(nope.options), s, false);
  }
  return all;
}

std::vector<Mechanisms> bidirectional_mechanisms() {
  std::vector<Mechanisms> all;
  for (Mechanisms of : all_mechanisms()) {
    if (of.prior.causal_only) continue;
    of.causal = false;
    all.push_back(of);
  }
  return all;
}

double relative_error(const std::vector<double>& found, const std::vector<double>& truth) {
  double error = 0, size = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    error += (found[i] - truth[i]) * (found[i] - truth[i]);
    size += truth[i] * truth[i];
  }
  return std::sqrt(error / size);
}

void check_near(const Arrays& found, const Arrays& truth, double tolerance) {
  for (const auto& [name, v] : truth) {
    if (name == "fire.b2") continue;
    const double error = relative_error(found.at(name).x, v.x);
    INFO(name << ": error " << error);
    CHECK(error <= tolerance);
  }
}

}  // namespace bamtrain::testing
