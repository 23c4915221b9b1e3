#include "cases.h"

#include <algorithm>
#include <cmath>

#include "attention_case.h"
#include "core/ignore_index.h"
#include "core/rng.h"
#include "roles.h"
#include "scales/registry.h"

namespace bamtrain::testing {

namespace {

Tensor tensor_or_none(const std::vector<Memory>& memory) {
  return memory.empty() ? Tensor() : memory.front().tensor();
}

/// The named input in memory; empty if it is absent.
std::vector<Memory> optional(const Machine& m, const Arrays& in, const std::string& name) {
  std::vector<Memory> out;
  if (in.count(name)) out.push_back(m.memory(in.at(name)));
  return out;
}

/// Memory for the gradient of an optional input, filled with `existing`.
std::vector<Memory> optional_gradient(const Machine& m, const Arrays& in, const std::string& name,
                                      double existing) {
  std::vector<Memory> out;
  if (in.count(name)) {
    const Values& v = in.at(name);
    out.push_back(m.memory(constant_values(P, v.shape, existing)));
  }
  return out;
}

Values index_values(int64_t n, int64_t below, const std::string& stream) {
  const Rng rng(29, stream);
  Values v{Role::index, {n}, {}};
  for (int64_t i = 0; i < n; ++i) {
    v.x.push_back(
        static_cast<double>(rng.below(static_cast<uint64_t>(i), static_cast<uint64_t>(below))));
  }
  return v;
}

}  // namespace

namespace {

/// v (N, O) followed by `gap` columns of NaN, which nothing may read.
Values with_gap(const Values& v, int64_t gap) {
  const int64_t N = v.shape.at(0), O = v.shape.at(1);
  Values out{v.role, {N, O + gap}, {}};
  for (int64_t n = 0; n < N; ++n) {
    out.x.insert(out.x.end(), v.x.begin() + n * O, v.x.begin() + (n + 1) * O);
    out.x.insert(out.x.end(), static_cast<size_t>(gap), NAN);
  }
  return out;
}

/// The first O columns of t (N, O + gap). Checks that the others are unchanged from with_gap.
Values without_gap(const Tensor& t, Role role, int64_t O) {
  const Values all = read(t, role);
  const int64_t N = t.shape[0], row = t.shape[1];
  Values out{role, {N, O}, {}};
  for (int64_t i = 0; i < N * row; ++i) {
    const double x = all.x[static_cast<size_t>(i)];
    if (i % row < O) {
      out.x.push_back(x);
    } else {
      require(std::isnan(x), "what lies between rows is as it was");
    }
  }
  return out;
}

}  // namespace

Operation linear(const LinearCase& c) {
  Operation op;
  op.inputs["x"] = random_values(A, {c.N, c.I}, "x");
  op.inputs["weight"] = random_values(A, {c.O, c.I}, "weight");
  if (c.bias) {
    op.inputs["bias"] = random_values(P, {c.O}, "bias");
    // Far enough from zero to be missed where it is not added.
    for (double& b : op.inputs["bias"].x) b += std::copysign(1, b);
  }
  op.differentiated = {"y"};
  op.accumulated = {"weight", "bias"};
  // Sums of n products of normal numbers, which may happen to cancel in a small case.
  const double rows = std::sqrt(static_cast<double>(c.N));
  op.cancelling = {{"y", std::sqrt(static_cast<double>(c.I))},
                   {"x", std::sqrt(static_cast<double>(c.O))},
                   {"weight", rows},
                   {"bias", rows}};
  op.forward = [c](Machine& m, const Arrays& in) {
    const Memory x = m.memory(in.at("x")), w = m.memory(in.at("weight"));
    const auto bias = optional(m, in, "bias");
    const Memory y = m.unwritten(A, {c.N, c.O + c.gap});
    m.backend().linear_forward(y.tensor().slice(1, 0, c.O), x.tensor(), w.tensor(),
                               tensor_or_none(bias));
    return Arrays{{"y", without_gap(y.tensor(), A, c.O)}};
  };
  op.adjoint = [c](Machine& m, const Arrays& in, const Arrays&, const Arrays& cotangents,
                   double existing) {
    const Memory x = m.memory(in.at("x")), w = m.memory(in.at("weight"));
    const Memory rows = m.memory(with_gap(cotangents.at("y"), c.gap));
    const Tensor dy = rows.tensor().slice(1, 0, c.O);
    const Memory dx = m.unwritten(A, {c.N, c.I});
    const Memory dw = m.memory(constant_values(P, {c.O, c.I}, existing));
    const auto db = optional_gradient(m, in, "bias", existing);
    m.backend().linear_backward_input(dx.tensor(), dy, w.tensor());
    m.backend().linear_backward_weight(dw.tensor(), tensor_or_none(db), dy, x.tensor());
    Arrays out{{"x", read(dx.tensor(), A)}, {"weight", read(dw.tensor(), P)}};
    if (c.bias) out["bias"] = read(db.front().tensor(), P);
    return out;
  };
  return op;
}

Operation norm(const NormCase& c) {
  const double eps = 1e-5;
  const auto sixteenths = [&](const std::string& stream) {
    Values v = random_values(A, {c.N, c.C}, stream);
    for (double& x : v.x) x = std::clamp(std::round(16 * x) / 16, -7.5, 7.5);
    return v;
  };
  Operation op;
  op.inputs["residual"] = sixteenths("residual");
  if (c.branch) op.inputs["branch"] = sixteenths("branch");
  op.inputs["weight"] = random_values(P, {c.C}, "norm weight");
  if (c.bias) op.inputs["bias"] = random_values(P, {c.C}, "norm bias");
  op.differentiated = {"y"};
  op.accumulated = {"residual", "branch", "weight", "bias"};
  // dsum is rstd u minus its projections on 1 and x. With one column, these are all of it except
  // for eps. rstd is large if the row's numbers are small.
  double rstd = 0;
  for (int64_t n = 0; c.C == 1 && n < c.N; ++n) {
    const double x = op.inputs["residual"].x[static_cast<size_t>(n)] +
                     (c.branch ? op.inputs["branch"].x[static_cast<size_t>(n)] : 0);
    const double variance = c.kind == NormKind::rmsnorm ? x * x : 0;
    rstd = std::max(rstd, 1 / std::sqrt(variance + eps));
  }
  if (c.C == 1) op.cancelling = {{"residual", rstd}, {"branch", rstd}, {"weight", 1}};
  op.forward = [c, eps](Machine& m, const Arrays& in) {
    const Memory residual = m.memory(in.at("residual")), w = m.memory(in.at("weight"));
    const auto branch = optional(m, in, "branch"), bias = optional(m, in, "bias");
    const Memory sum = m.unwritten(A, {c.N, c.C}), y = m.unwritten(A, {c.N, c.C});
    const Memory stats = m.unwritten(P, {c.N, 2});
    m.backend().norm_forward(sum.tensor(), y.tensor(), stats.tensor(), residual.tensor(),
                             tensor_or_none(branch), w.tensor(), tensor_or_none(bias), c.kind, eps);
    return Arrays{{"sum", read(sum.tensor(), A)},
                  {"y", read(y.tensor(), A)},
                  {"stats", read(stats.tensor(), P)}};
  };
  op.adjoint = [c](Machine& m, const Arrays& in, const Arrays& saved, const Arrays& cotangents,
                   double existing) {
    const Memory sum = m.memory(saved.at("sum")), stats = m.memory(saved.at("stats"));
    const Memory w = m.memory(in.at("weight")), dy = m.memory(cotangents.at("y"));
    const Memory dsum = m.memory(constant_values(A, {c.N, c.C}, existing));
    const Memory dw = m.memory(constant_values(P, {c.C}, existing));
    const auto db = optional_gradient(m, in, "bias", existing);
    m.backend().norm_backward(dsum.tensor(), dw.tensor(), tensor_or_none(db), dy.tensor(),
                              sum.tensor(), stats.tensor(), w.tensor(), c.kind);
    Arrays out{{"residual", read(dsum.tensor(), A)}, {"weight", read(dw.tensor(), P)}};
    if (c.branch) out["branch"] = out["residual"];
    if (c.bias) out["bias"] = read(db.front().tensor(), P);
    return out;
  };
  return op;
}

Operation activation(MlpKind kind, int64_t N, int64_t F) {
  const int64_t width = is_gated(kind) ? 2 * F : F;
  Operation op;
  op.inputs["in"] = random_values(A, {N, width}, "in", 2);
  // No finite differences across relu's kink.
  for (double& x : op.inputs["in"].x) x += kind == MlpKind::relu && std::abs(x) < 1e-3 ? 0.01 : 0;
  op.differentiated = {"out"};
  op.cancelling = {{"out", 1}, {"in", 1}};  // 1 + tanh left of zero
  op.forward = [=](Machine& m, const Arrays& in) {
    const Memory x = m.memory(in.at("in")), out = m.unwritten(A, {N, F});
    m.backend().activation_forward(out.tensor(), x.tensor(), kind);
    return Arrays{{"out", read(out.tensor(), A)}};
  };
  op.adjoint = [=](Machine& m, const Arrays& in, const Arrays&, const Arrays& cotangents, double) {
    const Memory x = m.memory(in.at("in")), dout = m.memory(cotangents.at("out"));
    const Memory din = m.unwritten(A, {N, width});
    m.backend().activation_backward(din.tensor(), dout.tensor(), x.tensor(), kind);
    return Arrays{{"in", read(din.tensor(), A)}};
  };
  return op;
}

Operation rotate(const RotateCase& c) {
  const int64_t half = c.D / 2;
  Values positions = index_values(c.B * c.T, 5, "restarts"), cosine{P, {c.T, half}, {}},
         sine = cosine;
  for (int64_t r = 0; r < c.B * c.T; ++r) {
    double& p = positions.x[static_cast<size_t>(r)];
    p = r % c.T == 0 || p == 0 ? 0 : positions.x[static_cast<size_t>(r - 1)] + 1;
  }
  positions.shape = {c.B, c.T};
  for (int64_t t = 0; t < c.T; ++t) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(t) / static_cast<double>(1 + 3 * i);
      cosine.x.push_back(rounded(std::cos(angle), Dtype::f32));
      sine.x.push_back(rounded(std::sin(angle), Dtype::f32));
    }
  }
  const auto turn = [=](Machine& m, const Values& v, bool inverse) {
    const Memory wide = m.unwritten(A, {c.B, c.T, c.H + 2, c.D});
    const Tensor x = wide.tensor().slice(2, 0, c.H);
    fill(x, v);
    const Memory p = m.memory(positions), cs = m.memory(cosine), sn = m.memory(sine);
    m.backend().rotate(x, p.tensor(), cs.tensor(), sn.tensor(), inverse);
    return read(x, A);
  };
  Operation op;
  op.inputs["x"] = random_values(A, {c.B, c.T, c.H, c.D}, "x");
  op.differentiated = {"rotated"};
  op.forward = [=](Machine& m, const Arrays& in) {
    return Arrays{{"rotated", turn(m, in.at("x"), false)}};
  };
  op.adjoint = [=](Machine& m, const Arrays&, const Arrays&, const Arrays& cotangents, double) {
    return Arrays{{"x", turn(m, cotangents.at("rotated"), true)}};
  };
  return op;
}

