#include "attention_case.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "catch.h"
#include "core/rng.h"
#include "dense_attention.h"
#include "named_tensors.h"
#include "normalizers/registry.h"
#include "ops/attention_call.h"
#include "priors/fire.h"
#include "roles.h"

namespace bamtrain::testing {

namespace {

BiasForm bias_form(TableForm table) {
  return table < TableForm::falling ? static_cast<BiasForm>(table) : BiasForm::table;
}

}  // namespace

std::vector<TableForm> table_forms_and(std::initializer_list<TableForm> others) {
  std::vector<TableForm> all(std::begin(kTableForms), std::end(kTableForms));
  all.insert(all.end(), others);
  return all;
}

std::vector<TableForm> table_forms_of_priors() {
  std::vector<TableForm> all = table_forms_and({});
  std::replace(all.begin(), all.end(), TableForm::table, TableForm::falling);
  return all;
}

AttentionCase turning_case(size_t n, int64_t T, TableForm table) {
  constexpr int64_t kHeads[][2] = {{1, 1}, {4, 2}, {6, 1}, {3, 3}};
  constexpr int64_t kDimensions[] = {6, 16, 48, 80}, kPositions[] = {64, 5, 17, 2};
  constexpr int64_t kWindows[] = {0, 5, 64, 70, 0, 1};
  AttentionCase c;
  c.T = T;
  c.table = table;
  c.scale = kScaleForms[n % 3];
  c.H = kHeads[n % 4][0];
  c.K = kHeads[n % 4][1];
  c.B = 1 + static_cast<int64_t>(n / 4 % 3);
  c.D = kDimensions[n / 2 % 4];
  c.documents = n / 3 % 2 == 1;
  c.window = kWindows[n / 5 % 6];
  c.zero_scale = n / 6 % 4 == 1;
  c.own_rows = reads_content(table);
  c.positions = kPositions[n / 7 % 4];
  if (n % 5 == 3) c.content_scale = 0.5 / std::sqrt(static_cast<double>(c.D));
  return c;
}

WorkspaceShape workspace_of(const AttentionCase& c) {
  WorkspaceShape shape = Machine::kShape;
  shape.B = std::max(shape.B, c.B);
  shape.H = std::max(shape.H, c.H);
  shape.K = std::max(shape.K, c.K);
  shape.past = std::max<int64_t>(0, c.T - shape.T);
  shape.attention.push_back({.normalizer = c.normalizer, .general_path = c.general});
  shape.bidirectional = !c.causal;
  return shape;
}

bool reads_content(TableForm form) { return bamtrain::reads_content(bias_of(bias_form(form))); }

namespace {

AttentionForm form_of(const AttentionCase& c) {
  AttentionForm f;
  f.scale = c.scale != ScaleForm::none;
  f.scale_bias = c.scale == ScaleForm::both;
  f.content_scale = c.content_scale;
  f.normalizer = c.normalizer;
  f.bias = bias_form(c.table);
  f.mix = c.mix;
  f.mix_hidden = c.hidden;
  f.content_columns = c.positions;
  return f;
}

AttentionShape attention_shape(const AttentionCase& c) {
  return {c.B, c.T, c.H, c.K, c.D, 0, c.positions, c.causal};
}

Role role_of(Dtype t) {  // of an array that form_call requests, with A bf16 and P f32
  return t == Dtype::bf16 ? A : t == Dtype::f32 ? P : t == Dtype::f64 ? Role::wide : Role::index;
}

/// One call in a backend's memory: inputs, and memory for the results.
struct Loaded : NamedTensors {
  AttentionCall x;

