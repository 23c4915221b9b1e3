// Attention of the last queries on CUDA, compared with the fp64 reference; and incremental decoding
// of models there.

#include <algorithm>
#include <vector>

#include "catch.h"
#include "cuda/attention_shapes.h"
#include "normalizers/registry.h"
#include "ops/normalizer_forms.h"
#include "scales/registry.h"
#include "thinned.h"

namespace bamtrain::testing {
namespace {

void check_last(const AttentionCase& c, int64_t rows, Dtype t) {
  INFO("the last " << rows << " rows");
  check_on_cuda(attention_of_last_rows(c, rows), c, t, cuda_tolerance(c, t));
}

/// Numbers of rows that begin inside a tile, at its start and after its start, and fill less than
/// one tile, one, or more.
constexpr int64_t kRows[] = {1, 70, 64, 7, 130, 33};

TEST_CASE("the last queries on CUDA agree with the reference in every form") {
  size_t n = 0;
  for (TableForm table : table_forms_of_priors()) {
    for (ScaleForm scale : kScaleForms) {
      for (const int64_t D : {16, 64, 128}) {
        AttentionCase c;
        c.B = 1 + static_cast<int64_t>(n % 2);
        c.T = 200;
        c.D = D;
        c.table = table;
        c.scale = scale;
        c.documents = n % 3 == 1;
        c.window = n % 4 == 2 ? 50 : 0;
        const int64_t rows = kRows[n++ % std::size(kRows)];
        check_last(c, rows, Dtype::bf16);
        if (D == 16) check_last(c, rows, Dtype::f32);
      }
    }
  }
}

TEST_CASE("one query of each text on CUDA agrees with the reference in every form") {
  size_t n = 0;
  for (TableForm table : table_forms_of_priors()) {
    for (ScaleForm scale : kScaleForms) {
      AttentionCase c;
      c.B = 1 + static_cast<int64_t>(n % 2);
      c.T = 300;
      c.H = 2 * (1 + static_cast<int64_t>(n % 5));
      c.D = 64;
      c.table = table;
      c.scale = scale;
      c.documents = n % 3 == 1;
      c.window = n++ % 4 == 2 ? 50 : 0;
      check_last(c, 1, Dtype::bf16);
    }
  }
  for (const NormalizerForm& form : every_normalizer()) {
    if (form.kind == NormalizerKind::entmax && form.alpha > 2) continue;
    AttentionCase c;
    c.B = 1;
    c.T = 300;
    c.H = 2 * (1 + static_cast<int64_t>(n++ % 5));
    c.D = 64;
    c.normalizer = form;
    check_last(c, 1, Dtype::bf16);
  }
}

TEST_CASE("one query of each text on CUDA agrees with the reference for every head dimension") {
  for (const int64_t D : {16, 32, 48, 64, 80, 96, 128}) {
    for (const int64_t heads_of_key : {1, 2, 4}) {
      AttentionCase c = one_group(140, D, heads_of_key);
      check_last(c, 1, Dtype::bf16);
      c.normalizer = topk(20);
      check_last(c, 1, Dtype::bf16);
    }
  }
}

TEST_CASE("the last queries on CUDA agree with the reference for every normalizer") {
  size_t n = 0;
  const std::vector<NormalizerForm> normalizers = every_normalizer();
  const std::vector<TableForm> tables = table_forms_of_priors();
  for (size_t row = 0; row < normalizers.size(); ++row) {
    const NormalizerForm& form = normalizers[row];
    if (form.kind == NormalizerKind::entmax && form.alpha > 2) continue;
    for (size_t column = 0; column < tables.size(); ++column) {
      AttentionCase c = one_group(150, 32);
      c.B = 1 + static_cast<int64_t>(n % 2);
      c.table = tables[column];
      c.normalizer = form;
      if (traits_of(form.kind).takes_scale) c.scale = kScaleForms[n % 3];
      c.documents = n % 3 == 1;
      const int64_t rows = kRows[n++ % std::size(kRows)];
      if (!is_run(row, column, 4)) continue;
      check_last(c, rows, Dtype::bf16);
      check_last(c, rows, Dtype::f32);
    }
  }
}

TEST_CASE("the last queries on CUDA agree with the reference where heads are mixed") {
  size_t n = 0;
  for (TableForm table : table_forms_of_priors()) {
    if (reads_content(table)) continue;
    for (const int64_t H : {4, 33}) {
      AttentionCase c;
      c.T = 150;
      c.H = H;
      c.K = H == 33 ? 33 : 2;
      c.table = table;
      c.scale = kScaleForms[n % 3];
      c.mix = table == TableForm::none ? MixForm::add_residual : MixForm::concat_residual;
      c.hidden = 20;
      const int64_t rows = kRows[n++ % std::size(kRows)];
      check_last(c, rows, Dtype::f32);
      c.rounded_weights = true;
      check_last(c, rows, Dtype::bf16);
    }
  }
}

// --- models -------------------------------------------------------------------------------------

using Sizes = std::vector<int64_t>;
const Sizes kPieces = {1, 7, 64, 3, 13};

/// Batched incremental decoding of sequences of length T with this padding, in chunks of kPieces
/// tokens, compared with each sequence alone in the reference.
void check_grown(const ModelConfig& c, const Sizes& padding, int64_t T, Dtype t) {
  const auto B = static_cast<int64_t>(padding.size());
  const int64_t V = c.vocab;
  const Batch texts = random_batch(B, T, V);
  INFO(describe(c) << " in " << name_of(t));
  Device device = cuda_device();
  MemorySource& memory = *device.source;
  Run run(c, t, B, T, std::move(device), Recompute::none, ModelUse::generation);
  round_weights(run);
  std::vector<std::vector<double>> logits(padding.size());
  run.model().begin_decoding(padding);
  for (int64_t at = 0, piece = 0; at < T; ++piece) {
    const int64_t n = std::min(kPieces[static_cast<size_t>(piece) % kPieces.size()], T - at);
    std::vector<int32_t> tokens;
    for (int64_t b = 0; b < B; ++b) {
      const auto row = texts.tokens.begin() + b * T + at;
      tokens.insert(tokens.end(), row, row + n);
    }
    const Memory out(Dtype::f32, {B * n, V}, 0, memory);
    run.model().append(tokens.data(), n, texts.document_start, out.tensor());
    const std::vector<double> rows = read(out.tensor(), Role::parameter).x;
    for (int64_t b = 0; b < B; ++b) {
      const int64_t first = std::clamp<int64_t>(padding[static_cast<size_t>(b)] - at, 0, n);
      std::vector<double>& to = logits[static_cast<size_t>(b)];
      to.insert(to.end(), rows.begin() + (b * n + first) * V, rows.begin() + (b + 1) * n * V);
    }
    at += n;
  }
  for (int64_t b = 0; b < B; ++b) {
    const int64_t own = T - padding[static_cast<size_t>(b)];
    const auto end = texts.tokens.begin() + (b + 1) * T;
    Run whole(c, Dtype::f64, 1, own, ModelUse::evaluation, T);
    round_weights(whole);
    const std::vector<double> truth =
        whole.logits({1, own, {end - own, end}, {}, texts.document_start});
    REQUIRE(logits[static_cast<size_t>(b)].size() == truth.size());
    // As in tests/model/generation.cpp.
    const double allowed = t == Dtype::f32 ? 100 * kF32 : 5 * kBf16;
    CHECK(distance(logits[static_cast<size_t>(b)], truth) <= allowed * norm(truth));
  }
}

TEST_CASE("incremental decoding on CUDA has the logits of whole texts, for every prior") {
  for (const PriorConfig& p : every_prior()) {
    ModelConfig c = device_config(p);
    c.attention.scale = scale("ssmax");
    for (const Dtype t : {Dtype::f32, Dtype::bf16}) check_grown(c, {0, 29}, 90, t);
  }
}

TEST_CASE("incremental decoding on CUDA has the logits of whole texts, for every scale") {
  for (const ScaleInfo& s : all_scales()) {
    ModelConfig c = device_config(prior("cable"));
    c.attention.scale = scale(s.name);
    c.attention.window = 40;
    for (const Dtype t : {Dtype::f32, Dtype::bf16}) check_grown(c, {5, 0}, 90, t);
  }
}

TEST_CASE("incremental decoding on CUDA past a chunk and a window has the logits of whole texts") {
  for (const char* name : {"bam", "cable"}) {
    ModelConfig c = device_config(prior(name));
    c.attention.window = 40;
    check_grown(c, {0, 11}, kMaxPrefillChunk + 90, Dtype::bf16);
  }
}

}  // namespace
}  // namespace bamtrain::testing