void check_copy(const CopyCase& c, Role role, Machine& m) {
  const int64_t wide = c.d + 2 * c.beside;
  const Memory src = m.unwritten(role, {c.a, c.c, c.b + 1, wide}),
               dst = m.memory(constant_values(role, {c.a, c.b + 2, c.c, wide}, 7));
  Tensor from = src.tensor().slice(3, c.beside, c.d);
  from.shape = {c.a, c.b, c.c, c.d};
  std::swap(from.stride[1], from.stride[2]);
  const Tensor to = dst.tensor().slice(3, c.beside, c.d).slice(1, 1, c.b);
  const Values x = random_values(role, {c.a, c.b, c.c, c.d}, "copied");
  fill(from, x);
  m.backend().copy(to, from);
  m.backend().synchronize();
  check_equal(read(to, role).x, read(from, role).x);
  fill(to, constant_values(role, {c.a, c.b, c.c, c.d}, 7));
  check_equal(read(dst.tensor(), role).x, constant_values(role, {c.a, c.b + 2, c.c, wide}, 7).x);
}

Operation running_sums(const SumsCase& c) {
  Operation op;
  op.inputs["gates"] = random_values(A, {c.B, c.T, c.H}, "gates", 2);
  op.inputs["bias"] = random_values(P, {c.H}, "bias");
  op.differentiated = {"sums"};
  op.accumulated = {"bias"};
  op.forward = [=](Machine& m, const Arrays& in) {
    const Memory wide = m.unwritten(A, {c.B, c.T, c.H + 3}), bias = m.memory(in.at("bias"));
    const Tensor gates = wide.tensor().slice(2, 0, c.H);
    fill(gates, in.at("gates"));
    // After the sums of past tokens, if there are any.
    const Memory all = m.unwritten(Role::wide, {c.B, c.H, c.past + c.T});
    const Tensor sums = all.tensor().slice(2, c.past, c.T);
    Tensor before;
    if (c.past > 0) {
      before = all.tensor().slice(2, c.past - 1, 1);
      fill(before, in.at("before"));
    }
    m.backend().run(SumsForward{sums, gates, bias.tensor(), before});
    return Arrays{{"sums", read(sums, Role::wide)}};
  };
  if (c.past > 0) {
    op.inputs["before"] = random_values(Role::wide, {c.B, c.H, 1}, "before", 100);
    return op;
  }
  op.adjoint = [=](Machine& m, const Arrays& in, const Arrays&, const Arrays& cotangents,
                   double existing) {
    const Memory wide = m.unwritten(A, {c.B, c.T, c.H + 3}), bias = m.memory(in.at("bias"));
    const Tensor gates = wide.tensor().slice(2, 0, c.H);
    fill(gates, in.at("gates"));
    Values d = cotangents.at("sums");
    d.role = P;
    const Memory dsums = m.memory(d);
    const Memory dwide = m.unwritten(A, {c.B, c.T, c.H + 3});
    const Tensor dgates = dwide.tensor().slice(2, 0, c.H);
    const Memory dbias = m.memory(constant_values(P, {c.H}, existing));
    m.backend().run(SumsBackward{dgates, dbias.tensor(), dsums.tensor(), gates, bias.tensor()});
    return Arrays{{"gates", read(dgates, A)}, {"bias", read(dbias.tensor(), P)}};
  };
  return op;
}