  Loaded(const Machine& m, const AttentionCase& c, const Arrays& in) : NamedTensors(m, in) {
    const std::vector<int32_t> first = first_keys(c), last = last_keys(c);
    const auto unwritten = [&](int64_t heads) {
      return keep(m.unwritten(A, {c.B, c.T, heads, c.D}));
    };
    const Tensor inputs = unwritten(c.H + 2 * c.K), gradients = unwritten(c.H + 2 * c.K);
    int64_t begin = 0;
    const auto add_heads = [&](const char* name, int64_t heads, Tensor& t, Tensor& d) {
      t = c.apart ? unwritten(heads) : inputs.slice(2, begin, heads);
      d = c.apart ? unwritten(heads) : gradients.slice(2, begin, heads);
      begin += heads;
      fill(t, in.at(name));
    };
    add_heads("q", c.H, x.a.q, x.g.dq);
    add_heads("k", c.K, x.a.k, x.g.dk);
    add_heads("v", c.K, x.a.v, x.g.dv);
    const auto add = [&](const std::string& name, Tensor* t, Dtype dtype,
                         std::initializer_list<int64_t> dims) {
      if (name == "first_key" || name == "last_key") {
        const std::vector<int32_t>& keys = name == "first_key" ? first : last;
        *t = keep(m.memory({Role::index, dims, {keys.begin(), keys.end()}}));
      } else {
        *t = in.count(name) ? this->in(name) : keep(m.unwritten(role_of(dtype), dims));
      }
    };
    form_call(x, form_of(c), attention_shape(c), Dtype::bf16, Dtype::f32, add);
  }
};

Values table_values(const AttentionCase& c) {
  const int64_t distances = attention_shape(c).distances(), centre = distances - c.T;
  Values v = random_values(P, {c.H, distances}, "table");
  for (int64_t h = 0; h < c.H; ++h) {
    for (int64_t n = 0; n < distances; ++n) {
      const int64_t d = std::abs(n - centre);
      double& b = v.x[static_cast<size_t>(h * distances + n)];
      if (c.table == TableForm::falling) b = -static_cast<double>(n > centre ? d : 2 * d) / 8;
      const bool bounded = c.table == TableForm::bounded || c.table == TableForm::self;
      if (bounded && d % 3 == 1) b = -1e4;
      if (c.table == TableForm::self && h == c.H - 1 && d == 0) b = -1e4;
    }
  }
  return v;
}

Values sums_values(const AttentionCase& c) {
  Values v = random_values(Role::wide, {c.B, c.H, c.T}, "sums", 0.5);
  for (size_t i = 0; i < v.x.size(); ++i) {
    const double before = i % static_cast<size_t>(c.T) == 0 ? 0 : v.x[i - 1];
    v.x[i] = before + std::exp(v.x[i] - 1);
  }
  return v;
}

/// Positive, as most logit scales are. In some rows 0 or negative, if the case asks for it.
Values scale_values(const AttentionCase& c) {
  Values v = random_values(P, {c.B, c.H, c.T}, "scale", 0.4);
  for (size_t i = 0; i < v.x.size(); ++i) {
    v.x[i] = c.zero_scale && i % 3 == 0 ? 0 : std::exp(v.x[i]);
    if (c.below_zero && i % 3 == 1) v.x[i] *= -1;
  }
  return v;
}

/// psi, inverse, and ends of 12 kinks, two of them in the same place; positions as in packed
/// documents.
void add_fire(Arrays& in, const AttentionCase& c) {
  constexpr double kC = 0.4;
  Values psi{P, {c.T}, {}}, psi_dc = psi, inverse = psi, ends{Role::index, {c.T, kFireHidden}, {}};
  for (int64_t t = 0; t < c.T; ++t) {
    const auto x = static_cast<double>(t);
    psi.x.push_back(std::log1p(kC * x));
    psi_dc.x.push_back(x / (kC * x + 1));
    const double N = std::log1p(kC * std::max(x, 10.5));
    inverse.x.push_back(1 / N);
    for (int k = 0; k < kFireHidden; ++k) {
      const double kink = k < 12 ? 0.08 * std::max(k, 1) : INFINITY;
      const double end = std::ceil(std::expm1(kink * N) / kC);
      ends.x.push_back(std::min(end, static_cast<double>(c.T)));
    }
  }
  Values positions{Role::index, {c.B, c.T}, {}};
  for (int64_t n = 0; n < c.B * c.T; ++n) {
    positions.x.push_back(static_cast<double>(n % c.T % (c.documents ? 37 : c.T)));
  }
  in["psi"] = psi;
  in["psi_dc"] = psi_dc;
  in["inverse"] = inverse;
  in["ends"] = ends;
  in["positions"] = positions;
  in["slope"] = random_values(P, {c.H, kFireSegments}, "slope", 0.5);
  in["offset"] = random_values(P, {c.H, kFireSegments}, "offset", 0.5);
}

/// b = <q, E> of size 1. Slopes change little from one position to the next: if a count rounds
/// across a position, the slope is nearly the same.
Values positions_values(const AttentionCase& c) {
  Values v{P, {c.D, c.positions}, {}};
  const double deviation = 1 / std::sqrt(static_cast<double>(c.D));
  const Values of_cosine = random_values(P, {c.D}, "cosine", deviation);
  const Values of_sine = random_values(P, {c.D}, "sine", deviation);
  for (size_t d = 0; d < of_sine.x.size(); ++d) {
    for (int64_t n = 0; n < c.positions; ++n) {
      const double at = static_cast<double>(n) / 32;
      v.x.push_back(of_cosine.x[d] * std::cos(at) + of_sine.x[d] * std::sin(at));
    }
  }
  return v;
}

/// Adds the inputs of any other bias.
void add_bias(Arrays& in, const AttentionCase& c) {
  const auto add = [&in](const char* name, Tensor*, Dtype dtype,
                         std::initializer_list<int64_t> dims) {
    in[name] = random_values(role_of(dtype), dims, name);
  };
  Bias any = bias_of(bias_form(c.table));
  std::visit([&](auto& bias) { bias.plan(attention_shape(c), Dtype::f32, add); }, any);
}

/// (B, T): the start of each token's document. Every token of padding is a document.
std::vector<int64_t> documents_of(const AttentionCase& c) {
  const Rng rng(31, describe(c)), lengths(32, describe(c));
  std::vector<int64_t> begins;
  for (int64_t b = 0; b < c.B; ++b) {
    const auto draw_length = [&] {
      return 1 + static_cast<int64_t>(
                     lengths.below(static_cast<uint64_t>(b), static_cast<uint64_t>(c.T)));
    };
    const int64_t length = c.padding ? draw_length() : c.T;
    int64_t document = 0;
    for (int64_t i = 0; i < c.T; ++i) {
      // Documents of 16 tokens on average; sometimes two of one token are adjacent.
      const uint64_t draw = rng.below(static_cast<uint64_t>(b * c.T + i), 32);
      if (c.documents && (draw < 2 || (draw == 2 && i > 0 && document == i - 1))) document = i;
      begins.push_back(i < length ? document : i);
    }
  }
  return begins;
}
}  // namespace

std::vector<int32_t> first_keys(const AttentionCase& c) {
  std::vector<int32_t> first;
  for (const int64_t document : documents_of(c)) {
    const int64_t i = std::ssize(first) % c.T;
    const int64_t nearest = c.window > 0 ? i - c.window + 1 : 0;
    first.push_back(static_cast<int32_t>(std::max(document, nearest)));
  }
  return first;
}

std::vector<int32_t> last_keys(const AttentionCase& c) {
  const std::vector<int64_t> documents = documents_of(c);
  std::vector<int32_t> last(documents.size());
  int64_t end = 0;  // the document's last token
  for (size_t n = documents.size(); n-- > 0;) {
    const int64_t i = static_cast<int64_t>(n) % c.T;
    if (i + 1 == c.T || documents[n + 1] != documents[n]) end = i;
    const int64_t farthest = c.window > 0 ? i + c.window - 1 : end;
    last[n] = static_cast<int32_t>(c.causal ? i : std::min(end, farthest));
  }
  return last;
}

Values last_of(const Values& v, size_t dim, int64_t n) {
  Values out{v.role, v.shape, {}};
  const int64_t T = v.shape[dim];
  int64_t inner = 1;
  for (size_t d = dim + 1; d < v.shape.size(); ++d) inner *= v.shape[d];
  out.shape[dim] = n;
  for (size_t i = 0; i < v.x.size(); ++i) {
    if (static_cast<int64_t>(i) / inner % T >= T - n) out.x.push_back(v.x[i]);
  }
  return out;
}

namespace {
constexpr const char* kTableTexts[] = {"no",      "normal",      "difference", "log square",
                                       "fire",    "relative",    "contextual", "falling",
                                       "bounded", "bounded self"};
static_assert(std::size(kTableTexts) == static_cast<size_t>(TableForm::self) + 1);
constexpr const char* kScaleTexts[] = {"none", "content", "both"};

std::string normalizer_text(const NormalizerForm& n) {
  if (n.kind == NormalizerKind::softmax) return "";
  std::string text = ", " + all_normalizers().at(static_cast<size_t>(n.kind)).name;
  std::replace(text.begin(), text.end(), '_', ' ');
  if (n.kind == NormalizerKind::entmax) text += " " + std::to_string(n.alpha);
  if (n.kind == NormalizerKind::topk) text += " " + std::to_string(n.keys.number);
  return text + (n.learned ? ", learned" : "");
}
}  // namespace

std::string describe(const AttentionCase& c) {
  std::string s = "B " + std::to_string(c.B) + ", T " + std::to_string(c.T) + ", H " +
                  std::to_string(c.H) + ", K " + std::to_string(c.K) + ", D " +
                  std::to_string(c.D) + ", window " + std::to_string(c.window);
  s += std::string(", ") + kTableTexts[static_cast<int>(c.table)] + " table, scale " +
       kScaleTexts[static_cast<int>(c.scale)];
  if (c.table == TableForm::contextual) s += ", " + std::to_string(c.positions) + " positions";
  if (c.mix) s += ", mix " + std::to_string(static_cast<int>(*c.mix));
  s += normalizer_text(c.normalizer) + (c.documents ? ", documents" : "");
  return s + (c.causal ? "" : ", bidirectional") + (c.padding ? ", padding" : "");
}

void allow_for_logit_readers(Operation& op, const AttentionCase& c) {
  if (!c.mix && !reads_content(c.table)) return;
  op.cancelling["scale"] *= has_sums(c) ? 27 : 4;  // sums reach 27
  if (!c.mix) return;
  op.tolerances["lse"] = 0x1p-15;
  for (const char* name : {"w1", "c1", "w2", "c2"}) op.tolerances[name] = 4 * kBf16;
}

double fp32_tolerance(const AttentionCase& c) {
  const double terms = std::sqrt(static_cast<double>(c.D)) + std::sqrt(static_cast<double>(c.T));
  return 4 * kF32 * (8 + terms + counted_gates(c));
}

double counted_gates(const AttentionCase& c) {
  if (c.table != TableForm::contextual) return 0;
  return static_cast<double>(std::min(c.positions - 1, c.T)) / 32;
}

double normalizer_tolerance(const AttentionCase& c) {
  if (c.normalizer.kind != NormalizerKind::entmax) return 2 * fp32_tolerance(c);
  const double a = c.normalizer.alpha - 1;
  const double logit = kF32 * std::max(1.0, counted_gates(c));
  return 8 * std::max(fp32_tolerance(c), a > 1 ? std::pow(logit, 1 / a) : 0);
}

double mix_tolerance(const AttentionCase& c) {
  const double terms = std::sqrt(2.0 * static_cast<double>(c.H)) +
                       std::sqrt(static_cast<double>(c.hidden)) + (has_sums(c) ? 27 : 0);
  return fp32_tolerance(c) + 4 * kF32 * terms;
}

namespace {
/// (H): sums of a (B, H, T) array over sequences and rows.
Values of_heads(const Values& v, const AttentionCase& c) {
  Values sums{P, {c.H}, std::vector<double>(static_cast<size_t>(c.H), 0.0)};
  for (size_t i = 0; i < v.x.size(); ++i) {
    sums.x[i / static_cast<size_t>(c.T) % static_cast<size_t>(c.H)] += v.x[i];
  }
  return sums;
}

/// Each gradient under the name of its input.
Arrays gradients_of(const AttentionGradients& g, const AttentionCase& c) {
  Arrays out;
  for_tensors(g, [&](const std::string& name, const Tensor& x) {
    if (!x) return;
    if (name == "dfire") {
      const Values both = read(x, Role::wide);
      for (size_t i = 0; i < both.x.size(); ++i) {
        Values& line = out[i % 2 == 0 ? "offset" : "slope"];
        line.role = P;
        line.shape = {both.shape[0], kFireSegments};
        line.x.push_back(both.x[i]);
      }
    } else if (name == "dalpha") {
      out["alphas"] = of_heads(read(x, P), c);
    } else {
      const bool channels = name == "dq" || name == "dk" || name == "dv";
      out[name.substr(1)] = read(x, channels ? A : P);
    }
  });
  return out;
}

/// The mix network's inputs at every (i, j) of each sequence, concatenated. From T 800 on of some
/// rows: kinks matter to derivatives, which are compared at shorter lengths.
std::vector<double> network_inputs(const AttentionCase& c, const Arrays& in) {
  const bool scores = *c.mix != MixForm::bias_only, sums = *c.mix == MixForm::add_residual;
  std::vector<double> all;
  const int64_t step = std::max<int64_t>(1, c.T / 400);
  for (int64_t row = 0; row < c.B * c.T; row += step) {
    const int64_t i = row % c.T, last = c.causal ? i : c.T - 1;
    std::vector<DenseRow> heads;
    for (int64_t h = 0; h < c.H; ++h) heads.emplace_back(c, in, row / c.T, h, i, 0, last);
    for (size_t n = 0; n < heads[0].s.size(); ++n) {
      for (const DenseRow& of : heads) {
        if (scores) all.push_back(of.s[n] + (sums ? of.b[n] : 0));
      }
      for (const DenseRow& of : heads) {
        if (!sums) all.push_back(of.b[n]);
      }
    }
  }
  return all;
}

/// Chooses c1 so that the kinks of the hidden units are far from all logits of the case. At a kink,
/// rounding decides which slope is right, and no difference quotient has either. q and k are bf16
/// values. Returns the largest number that a layer of the network reads in network_inputs().
double add_mix(Arrays& in, const AttentionCase& c) {
  const int64_t I = mix_inputs(*c.mix, c.H), F = c.hidden;
  const double first = 1 / std::sqrt(static_cast<double>(I));
  const double second = 1 / std::sqrt(static_cast<double>(F));
  for (const char* name : {"q", "k"}) {
    for (double& x : in.at(name).x) x = rounded(x, Dtype::bf16);
  }
  const std::vector<double> u = network_inputs(c, in);
  in["w1"] = random_values(P, {F, I}, "w1", first);
  in["c1"] = Values{P, {F}, {}};
  in["w2"] = random_values(P, {c.H, F}, "w2", second);
  in["c2"] = random_values(P, {c.H}, "c2", second);
  for (const char* name : {"w1", "w2"}) {
    if (!c.rounded_weights) break;
    for (double& x : in.at(name).x) x = rounded(x, Dtype::bf16);
  }
  const double* const w1 = in.at("w1").x.data();
  double largest = 0;
  for (const double x : u) largest = std::max(largest, std::abs(x));
  for (int64_t k = 0; k < F; ++k) {
    std::vector<double> units;
    for (size_t at = 0; at < u.size(); at += static_cast<size_t>(I)) {
      units.push_back(std::inner_product(w1 + k * I, w1 + (k + 1) * I, &u[at], 0.0));
    }
    // The widest gap in the middle half; with few (repeating) numbers, in all of them.
    const auto gap = [&units](size_t n) { return units[n + 1] - units[n]; };
    const size_t quarter = units.size() < 64 ? 0 : units.size() / 4;
    const auto [least, most] = std::minmax_element(units.begin(), units.end());
    const double lowest = *least, highest = *most;
    const auto first_of_middle = units.begin() + static_cast<ptrdiff_t>(quarter);
    const auto end_of_middle = units.end() - static_cast<ptrdiff_t>(quarter);
    if (quarter > 0) {
      std::nth_element(units.begin(), first_of_middle, units.end());
      std::nth_element(first_of_middle, end_of_middle, units.end());
    }
    std::sort(first_of_middle, end_of_middle);
    size_t widest = quarter;
    for (size_t n = quarter; n + 1 < units.size() - quarter; ++n) {
      if (gap(n) > gap(widest)) widest = n;
    }
    const double kink =
        units.size() > 1 && gap(widest) > 0 ? units[widest] + gap(widest) / 2 : units[0] - first;
    in["c1"].x.push_back(-kink);
    largest = std::max({largest, highest - kink, kink - lowest});
  }
  return largest;
}
}  // namespace

Operation attention(const AttentionCase& c) {
  Operation op;
  op.inputs["q"] = random_values(A, {c.B, c.T, c.H, c.D}, "q", c.content);
  op.inputs["k"] = random_values(A, {c.B, c.T, c.K, c.D}, "k");
  op.inputs["v"] = random_values(A, {c.B, c.T, c.K, c.D}, "v");
  if (has_sums(c)) {
    op.inputs["numbers"] = sums_values(c);
  } else if (c.table == TableForm::fire) {
    add_fire(op.inputs, c);
  } else if (bias_form(c.table) == BiasForm::table) {
    op.inputs["table"] = table_values(c);
  } else {
    add_bias(op.inputs, c);
  }
  if (c.table == TableForm::contextual) op.inputs.at("positions") = positions_values(c);
  const double read_by_mix = c.mix ? add_mix(op.inputs, c) : 0;
  if (c.scale != ScaleForm::none) op.inputs["scale"] = scale_values(c);
  if (c.normalizer.learned) {
    Values alphas{P, {c.H}, {}};
    for (int64_t h = 0; h < c.H; ++h) {
      alphas.x.push_back(c.normalizer.alpha + 0.15 * static_cast<double>(h));
    }
    op.inputs["alphas"] = alphas;
  }
  op.differentiated = {"out"};
  op.constant = {"psi", "psi_dc", "inverse"};
  // It shifts all logits of a row equally.
  if (traits_of(c.normalizer.kind).sums_to_one) op.constant.emplace_back("c2");
  // dz = p (dP - D) is a difference of numbers of size p sqrt(D), and so are its sums. q and k
  // multiply this by numbers of size 1 / sqrt(D). Averages over n keys fall as sqrt(n). A logit,
  // and lse of a row that sees one key, is s + b, each of size 1.
  const double root_D = std::sqrt(static_cast<double>(c.D));
  const double root_T = std::sqrt(static_cast<double>(c.T));
  op.cancelling = {{"q", 1 / root_T},   {"k", c.content / root_T},  {"table", root_D / root_T},
                   {"numbers", root_D}, {"slope", root_D},          {"offset", root_D},
                   {"fire_u", root_D},  {"fire_psi", root_D},       {"scale", c.content * root_D},
                   {"lse", 1},          {"alphas", root_T * root_D}};
  for (const char* name : {"w1", "w2"}) op.cancelling.emplace(name, read_by_mix * root_D);
  for (const char* name : {"c1", "c2"}) op.cancelling.emplace(name, 2 * root_D);
  Bias any = bias_of(bias_form(c.table));
  std::visit(
      [&](const auto& bias) {
        for_tensors(bias,
                    [&](const char* name, const Tensor&) { op.cancelling.emplace(name, root_D); });
      },
      any);
  // fp32 throughout, whatever the activations.
  op.tolerances = {{"lse", fp32_tolerance(c)}};
  op.workspace = workspace_of(c);
  op.forward = [c](Machine& m, const Arrays& in) {
    const Loaded call(m, c, in);
    const AttentionCall& x = call.x;
    m.backend().attention_forward(x.out, x.saved, x.a);
    Arrays results = {{"out", read(x.out, A)}};
    if (x.saved.level) results["lse"] = read(x.saved.level, P);
    if (x.saved.threshold) results["threshold"] = read(x.saved.threshold, P);
    if (x.saved.last) results["last"] = read(x.saved.last, Role::index);
    return results;
  };
  op.adjoint = [c](Machine& m, const Arrays& in, const Arrays& saved, const Arrays& cotangents,
                   double) {
    const Loaded call(m, c, in);
    const AttentionCall& x = call.x;
    if (c.normalizer.kind == NormalizerKind::softmax && !c.own_rows) {
      fill(x.out, saved.at("out"));
      fill(x.saved.level, saved.at("lse"));
    } else {  // thresholds are compared with the backend's own logits
      m.backend().attention_forward(x.out, x.saved, x.a);
    }
    fill(x.dout, cotangents.at("out"));
    m.backend().attention_backward(x.g, x.dout, x.out, x.saved, x.a);
    return gradients_of(x.g, c);
  };
  return op;
}

namespace {
/// The inputs and the machine of the case.
Operation without_adjoint(const AttentionCase& c) {
  Operation op;
  op.inputs = attention(c).inputs;
  op.workspace = workspace_of(c);
  // Rows that see one key have zero entropy, peaked rows almost zero. lse is as in attention.
  op.cancelling = {{"entropy", 1}, {"lse", 1}};
  op.tolerances = {{"lse", fp32_tolerance(c)}};
  return op;
}
}  // namespace

Operation attention_entropy(const AttentionCase& c) {
  require(c.scale == ScaleForm::none, "a case without a scale");
  Operation op = without_adjoint(c);
  op.forward = [c](Machine& m, const Arrays& in) {
    Loaded call(m, c, in);
    m.backend().attention_entropy(call.out("entropy", P, {c.B, c.H, c.T}), call.x.a);
    return call.results();
  };
  return op;
}

Operation attention_statistics(const AttentionCase& c) {
  Operation op = without_adjoint(c);
  // Rounding may add or remove one key per row, with entmax only.
  op.cancelling["support"] = static_cast<double>(c.T);
  const bool exact = c.normalizer.kind != NormalizerKind::entmax;
  op.tolerances["support"] = exact ? 0 : 1 / static_cast<double>(c.T);
  op.forward = [c](Machine& m, const Arrays& in) {
    Loaded call(m, c, in);
    const AttentionCall& x = call.x;
    if (!in.count("level")) m.backend().attention_forward(x.out, x.saved, x.a);
    m.backend().attention_statistics(call.out("entropy", P, {c.B, c.H, c.T}),
                                     call.out("support", P, {c.B, c.H, c.T}), x.saved, x.a);
    return call.results();
  };
  return op;
}

Operation attention_of_last_rows(const AttentionCase& c, int64_t n) {
  Operation op = without_adjoint(c);
  op.forward = [c, n](Machine& m, const Arrays& in) {
    Loaded call(m, c, in);
    Attention& a = call.x.a;
    a.q = a.q.slice(1, c.T - n, n);
    Values first = last_of(read(a.first_key, Role::index), 1, n);
    for (double& j : first.x) j -= static_cast<double>(c.T - n);
    a.first_key = call.keep(m.memory(first));
    // Of what counts rows, the last: its dimensions are shorter if past keys come first.
    const auto shorten = [&](const char* name, Tensor* t, Dtype, std::vector<int64_t> dims) {
      Values v = in.at(name);
      for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] != v.shape[d]) v = last_of(v, d, n);
      }
      *t = call.keep(m.memory(v));
    };
    AttentionShape shape = attention_shape(c);
    shape.T = n;
    shape.past = c.T - n;
    std::visit([&](auto& bias) { bias.plan(shape, Dtype::f32, shorten); }, a.bias);
    if (a.scale) shorten("scale", &a.scale, Dtype::f32, {c.B, c.H, n});
    const bool softmax = c.normalizer.kind == NormalizerKind::softmax;
    AttentionSaved saved{call.keep(m.unwritten(P, {c.B, c.H, n}))};
    // What a model gives of other normalizers, of as many rows; behind it lie other tensors.
    constexpr int64_t kBehind = 256;
    const int64_t words = c.B * c.H * live_groups(n) * live_words(n);
    const Tensor of_live =
        call.keep(m.memory(constant_values(Role::index, {words + kBehind}, 12345)));
    if (softmax) {
      call.out("lse", P, saved.level);
    } else {
      const Tensor live = of_live.slice(0, 0, words);
      saved = {saved.level, call.keep(m.unwritten(P, {c.B, c.H, n})),
               call.keep(m.unwritten(Role::index, {c.B, c.H, n})),
               live.reshaped({c.B, c.H, live_groups(n), live_words(n)})};
    }
    m.backend().attention_forward(call.out("out", A, {c.B, n, c.H, c.D}), saved, a);
    const std::vector<double> behind = read(of_live, Role::index).x;
    for (int64_t w = words; w < words + kBehind; ++w) {
      require(behind[static_cast<size_t>(w)] == 12345,
              "nothing written behind AttentionSaved::live");
    }
    if (softmax && !a.scale) {
      m.backend().attention_entropy(call.out("entropy", P, {c.B, c.H, n}), a);
    }
    return call.results();
  };
  return op;
}

