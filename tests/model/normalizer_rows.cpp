// Single rows of every normalizer, compared with golden rows of scripts/golden/normalizers.py:
// weights, and the gradients of logits and alpha.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "../ops/compare.h"
#include "../ops/normalizer_forms.h"
#include "build.h"
#include "catch.h"
#include "checkpoint/safetensors.h"
#include "core/element.h"
#include "golden_options.h"
#include "ops/attention_call.h"

namespace bamtrain::testing {
namespace {

constexpr int64_t kMost = 16;  // keys per row, and channels

/// The golden rows of a normalizer.
class GoldenRows {
 public:
  explicit GoldenRows(const std::string& name) : file_(SafetensorsFile::open(path(name))) {
    const SafetensorsFile::Entry* count = file_.find("rows.count");
    REQUIRE(count != nullptr);
    counts.resize(static_cast<size_t>(count->bytes) / sizeof(int32_t));
    file_.read(*count, counts.data());
    options = nlohmann::json::parse(file_.metadata().at("rows"))["options"];
  }
  std::vector<double> values(const std::string& name) const {
    const SafetensorsFile::Entry* entry = file_.find("rows." + name);
    REQUIRE(entry != nullptr);
    std::vector<double> x(static_cast<size_t>(entry->bytes) / sizeof(double));
    file_.read(*entry, x.data());
    return x;
  }
  size_t rows() const { return counts.size(); }

  std::vector<int32_t> counts;
  nlohmann::json options;  // for each set of rows