Operation adaptive_scale(const AdaptiveCase& c) {
  AttentionCase seen;
  seen.B = c.B;
  seen.T = c.T;
  seen.documents = true;
  seen.window = 12;
  const std::vector<int32_t> first = first_keys(seen);
  const Values first_key{Role::index, {c.B, c.T}, {first.begin(), first.end()}};
  const GatedUse use = {GatedRule::adaptive, {{0.5, 1.5}}, c.first_head};
  const auto biases = [](const Machine& m, const Arrays& in) {
    std::vector<Memory> out;
    for (const char* name : {"beta_bias", "gamma_bias"}) {
      if (in.count(name)) out.push_back(m.memory(in.at(name)));
    }
    return out;
  };
  const auto tensors = [](const std::vector<Memory>& memory) {
    std::vector<Tensor> out;
    for (const Memory& x : memory) out.push_back(x.tensor());
    return out;
  };
  Operation op;
  op.inputs["gates"] = random_values(A, {c.B, c.T, 2 * c.H}, "gates", 2);
  if (c.bias) {
    op.inputs["beta_bias"] = random_values(P, {c.H}, "beta bias");
    op.inputs["gamma_bias"] = random_values(P, {c.H}, "gamma bias");
  }
  op.differentiated = {"scale"};
  op.accumulated = {"beta_bias", "gamma_bias"};
  op.forward = [=](Machine& m, const Arrays& in) {
    const Memory wide = m.unwritten(A, {c.B, c.T, 2 * c.H + 3}), keys = m.memory(first_key);
    const Tensor gates = wide.tensor().slice(2, 2, 2 * c.H);
    fill(gates, in.at("gates"));
    const std::vector<Memory> bias = biases(m, in);
    const Memory scale = m.unwritten(P, {c.B, c.H, c.T});
    m.backend().run(GatedRowsForward{scale.tensor(), gates, keys.tensor(), use, tensors(bias)});
    return Arrays{{"scale", read(scale.tensor(), P)}};
  };
  op.adjoint = [=](Machine& m, const Arrays& in, const Arrays&, const Arrays& cotangents,
                   double existing) {
    const Memory wide = m.unwritten(A, {c.B, c.T, 2 * c.H + 3}), keys = m.memory(first_key);
    const Tensor gates = wide.tensor().slice(2, 2, 2 * c.H);
    fill(gates, in.at("gates"));
    const std::vector<Memory> bias = biases(m, in);
    Arrays held = in;
    for (auto& [name, v] : held) std::fill(v.x.begin(), v.x.end(), existing);
    const std::vector<Memory> dbias = biases(m, held);
    const Memory dwide = m.unwritten(A, {c.B, c.T, 2 * c.H + 3});
    const Tensor dgates = dwide.tensor().slice(2, 2, 2 * c.H);
    const Memory dscale = m.memory(cotangents.at("scale"));
    m.backend().run(GatedRowsBackward{dgates, tensors(dbias), dscale.tensor(), gates, keys.tensor(),
                                      use, tensors(bias)});
    Arrays out{{"gates", read(dgates, A)}};
    if (c.bias) {
      out["beta_bias"] = read(dbias[0].tensor(), P);
      out["gamma_bias"] = read(dbias[1].tensor(), P);
    }
    return out;
  };
  return op;
}

