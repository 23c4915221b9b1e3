#include "cases.h"

#include <algorithm>
#include <cmath>

#include "attention_case.h"
#include "core/ignore_index.h"
#include "core/rng.h"
#include "named_tensors.h"
#include "roles.h"
#include "scales/registry.h"

namespace bamtrain::testing {

namespace {

Values index_values(int64_t n, int64_t below, const std::string& stream) {
  const Rng rng(29, stream);
  Values v{Role::index, {n}, {}};
  for (int64_t i = 0; i < n; ++i) {
    v.x.push_back(
        static_cast<double>(rng.below(static_cast<uint64_t>(i), static_cast<uint64_t>(below))));
  }
  return v;
}

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
    NamedTensors x(m, in);
    const Tensor rows = x.keep(m.unwritten(A, {c.N, c.O + c.gap}));
    m.backend().linear_forward(rows.slice(1, 0, c.O), x.in("x"), x.in("weight"), x.in("bias"));
    return Arrays{{"y", without_gap(rows, A, c.O)}};
  };
  op.adjoint = [c](Machine& m, const Arrays& in, const Arrays&, const Arrays& cotangents,
                   double existing) {
    NamedTensors x(m, in);
    const Tensor dy = x.keep(m.memory(with_gap(cotangents.at("y"), c.gap))).slice(1, 0, c.O);
    m.backend().linear_backward_input(x.out("x", A, {c.N, c.I}), dy, x.in("weight"));
    m.backend().linear_backward_weight(x.gradient("weight", existing), x.gradient("bias", existing),
                                       dy, x.in("x"));
    return x.results();
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
    NamedTensors x(m, in);
    m.backend().norm_forward(x.out("sum", A, {c.N, c.C}), x.out("y", A, {c.N, c.C}),
                             x.out("stats", P, {c.N, 2}), x.in("residual"), x.in("branch"),
                             x.in("weight"), x.in("bias"), c.kind, eps);
    return x.results();
  };
  op.adjoint = [c](Machine& m, const Arrays& in, const Arrays& saved, const Arrays& cotangents,
                   double existing) {
    NamedTensors x(m, in), forward(m, saved), d(m, cotangents);
    const Tensor dsum = x.gradient("residual", existing, A);
    if (c.branch) x.out("branch", A, dsum);
    m.backend().norm_backward(dsum, x.gradient("weight", existing), x.gradient("bias", existing),
                              d.in("y"), forward.in("sum"), forward.in("stats"), x.in("weight"),
                              c.kind);
    return x.results();
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
    NamedTensors x(m, in);
    m.backend().activation_forward(x.out("out", A, {N, F}), x.in("in"), kind);
    return x.results();
  };
  op.adjoint = [=](Machine& m, const Arrays& in, const Arrays&, const Arrays& cotangents, double) {
    NamedTensors x(m, in), d(m, cotangents);
    m.backend().activation_backward(x.out("in", A, {N, width}), d.in("out"), x.in("in"), kind);
    return x.results();
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
  const auto turn = [=](Machine& m, const Arrays& in, const char* from, const char* to,
                        bool inverse) {
    const Arrays tables = {{"positions", positions}, {"cosine", cosine}, {"sine", sine}};
    NamedTensors x(m, in), of(m, tables);
    const Tensor heads = x.out(to, A, x.in_inside(from, 2, 0, c.H + 2));
    m.backend().rotate(heads, of.in("positions"), of.in("cosine"), of.in("sine"), inverse);
    return x.results();
  };
  Operation op;
  op.inputs["x"] = random_values(A, {c.B, c.T, c.H, c.D}, "x");
  op.differentiated = {"rotated"};
  op.forward = [=](Machine& m, const Arrays& in) { return turn(m, in, "x", "rotated", false); };
  op.adjoint = [=](Machine& m, const Arrays&, const Arrays&, const Arrays& cotangents, double) {
    return turn(m, cotangents, "rotated", "x", true);
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
    NamedTensors x(m, in);
    // After the sums of past tokens, if there are any.
    const Tensor all = x.keep(m.unwritten(Role::wide, {c.B, c.H, c.past + c.T}));
    Tensor before;
    if (c.past > 0) {
      before = all.slice(2, c.past - 1, 1);
      fill(before, in.at("before"));
    }
    m.backend().run(SumsForward{x.out("sums", Role::wide, all.slice(2, c.past, c.T)),
                                x.in_inside("gates", 2, 0, c.H + 3), x.in("bias"), before});
    return x.results();
  };
  if (c.past > 0) {
    op.inputs["before"] = random_values(Role::wide, {c.B, c.H, 1}, "before", 100);
    return op;
  }
  op.adjoint = [=](Machine& m, const Arrays& in, const Arrays&, const Arrays& cotangents,
                   double existing) {
    NamedTensors x(m, in);
    Values d = cotangents.at("sums");
    d.role = P;
    m.backend().run(SumsBackward{x.out("gates", A, x.inside(A, {c.B, c.T, c.H}, 2, 0, c.H + 3)),
                                 x.gradient("bias", existing), x.keep(m.memory(d)),
                                 x.in_inside("gates", 2, 0, c.H + 3), x.in("bias")});
    return x.results();
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
  Operation op;
  op.inputs["gates"] = random_values(A, {c.B, c.T, 2 * c.H}, "gates", 2);
  if (c.bias) {
    op.inputs["beta_bias"] = random_values(P, {c.H}, "beta bias");
    op.inputs["gamma_bias"] = random_values(P, {c.H}, "gamma bias");
  }
  op.differentiated = {"scale"};
  op.accumulated = {"beta_bias", "gamma_bias"};
  using Tensors = std::vector<Tensor>;
  op.forward = [=](Machine& m, const Arrays& in) {
    NamedTensors x(m, in);
    const Tensor gates = x.in_inside("gates", 2, 2, 2 * c.H + 3),
                 keys = x.keep(m.memory(first_key));
    const Tensors bias = {x.in("beta_bias"), x.in("gamma_bias")};
    m.backend().run(GatedRowsForward{x.out("scale", P, {c.B, c.H, c.T}), gates, keys, use,
                                     c.bias ? bias : Tensors()});
    return x.results();
  };
  op.adjoint = [=](Machine& m, const Arrays& in, const Arrays&, const Arrays& cotangents,
                   double existing) {
    NamedTensors x(m, in), d(m, cotangents);
    const Tensor gates = x.in_inside("gates", 2, 2, 2 * c.H + 3),
                 keys = x.keep(m.memory(first_key));
    const Tensors bias = {x.in("beta_bias"), x.in("gamma_bias")};
    const Tensors dbias = {x.gradient("beta_bias", existing), x.gradient("gamma_bias", existing)};
    m.backend().run(GatedRowsBackward{
        x.out("gates", A, x.inside(A, {c.B, c.T, 2 * c.H}, 2, 2, 2 * c.H + 3)),
        c.bias ? dbias : Tensors(), d.in("scale"), gates, keys, use, c.bias ? bias : Tensors()});
    return x.results();
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
    NamedTensors x(m, in);
    m.backend().embedding_forward(x.out("out", A, {c.N, c.C}), x.keep(m.memory(tokens)),
                                  x.in("table"), c.scale, x.keep(m.memory(positions)),
                                  x.in("position_table"));
    return x.results();
  };
  op.adjoint = [=](Machine& m, const Arrays& in, const Arrays&, const Arrays& cotangents,
                   double existing) {
    NamedTensors x(m, in), d(m, cotangents);
    m.backend().embedding_backward(x.gradient("table", existing), c.scale,
                                   x.gradient("position_table", existing), d.in("out"),
                                   x.keep(m.memory(tokens)), x.keep(m.memory(positions)));
    return x.results();
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
  const int64_t stride = (c.V + 3) / 4 * 4;
  op.differentiated = {"losses"};
  op.cotangents["losses"] = constant_values(P, {c.R}, scale);
  op.forward = [=](Machine& m, const Arrays& in) {
    NamedTensors x(m, in);
    m.backend().cross_entropy(x.out("losses", P, {c.R}), {}, x.in_inside("logits", 1, 0, stride),
                              x.keep(m.memory(targets)), 1);
    return x.results();
  };
  op.adjoint = [=](Machine& m, const Arrays& in, const Arrays&, const Arrays&, double) {
    NamedTensors x(m, in);
    const Tensor z = x.in_inside("logits", 1, 0, stride);
    const Tensor dz = c.in_place ? x.out("logits", P, z)
                                 : x.out("logits", A, x.inside(A, {c.R, c.V}, 1, 0, stride));
    m.backend().cross_entropy(x.keep(m.unwritten(P, {c.R})), dz, z, x.keep(m.memory(targets)),
                              scale);
    return x.results();
  };
  return op;
}

}  // namespace bamtrain::testing
