// The attention kernels on the CPU engine against the fp64 reference backend.

#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "catch.h"
#include "core/arena.h"
#include "core/rng.h"
#include "engine/engine.h"
#include "kernels/attention_backward.cuh"
#include "kernels/attention_forward.cuh"
#include "ops/reference/reference.h"

using namespace bamtrain;
using engine::GlobalArray;
using kernels::AttentionInputs;
using kernels::AttentionSaved;
using kernels::Rows;
using kernels::ScaleMode;
using DeviceBf16 = device::bf16;

namespace {

struct Case {
  int B = 1, T = 64, H = 2, K = 1;
  bool documents = false;
  int window = 0;        // 0: none
  double steepness = 1;  // of the table
};

/// Inputs that both sides can represent: bf16 or fp32.
struct Inputs {
  std::vector<double> qkv;    // (B, T, (H + 2 K) D), bf16
  std::vector<double> dout;   // (B, T, H, D), bf16
  std::vector<double> table;  // (H, T), fp32
  std::vector<double> scale;  // (B, H, T), fp32
  std::vector<int32_t> first_key;
};

double as_bf16(double x) { return static_cast<float>(bf16(static_cast<float>(x))); }

std::vector<double> normal(const std::string& stream, size_t n, double deviation) {
  const Rng rng(5, stream);
  std::vector<double> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = as_bf16(deviation * rng.normal(i));
  return x;
}

Inputs inputs_of(const Case& c, int D) {
  const auto B = static_cast<size_t>(c.B), T = static_cast<size_t>(c.T);
  const auto H = static_cast<size_t>(c.H), K = static_cast<size_t>(c.K), d = static_cast<size_t>(D);
  Inputs x;
  x.qkv = normal("qkv", B * T * (H + 2 * K) * d, 1);
  x.dout = normal("dout", B * T * H * d, 1);
  for (size_t h = 0; h < H; ++h) {
    for (size_t i = 0; i < T; ++i) {
      x.table.push_back(static_cast<float>(-c.steepness * 0.1 * std::sqrt(i) * (1.0 + h)));
    }
  }
  for (size_t n = 0; n < B * H * T; ++n) {
    x.scale.push_back(static_cast<float>(0.5 + 0.3 * static_cast<double>(n % 7)));
  }
  for (int b = 0; b < c.B; ++b) {
    int start = 0;
    for (int t = 0; t < c.T; ++t) {
      if (c.documents && t > 0 && (t * 7 + b * 3) % 41 == 0) start = t;
      x.first_key.push_back(c.window > 0 ? std::max(start, t - c.window + 1) : start);
    }
  }
  return x;
}

using Results = std::map<std::string, std::vector<double>>;

template <class T>
std::vector<T> converted(const std::vector<double>& x) {
  return {x.begin(), x.end()};
}

Results reference(const Case& c, int D, const Inputs& x, bool table, ScaleMode mode) {
  const int64_t B = c.B, T = c.T, H = c.H, K = c.K, W = (H + 2 * K) * D;
  const auto backend = make_reference_backend();
  Arena arena;
  Tensor qkv, dqkv, out, lse, dout, first;
  Attention a;
  AttentionGradients g;
  arena.add("qkv", &qkv, Dtype::f64, {B, T, W});
  arena.add("dqkv", &dqkv, Dtype::f64, {B, T, W});
  arena.add("out", &out, Dtype::f64, {B, T, H, D});
  arena.add("dout", &dout, Dtype::f64, {B, T, H, D});
  arena.add("lse", &lse, Dtype::f64, {B, H, T});
  arena.add("first", &a.first_key, Dtype::i32, {B, T});
  if (table) {
    arena.add("table", &a.table, Dtype::f64, {H, T});
    arena.add("dtable", &g.dtable, Dtype::f64, {H, T});
  }
  if (mode != ScaleMode::none) {
    arena.add("scale", &a.scale, Dtype::f64, {B, H, T});
    arena.add("dscale", &g.dscale, Dtype::f64, {B, H, T});
  }
  a.scale_bias = mode == ScaleMode::both;
  backend->plan(arena, {B, T, H, K, D, H * D, true});
  arena.commit();
  const auto part = [&](const Tensor& all, int64_t begin, int64_t heads) {
    Tensor t(all.ptr<double>() + begin, Dtype::f64, {B, T, heads, D});
    t.stride[0] = T * W;
    t.stride[1] = W;
    return t;
  };
  a.q = part(qkv, 0, H);
  a.k = part(qkv, H * D, K);
  a.v = part(qkv, (H + K) * D, K);
  g.dq = part(dqkv, 0, H);
  g.dk = part(dqkv, H * D, K);
  g.dv = part(dqkv, (H + K) * D, K);
  std::copy(x.qkv.begin(), x.qkv.end(), qkv.ptr<double>());
  std::copy(x.dout.begin(), x.dout.end(), dout.ptr<double>());
  std::copy(x.first_key.begin(), x.first_key.end(), a.first_key.ptr<int32_t>());
  if (table) std::copy(x.table.begin(), x.table.end(), a.table.ptr<double>());
  if (a.scale) std::copy(x.scale.begin(), x.scale.end(), a.scale.ptr<double>());
  backend->attention_forward(out, lse, a);
  backend->attention_backward(g, dout, out, lse, a);
  Results r;
  const auto take = [&](const char* name, const Tensor& t) {
    if (t) r[name].assign(t.ptr<double>(), t.ptr<double>() + t.size());
  };
  take("out", out);
  take("lse", lse);
  take("dqkv", dqkv);
  take("dtable", g.dtable);
  take("dscale", g.dscale);
  return r;
}

std::vector<DeviceBf16> device_bf16(const std::vector<double>& x) {
  std::vector<DeviceBf16> out;
  for (double v : x) {
    const bf16 rounded(static_cast<float>(v));
    DeviceBf16 d;
    std::memcpy(&d, &rounded, sizeof d);
    out.push_back(d);
  }
  return out;
}
std::vector<double> from_device(const GlobalArray<DeviceBf16>& x) {
  std::vector<double> out;
  for (size_t i = 0; i < x.size(); ++i) out.push_back(static_cast<double>(device::to_float(x[i])));
  return out;
}
std::vector<double> from_device(const GlobalArray<float>& x) {
  return {x.data(), x.data() + x.size()};
}

template <int D, bool kTable, ScaleMode kScale>
Results on_engine(const Case& c, const Inputs& x, int parts) {
  const int W = (c.H + 2 * c.K) * D;
  GlobalArray<DeviceBf16> qkv(device_bf16(x.qkv)), dout(device_bf16(x.dout));
  GlobalArray<DeviceBf16> dqkv(x.qkv.size()), out(x.dout.size());
  GlobalArray<float> table(converted<float>(x.table)), scale(converted<float>(x.scale));
  GlobalArray<float> lse(x.scale.size()), row_product(x.scale.size()), dscale(x.scale.size());
  GlobalArray<float> dtable(x.table.size());
  GlobalArray<float> partial(static_cast<size_t>(c.B * c.H * parts) *
                             static_cast<size_t>(kernels::partial_table_floats(c.T)));
  GlobalArray<int32_t> first(x.first_key);
  const auto part = [&](auto* data, int begin) {
    return Rows<std::remove_reference_t<decltype(*data)>>{data + begin, int64_t{c.T} * W, W, D};
  };
  const auto heads = [&](auto* data) {
    return Rows<std::remove_reference_t<decltype(*data)>>{data, int64_t{c.T} * c.H * D,
                                                          int64_t{c.H} * D, D};
  };
  const auto constant = [](Rows<DeviceBf16> r) {
    return Rows<const DeviceBf16>{r.data, r.batch, r.row, r.head};
  };
  AttentionInputs a{constant(part(qkv.data(), 0)),
                    constant(part(qkv.data(), c.H * D)),
                    constant(part(qkv.data(), (c.H + c.K) * D)),
                    table.data(),
                    c.T,
                    scale.data(),
                    first.data(),
                    c.T,
                    c.H,
                    c.H / c.K};
  const auto H = static_cast<uint32_t>(c.H), B = static_cast<uint32_t>(c.B);
  const auto T = static_cast<uint32_t>(c.T), K = static_cast<uint32_t>(c.K);
  const device::Dim3 query_tiles{(T + 63) / 64, H, B}, block{kernels::kThreads, 1, 1};
  REQUIRE(device::launch(kernels::attention_forward<D, kTable, kScale>, query_tiles, block,
                         kernels::attention_forward_shared<D>(), nullptr, a, heads(out.data()),
                         lse.data())
              .ok());
  REQUIRE(device::launch(kernels::attention_backward_rows<D>, {(T + 3) / 4, H, B}, block, 0,
                         nullptr, row_product.data(), constant(heads(out.data())),
                         constant(heads(dout.data())), c.T, c.H)
              .ok());
  const AttentionSaved saved{constant(heads(out.data())), constant(heads(dout.data())), lse.data(),
                             row_product.data()};
  REQUIRE(device::launch(kernels::attention_backward_queries<D, kTable, kScale>, query_tiles, block,
                         kernels::attention_backward_queries_shared<D>(), nullptr, a, saved,
                         part(dqkv.data(), 0), dscale.data())
              .ok());
  REQUIRE(device::launch(kernels::attention_backward_keys<D, kTable, kScale>,
                         {static_cast<uint32_t>(parts), K, B}, block,
                         kernels::attention_backward_keys_shared<D>(kTable), nullptr, a, saved,
                         part(dqkv.data(), c.H * D), part(dqkv.data(), (c.H + c.K) * D),
                         partial.data())
              .ok());
  Results r;
  if (kTable) {
    REQUIRE(device::launch(kernels::attention_backward_table, {(T + 127) / 128, H, 1}, block, 0,
                           nullptr, dtable.data(), int64_t{c.T}, partial.data(), c.B, c.H, c.T,
                           parts)
                .ok());
    r["dtable"] = from_device(dtable);
  }
  if (kScale != ScaleMode::none) r["dscale"] = from_device(dscale);
  r["out"] = from_device(out);
  r["lse"] = from_device(lse);
  r["dqkv"] = from_device(dqkv);
  return r;
}

/// Error norm over the norm of the truth; infinite where something is not finite, or not zero where
/// the truth is.
double relative_error(const std::vector<double>& found, const std::vector<double>& truth) {
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

constexpr double kBf16 = 0x1p-8;  // unit roundoff

/// Roundings to bf16 on the way: p and out; out (in D_i), dz and the gradient; out for sums of dz.
/// lse is fp32 all the way.
double tolerance(const std::string& name) {
  return name == "lse" ? 1e-6 : name == "dqkv" ? 3 * kBf16 : 2 * kBf16;
}

template <int D, bool kTable, ScaleMode kScale>
void compare(const Case& c) {
  INFO("D " << D << " table " << kTable << " scale " << static_cast<int>(kScale) << " B " << c.B
            << " T " << c.T << " H " << c.H << " K " << c.K << " documents " << c.documents
            << " window " << c.window);
  const Inputs x = inputs_of(c, D);
  const Results truth = reference(c, D, x, kTable, kScale);
  engine::counters() = {};
  const Results found = on_engine<D, kTable, kScale>(c, x, 2);
  CHECK(engine::counters().ldmatrix_conflicts == 0);
  REQUIRE(found.size() == truth.size());
  for (const auto& [name, t] : truth) {
    INFO(name);
    CHECK(relative_error(found.at(name), t) < tolerance(name));
  }
}

/// Ragged ends, one row, packed documents, windows, grouped heads, longer than a tile.
template <int D, bool kTable, ScaleMode kScale>
void compare_all_cases() {
  compare<D, kTable, kScale>({1, 1, 2, 1});
  compare<D, kTable, kScale>({2, 64, 2, 2});
  compare<D, kTable, kScale>({2, 130, 4, 2, true});
  compare<D, kTable, kScale>({1, 200, 2, 1, false, 70});
  compare<D, kTable, kScale>({1, 161, 3, 1, true, 33});
}

}  // namespace

TEST_CASE("attention kernels of every form agree with the reference") {
  compare_all_cases<64, false, ScaleMode::none>();
  compare_all_cases<64, false, ScaleMode::content>();
  compare_all_cases<64, true, ScaleMode::none>();
  compare_all_cases<64, true, ScaleMode::content>();
  compare_all_cases<64, true, ScaleMode::both>();
}

TEST_CASE("attention kernels of every head dimension agree with the reference") {
  compare_all_cases<16, true, ScaleMode::content>();
  compare_all_cases<32, true, ScaleMode::content>();
  compare_all_cases<48, true, ScaleMode::content>();
  compare_all_cases<96, true, ScaleMode::content>();
  compare_all_cases<128, true, ScaleMode::content>();
}

TEST_CASE("attention kernels give the same bits in every order of threads, warps and blocks") {
  const Case c{2, 130, 2, 1, true};
  const Inputs x = inputs_of(c, 48);
  const engine::Options before = engine::options();
  std::optional<Results> first;
  for (const engine::Options& schedule : engine::schedules()) {
    engine::options() = schedule;
    const Results r = on_engine<48, true, ScaleMode::content>(c, x, 2);
    if (!first) first = r;
    CHECK(r == *first);
  }
  engine::options() = before;
}

TEST_CASE("more partial tables change the order of sums only") {
  const Case c{1, 200, 2, 1};
  const Inputs x = inputs_of(c, 16);
  const auto one = on_engine<16, true, ScaleMode::none>(c, x, 1);
  const auto four = on_engine<16, true, ScaleMode::none>(c, x, 4);
  // Sums of up to 200 terms in fp32, in two orders.
  CHECK(relative_error(four.at("dtable"), one.at("dtable")) < 200 * 0x1p-24);
  CHECK(four.at("dqkv") == one.at("dqkv"));
}

TEST_CASE("tiles that no query sees are not computed") {
  const auto products = [](const Case& c) {
    engine::counters() = {};
    on_engine<16, true, ScaleMode::none>(c, inputs_of(c, 16), 2);
    return engine::counters().mma;
  };
  // 640 rows are 10 tiles: 55 pairs of tiles in the triangle, 19 in a band two tiles wide.
  const auto all = products({1, 640, 1, 1}), band = products({1, 640, 1, 1, false, 64});
  CHECK(band * 55 == all * 19);
}