Operation embedding(const EmbeddingCase& c) {
  const Values tokens = index_values(c.N, c.V, "tokens");
  const Values positions = index_values(c.N, c.T, "positions");
  Operation op;
  op.inputs["table"] = random_values(A, {c.V, c.C}, "table");
  if (c.positions) op.inputs["position_table"] = random_values(P, {c.T, c.C}, "position table");
  op.differentiated = {"out"};
  op.accumulated = {"table", "position_table"};
  op.forward = [=](Machine& m, const Arrays& in) {
    const Memory table = m.memory(in.at("table")), out = m.unwritten(A, {c.N, c.C});
    const auto extra = optional(m, in, "position_table");
    const Memory token = m.memory(tokens), position = m.memory(positions);
    m.backend().embedding_forward(out.tensor(), token.tensor(), table.tensor(), c.scale,
                                  position.tensor(), tensor_or_none(extra));
    return Arrays{{"out", read(out.tensor(), A)}};
  };
  op.adjoint = [=](Machine& m, const Arrays& in, const Arrays&, const Arrays& cotangents,
                   double existing) {
    const Memory dout = m.memory(cotangents.at("out"));
    const Memory dtable = m.memory(constant_values(P, {c.V, c.C}, existing));
    const auto dextra = optional_gradient(m, in, "position_table", existing);
    const Memory token = m.memory(tokens), position = m.memory(positions);
    m.backend().embedding_backward(dtable.tensor(), c.scale, tensor_or_none(dextra), dout.tensor(),
                                   token.tensor(), position.tensor());
    Arrays out{{"table", read(dtable.tensor(), P)}};
    if (c.positions) out["position_table"] = read(dextra.front().tensor(), P);
    return out;
  };
  return op;
}