 private:
  static std::string path(const std::string& name) {
    const char* root = std::getenv("BAMTRAIN_SOURCE");
    return std::string(root ? root : ".") + "/tests/golden/normalizer_" + name + ".safetensors";
  }
  SafetensorsFile file_;
};

/// n values, starting at `begin`.
std::vector<double> part(const std::vector<double>& x, size_t begin, int64_t n) {
  const auto first = x.begin() + static_cast<int64_t>(begin);
  return {first, first + n};
}

struct Row {
  std::vector<double> p, dz;
  double dalpha = 0;
};

/// The last row of an attention with logits z and output p: only its query is nonzero, and values
/// are unit vectors.
Row row_of(Machine& m, const NormalizerForm& form, const std::vector<double>& z,
           const std::vector<double>& dp) {
  const auto T = static_cast<int64_t>(z.size());
  const Dtype t = m.dtype_of(Role::parameter);
  AttentionCall call;
  std::vector<Memory> memory;
  const auto add = [&](const std::string&, Tensor* x, Dtype dtype,
                       std::initializer_list<int64_t> dims) {
    const Role role = dtype == Dtype::i32 ? Role::index : Role::parameter;
    memory.push_back(m.zeros(role, dims));
    *x = memory.back().tensor();
  };
  form_call(call, {.normalizer = form}, {1, T, 1, 1, kMost}, t, t, add);
  for (Tensor* x : {&call.a.q, &call.a.k, &call.a.v, &call.g.dq, &call.g.dk, &call.g.dv}) {
    add("", x, t, {1, T, 1, kMost});
  }
  put(call.a.q, (T - 1) * kMost, std::sqrt(static_cast<double>(kMost)));
  for (int64_t j = 0; j < T; ++j) {
    put(call.a.k, j * kMost, z[static_cast<size_t>(j)]);
    put(call.a.v, j * kMost + j, 1);
    put(call.dout, (T - 1) * kMost + j, dp[static_cast<size_t>(j)]);
  }
  if (form.learned) put(call.a.alphas, 0, form.alpha);
  m.backend().attention_forward(call.out, call.saved, call.a);
  m.backend().attention_backward(call.g, call.dout, call.out, call.saved, call.a);
  Row row;
  for (int64_t j = 0; j < T; ++j) {
    row.p.push_back(get(call.out, (T - 1) * kMost + j));
    row.dz.push_back(get(call.g.dk, j * kMost));
  }
  if (form.learned) row.dalpha = get(call.g.dalpha, T - 1);
  return row;
}

double largest(const std::vector<double>& x) {
  double most = 0;
  for (double v : x) most = std::max(most, std::abs(v));
  return most;
}

void check_near(const std::vector<double>& found, const std::vector<double>& truth, double limit) {
  double worst = 0;
  for (size_t j = 0; j < truth.size(); ++j) {
    const double e = std::abs(found[j] - truth[j]);
    if (!(e <= worst)) worst = e;
  }
  CHECK(worst <= limit);
}

WorkspaceShape row_shape() {
  return {.B = 1,
          .T = kMost,
          .H = 1,
          .K = 1,
          .D = kMost,
          .C = kMost,
          .attention = {{.general_path = true}}};
}

/// Calls f(machine, u) for the reference and for the CPU with both instruction sets; u is the unit
/// roundoff.
template <class F>
void for_machines(F&& f) {
  Machine reference(Dtype::f64, kNewestIsa, row_shape());
  f(reference, 0x1p-53);
  for (CpuIsa isa : {kNewestIsa, CpuIsa::avx2}) {
    Machine cpu(Dtype::f32, isa, row_shape());
    f(cpu, kF32);
  }
}

TEST_CASE("golden rows of entmax") {
  const GoldenRows g("entmax");
  const std::vector<double> z = g.values("z"), dp = g.values("dp"), p = g.values("p");
  const std::vector<double> dz = g.values("dz_bounded"), margin = g.values("margin");
  const std::vector<double> dalpha = g.values("dalpha_bounded");
  int compared = 0;
  for_machines([&](Machine& m, double u) {
    for (size_t n = 0; n < g.options.size(); ++n) {
      const double alpha = g.options[n]["alpha"], a = alpha - 1;
      for (size_t r = 0; r < g.rows(); ++r) {
        const int64_t T = g.counts[r];
        const size_t at = (n * g.rows() + r) * kMost;
        const std::vector<double> logits = part(z, r * kMost, T), truth = part(p, at, T);
        INFO(m.backend().name() << ", alpha " << alpha << ", row " << r);
        const Row found = row_of(m, entmax(alpha, true), logits, part(dp, r * kMost, T));
        // x = p^a has a rounding error of numbers near 1 and of the logits near the maximum.
        // x^(1/a) multiplies it by x^(1/a - 1) / a. That is largest at x = 1 for alpha below 2,
        // otherwise at the edge.
        const double x = margin[n * g.rows() + r];
        const double rounding = 64 * u * (1 + a);
        const double slope = (a <= 1 ? 1 : std::pow(std::min(x, 1.0), 1 / a - 1)) / a;
        if (a > 1 && x < 1e3 * rounding) continue;  // rounding moves the edge itself
        ++compared;
        check_near(found.p, truth, rounding * slope);
        // u (dP - D) cancels where u is large, so errors are relative to the largest u.
        double steepest = 1;
        for (double w : truth) {
          if (w > 0 && a > 1) steepest = std::max(steepest, std::pow(w, 1 - a) * (a / x));
        }
        const std::vector<double> dtruth = part(dz, at, T);
        check_near(found.dz, dtruth, 16 * rounding * slope * steepest * (1 + largest(dtruth)));
        const double of_alpha = dalpha[n * g.rows() + r];
        CHECK(std::abs(found.dalpha - of_alpha) <=
              64 * rounding * slope * steepest * (1 + std::abs(of_alpha)) / (a * a));
      }
    }
  });
  CHECK(compared > 3 * 150);
}

TEST_CASE("golden rows of every normalizer but entmax") {
  const auto check = [](Machine& m, double u, const GoldenRows& g, const NormalizerChoice& choice,
                        size_t n) {
    const std::vector<double> z = g.values("z"), dp = g.values("dp");
    const std::vector<double> p = g.values("p"), dz = g.values("dz");
    const NormalizerForm form = choice.info().form_of(choice.options);
    for (size_t r = 0; r < g.rows(); ++r) {
      const int64_t T = g.counts[r];
      const size_t at = (n * g.rows() + r) * kMost;
      INFO(m.backend().name() << ", " << choice.name() << " " << n << ", row " << r);
      const std::vector<double> logits = part(z, r * kMost, T);
      const Row found = row_of(m, form, logits, part(dp, r * kMost, T));
      // A logit of size |z| has an error of u |z|, and so does the log of a row's sum. Only keys
      // with weight count.
      const std::vector<double> truth = part(p, at, T);
      double size = 1;
      for (size_t t = 0; t < truth.size(); ++t) {
        if (truth[t] > 0) size = std::max(size, std::abs(logits[t]));
      }
      const double rounding = 8 * u * (8 + size);
      check_near(found.p, truth, rounding);
      check_near(found.dz, part(dz, at, T), rounding * (1 + largest(part(dz, at, T))));
    }
  };
  for (const NormalizerInfo& info : all_normalizers()) {
    if (info.kind == NormalizerKind::entmax) continue;
    const GoldenRows g(info.name);
    REQUIRE(g.options.size() > 0);
    for_machines([&](Machine& m, double u) {
      for (size_t n = 0; n < g.options.size(); ++n) {
        check(m, u, g, normalizer(info.name, options_of(g.options[n])), n);
      }
    });
  }
}

}  // namespace
}  // namespace bamtrain::testing
