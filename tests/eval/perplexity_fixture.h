#pragma once
// A model of two layers in fp64, and a shard of documents whose losses the tests compute one window
// at a time.

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/shard.h"
#include "eval/perplexity.h"
#include "ops/reference/reference.h"
#include "priors/registry.h"
#include "scales/registry.h"
#include "train/support.h"

namespace bamtrain::testing {

inline constexpr int64_t kVocab = 19;

inline ModelConfig tiny_model(const std::string& prior) {
  ModelConfig c;
  c.vocab = kVocab;
  c.width = 8;
  c.layers = 2;
  c.heads = c.kv_heads = 2;
  c.mlp.hidden = 8;
  c.init = InitKind::torch;
  c.attention.prior = PriorChoice(*find_prior(prior));
  c.attention.scale = ScaleChoice(*find_scale("none"));
  return c;
}

/// Writes documents of the given lengths to one shard, each beginning with token 1.
inline std::vector<uint32_t> write_documents(const std::string& path,
                                             const std::vector<int>& lengths) {
  std::vector<uint32_t> ids;
  for (int length : lengths) {
    for (int i = 0; i < length; ++i) {
      const auto x = static_cast<uint32_t>(ids.size());
      ids.push_back(i == 0 ? 1 : 2 + (x * x + 3 * x / 2) % (kVocab - 2));
    }
  }
  ShardWriter w(path, 2);
  w.append(ids);
  w.finish();
  return ids;
}

struct PerplexityFixture {
  Workplace w;
  std::unique_ptr<Backend> backend = make_reference_backend();
  ModelConfig config = tiny_model("alibi");
  ParameterLayout layout{config, 8};
  Arena arena;
  Tensor master_weights;
  std::vector<uint32_t> ids;

  // Documents with room for one longest window (32 + 1), for two (70), and for none (20).
  explicit PerplexityFixture(const std::vector<int>& documents = {40, 20, 70}) {
    std::filesystem::create_directories(w.path("val"));
    ids = write_documents(w.path("val/0.bin"), documents);
    arena.add("masters", &master_weights, Dtype::f64, {layout.elements()});
    arena.commit();
    for (const Parameter& p : layout.all()) {
      initialize(p, config, 8, 5, master_weights.slice(0, p.offset, p.size));
    }
  }

  nlohmann::ordered_json evaluate(const PerplexityRequest& request) {
    return perplexity_against_length(config, 8, *backend, Dtype::f64, master_weights,
                                     ShardSet::open(w.path("val"), kVocab), request,
                                     [](const std::string&, int64_t, double) {});
  }

  /// Losses of one window of `length` inputs, starting at token `begin` of the shard.
  std::vector<double> losses(int64_t begin, int64_t length) {
    Model model(config, 8, *backend, Dtype::f64);
    Arena own;
    model.plan(own, 1, length, ModelUse::evaluation);
    own.commit();
    model.set_master_weights(master_weights);
    model.refresh();
    const std::vector<int32_t> tokens(ids.begin() + begin, ids.begin() + begin + length + 1);
    std::vector<double> out(static_cast<size_t>(length));
    model.evaluate(tokens.data(), tokens.data() + 1, 1, length, std::nullopt, out.data());
    return out;
  }
};

inline double mean(const std::vector<double>& x) {
  double sum = 0;
  for (double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

inline PerplexityRequest request() {
  PerplexityRequest r;
  r.lengths = {8, 32};
  r.document_start = 1;
  return r;
}

}  // namespace bamtrain::testing