Operation cross_entropy(const CrossEntropyCase& c) {
  const double scale = 0.25;
  Values targets = index_values(c.R, c.V, "targets");
  for (size_t r = 1; r < targets.x.size(); r += 3) targets.x[r] = kIgnoreIndex;
  Operation op;
  op.inputs["logits"] = random_values(P, {c.R, c.V}, "logits", 3);
  std::vector<double>& logits = op.inputs["logits"].x;
  for (double& z : logits) z += c.shift;
  for (int64_t r = 1; r <= c.R; ++r) logits[static_cast<size_t>(r * c.V - 1)] += c.peak;
  const auto rows = [c](Machine& m, Role role) {
    return m.unwritten(role, {c.R, (c.V + 3) / 4 * 4});
  };
  op.differentiated = {"losses"};
  op.cotangents["losses"] = constant_values(P, {c.R}, scale);
  op.forward = [=](Machine& m, const Arrays& in) {
    const Memory all = rows(m, P), t = m.memory(targets);
    const Tensor z = all.tensor().slice(1, 0, c.V);
    fill(z, in.at("logits"));
    const Memory losses = m.unwritten(P, {c.R});
    m.backend().cross_entropy(losses.tensor(), {}, z, t.tensor(), 1);
    return Arrays{{"losses", read(losses.tensor(), P)}};
  };
  op.adjoint = [=](Machine& m, const Arrays& in, const Arrays&, const Arrays&, double) {
    const Memory all = rows(m, P), own = rows(m, A), t = m.memory(targets);
    const Tensor z = all.tensor().slice(1, 0, c.V);
    fill(z, in.at("logits"));
    const Memory losses = m.unwritten(P, {c.R});
    const Tensor dz = c.in_place ? z : own.tensor().slice(1, 0, c.V);
    m.backend().cross_entropy(losses.tensor(), dz, z, t.tensor(), scale);
    return Arrays{{"logits", read(dz, c.in_place ? P : A)}};
  };
  return op;
}

}  // namespace bamtrain::testing