void check_content_scale(Machine& m, AttentionCase c) {
  AttentionCase scaled = c;
  scaled.content_scale = 4 / std::sqrt(static_cast<double>(c.D));
  INFO(describe(c) << " on " << m.backend().name());
  Operation plain = attention(c), other = attention(scaled);
  other.inputs = plain.inputs = round_to(plain.inputs, m);
  for (double& x : plain.inputs.at("q").x) x *= 4;
  const Pass truth = run(plain, m);
  Pass found = run(other, m);
  for (double& x : found.gradients.at("q").x) x /= 4;
  for (const auto& [name, v] : truth.results) check_equal(found.results.at(name).x, v.x);
  for (const auto& [name, v] : truth.gradients) check_equal(found.gradients.at(name).x, v.x);
  if (c.scale != ScaleForm::none) return;
  check_equal(attention_entropy(scaled).forward(m, other.inputs).at("entropy").x,
              attention_entropy(c).forward(m, plain.inputs).at("entropy").x);
}

void check_edges(Machine& m, AttentionCase c, double bf16_error) {
  const NormalizerForm& form = c.normalizer;
  const bool whole = traits_of(form.kind).sums_to_one;
  // Below alpha 1.01, rounding errors of x = p^(1/1000) are a thousand times those of p.
  const double most = form.kind == NormalizerKind::entmax && form.alpha < 1.1 ? 1e-3 : 1e-5;
  const double least = m.dtype_of(A) == Dtype::bf16 ? bf16_error : most;
  for (double factor : {0.0, 1.0, 1e4}) {
    for (TableForm table : {TableForm::none, TableForm::self}) {
      c.table = table;
      INFO(describe(c) << ", logits times " << factor << " on " << m.backend().name());
      Operation op = attention(c);
      std::fill(op.inputs.at("v").x.begin(), op.inputs.at("v").x.end(), 1.0);
      for (double& x : op.inputs.at("q").x) x *= factor;
      const Pass pass = run(op, m);
      size_t wrong = 0;
      for (double sum : pass.results.at("out").x) {
        wrong += !(sum <= 1 + least && sum >= (whole ? 1 - least : 0));
      }
      CHECK(wrong == 0);
      for (const auto& [name, v] : pass.gradients) {
        INFO(name);
        CHECK(std::all_of(v.x.begin(), v.x.end(), [](double x) { return std::isfinite(x); }));
      }
    }
  }
}

}  // namespace bamtrain::testing
