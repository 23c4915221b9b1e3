// The embedding kernels, compared with fp64.

#include "kernels/embedding.h"

#include "values.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

using Indices = std::vector<int32_t>;

/// n tokens below V: a few are frequent, most are rare.
Indices skewed(size_t n, size_t V) {
  const Rng rng(3, "tokens");
  Indices x;
  for (size_t i = 0; i < n; ++i) {
    const double u = rng.uniform(i);
    x.push_back(static_cast<int32_t>(
        std::min(static_cast<double>(V) * u * u * u * u, static_cast<double>(V - 1))));
  }
  return x;
}
Indices embedding_positions(size_t n, size_t T) {
  Indices x;
  for (size_t i = 0; i < n; ++i) x.push_back(static_cast<int32_t>(i % T));
  return x;
}

template <class A>
void check_forward(size_t N, size_t C, bool with_positions, float scale = 1) {
  INFO("N " << N << " C " << C << " positions " << with_positions << " scale " << scale);
  constexpr size_t kV = 30, kT = 7;
  const Doubles table = normal<A>("table", kV * C), extra = normal<float>("extra", kT * C);
  const Indices tokens = skewed(N, kV), positions = embedding_positions(N, kT);
  const GlobalArray<A> t(elements<A>(table));
  const GlobalArray<float> p(elements<float>(extra));
  const GlobalArray<int32_t> n(tokens), m(positions);
  GlobalArray<A> out(N * C);
  REQUIRE(kernels::embedding_forward<A>(
              {out.data(), n.data(), t.data(), scale, with_positions ? m.data() : nullptr,
               with_positions ? p.data() : nullptr, static_cast<int64_t>(N), static_cast<int>(C)},
              nullptr)
              .ok());
  Doubles truth;
  for (size_t i = 0; i < N * C; ++i) {
    double x = scale * table[static_cast<size_t>(tokens[i / C]) * C + i % C];
    if (with_positions) x += extra[static_cast<size_t>(positions[i / C]) * C + i % C];
    truth.push_back(as<A>(as<float>(x)));  // fp32, then one rounding
  }
  CHECK(doubles(out) == truth);
}

struct Gradients {
  Doubles table, positions;
};

template <class A>
Gradients backward(const Gradients& before, const Doubles& dout, const Indices& tokens,
                   const Indices& positions, size_t C, float scale = 1) {
  const size_t N = tokens.size();
  GlobalArray<float> dtable(elements<float>(before.table));
  GlobalArray<float> dpositions(elements<float>(before.positions));
  const GlobalArray<A> d(elements<A>(dout));
  const GlobalArray<int32_t> n(tokens), m(positions.empty() ? Indices{0} : positions);
  GlobalArray<unsigned char> scratch(static_cast<size_t>(
      kernels::embedding_backward_scratch(static_cast<int64_t>(N), static_cast<int>(C))));
  kernels::EmbeddingBackward<A> g;
  g.dtable = dtable.data();
  g.scale = scale;
  g.dout = d.data();
  g.tokens = n.data();
  g.N = static_cast<int64_t>(N);
  g.C = static_cast<int>(C);
  g.V = static_cast<int>(before.table.size() / C);
  g.scratch = scratch.data();
  if (!positions.empty()) {
    g.dposition_table = dpositions.data();
    g.positions = m.data();
    g.T = static_cast<int>(before.positions.size() / C);
  }
  REQUIRE(kernels::embedding_backward(g, nullptr).ok());
  return {doubles(dtable), doubles(dpositions)};
}

/// Adds row n of d to table[index[n]], and its absolute values to `size`.
void add_rows(Doubles& table, Doubles& size, const Doubles& d, const Indices& index, size_t C) {
  size.assign(table.size(), 0);
  for (size_t i = 0; i < table.size(); ++i) size[i] = std::abs(table[i]);
  for (size_t i = 0; i < d.size(); ++i) {
    const size_t at = static_cast<size_t>(index[i / C]) * C + i % C;
    table[at] += d[i];
    size[at] += std::abs(d[i]);
  }
}

template <class A>
void check_backward(size_t C, size_t V, const Indices& tokens, size_t T = 0) {
  INFO("N " << tokens.size() << " C " << C << " V " << V << " T " << T);
  const Indices positions = T > 0 ? embedding_positions(tokens.size(), T) : Indices{};
  const Gradients before{normal<float>("dtable", V * C), normal<float>("dpositions", T * C + 4)};
  const Doubles dout = normal<A>("dout", tokens.size() * C);
  const Gradients found = backward<A>(before, dout, tokens, positions, C);
  // A row passes through at most 63 sums in its piece, then N / 64 / 8 slots of its warp, then 8
  // warps.
  const double u = (64 + static_cast<double>(tokens.size()) / 512 + 10) * 0x1p-24;
  Doubles truth = before.table, size;
  add_rows(truth, size, dout, tokens, C);
  check_close(found.table, truth, [&](size_t i) { return u * size[i]; });
  if (T == 0) {
    CHECK(found.positions == before.positions);
    return;
  }
  truth = before.positions;
  add_rows(truth, size, dout, positions, C);
  check_close(found.positions, truth, [&](size_t i) { return u * size[i]; });
}

}  // namespace

TEMPLATE_TEST_CASE("embeddings of tokens and positions agree with fp64", "", float, DeviceBf16) {
  for (const bool positions : {false, true}) {
    check_forward<TestType>(1, 8, positions);
    check_forward<TestType>(19, 264, positions);
    check_forward<TestType>(9, 1288, positions);
    check_forward<TestType>(19, 264, positions, 4);  // a power of two: the product is exact
  }
}

TEMPLATE_TEST_CASE("the embedding's adjoint agrees with fp64", "", float, DeviceBf16) {
  check_backward<TestType>(8, 1, {0}, 1);
  check_backward<TestType>(16, 3, {2, 0, 2, 2, 1}, 2);
  check_backward<TestType>(8, 40, skewed(64, 40), 64);
  check_backward<TestType>(40, 2000, skewed(700, 2000), 100);
  check_backward<TestType>(8, 600, skewed(4200, 600), 513);
}

TEMPLATE_TEST_CASE("rows wider than a block are added whole", "", float, DeviceBf16) {
  check_backward<TestType>(1288, 5, skewed(150, 5), 3);
}

TEST_CASE("runs of one token end and begin at and beside the borders of pieces") {
  for (const size_t first : {1, 63, 64, 65, 127, 128, 129, 200}) {
    for (const size_t second : {1, 63, 64, 65, 128, 300}) {
      Indices tokens(first, 4);
      tokens.insert(tokens.end(), second, 9);
      tokens.insert(tokens.end(), 3, 5);  // sorts between the two runs
      check_backward<float>(8, 12, tokens);
    }
  }
}

TEST_CASE("one token for all rows is shared among many pieces") {
  check_backward<DeviceBf16>(8, 3, Indices(64 * 90 + 17, 1));
  Indices most(64 * 70, 513);
  for (size_t i = 0; i < most.size(); i += 9) most[i] = static_cast<int32_t>(i % 1000);
  check_backward<DeviceBf16>(8, 1000, most);
}

TEST_CASE("the end of a run of any number of pieces is found") {
  for (const size_t pieces : {2, 3, 32, 33, 34, 35, 47, 66, 97, 130}) {
    Indices tokens(64 * pieces - 20, 1);
    tokens.insert(tokens.end(), 90, 2);
    check_backward<float>(8, 3, tokens);
  }
}

TEST_CASE("every token of the largest table has its own row") {
  constexpr size_t kV = 1 << 18;
  check_backward<float>(8, kV, {(1 << 18) - 1, 0, 511, 512, 131072, 511, 262143, 131071});
}

TEST_CASE("the table's gradient is scaled, that of the positions is not") {
  const size_t C = 16, V = 3, T = 5;
  for (const size_t N : {40, 700}) {  // runs inside a piece, and across several
    const Indices tokens = skewed(N, V), positions = embedding_positions(N, T);
    const Gradients zero{Doubles(V * C, 0), Doubles(T * C + 4, 0)};
    const Doubles dout = normal<float>("dout", N * C);
    const Gradients plain = backward<float>(zero, dout, tokens, positions, C);
    const Gradients scaled = backward<float>(zero, dout, tokens, positions, C, 4);
    for (size_t i = 0; i < plain.table.size(); ++i) {
      CHECK(scaled.table[i] == 4 * plain.table[i]);  // exact for this factor
    }
    CHECK(scaled.positions == plain.positions);
  }
}

TEST_CASE("rows of equal tokens are added in their order") {
  // In fp32, 2^24 + 1 + 1 is 2^24 from left to right, and 2^24 + 2 from right to left.
  const Gradients before{Doubles(16, 0), Doubles(8, 0)};
  const auto sum_of = [&](const Doubles& rows) {
    Doubles dout;
    Indices tokens;
    for (double x : rows) {
      for (const bool other : {true, false}) {  // with other tokens in between
        dout.insert(dout.end(), 8, other ? 1 : x);
        tokens.push_back(other ? 0 : 1);
      }
    }
    return backward<float>(before, dout, tokens, {}, 8).table[8];
  };
  CHECK(sum_of({0x1p24, 1, 1}) == 0x1p24);
  CHECK(sum_of({1, 1, 0x1p24}) == 0x1p24 + 2);
}

TEST_CASE("the embedding's adjoint gives the same bits in every order of threads and blocks") {
  const Indices tokens = skewed(2500, 700), positions = embedding_positions(2500, 130);
  const Gradients before{normal<float>("dtable", 700 * 8), normal<float>("dpositions", 130 * 8)};
  const Doubles dout = normal<DeviceBf16>("dout", 2500 * 8);
  check_same_under_all_schedules([&] {
    Gradients g = backward<DeviceBf16>(before, dout, tokens, positions, 8);
    g.table.insert(g.table.end(), g.positions.begin(), g.positions.end());
    return g.table;
  });
}

TEST_CASE("embedding kernels refuse what they do not take") {
  GlobalArray<float> x(64);
  GlobalArray<int32_t> n(8);
  kernels::EmbeddingForward<float> f{x.data(), n.data(), x.data(), 1, nullptr, nullptr, 1, 12};
  check_refused(kernels::embedding_forward(f, nullptr));
  f.C = 8;
  f.N = 0;
  check_refused(kernels::embedding_forward(f, nullptr));
  kernels::EmbeddingBackward<float> g;
  g.dtable = x.data();
  g.dout = x.data();
  g.tokens = n.data();
  g.scratch = x.data();
  g.N = 1;
  g.V = 4;
  g.C = 12;
  check_refused(kernels::embedding_backward(g, nullptr));
  g.C = 8;
  g.V = kernels::kEmbeddingMaxRows + 1;
  check_refused(kernels::embedding_backward(g, nullptr));
  g.V = 4;
  g.N = kernels::kEmbeddingMaxN + 1;
  check_refused(kernels::embedding_backward(g, nullptr));
}
