// Greedy decoding of a model on a CUDA device, compared with the logits of the fp64 reference.

#include "eval/greedy_decoding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "catch.h"
#include "core/error.h"
#include "cuda/attention_shapes.h"
#include "cuda/device.h"

namespace bamtrain::testing {
namespace {

using Ids = std::vector<int32_t>;

constexpr int64_t kLongest = 48;  // longest text

/// A model on the device, as the evaluations take it.
struct Writer {
  ModelConfig config;
  Device device = cuda_device();
  Backend& backend = *device.backend;
  Run run;

  explicit Writer(const ModelConfig& c)
      : config(c),
        run(config, Dtype::f32, 1, kLongest, std::move(device), Recompute::none,
            ModelUse::evaluation) {
    round_weights(run);
  }
  std::vector<Ids> written(const std::vector<Ids>& prompts, const GreedyDecodingLimits& limits) {
    return greedy_decode(prompts, limits,
                         {config, kLongest, backend, Dtype::f32, run.master_weights()}, 0,
                         TaskShare{}, [](double) {});
  }
};

TEST_CASE("a device writes the likeliest token, whatever the rest of the batch") {
  for (const char* name : {"bam", "rope", "cable"}) {
    Writer writer(device_config(prior(name)));
    const int64_t V = writer.config.vocab, ids = V - 9;
    const Batch texts = random_batch(5, kLongest, V);
    std::vector<Ids> prompts;
    for (const int64_t length : {30, 3, 17, 30, 1}) {
      const auto row = texts.tokens.begin() + std::ssize(prompts) * kLongest;
      prompts.emplace_back(row, row + length);
    }
    const GreedyDecodingLimits limits = {12, ids, {}};
    const std::vector<Ids> written = writer.written(prompts, limits);
    for (size_t n = 0; n < prompts.size(); ++n) {
      INFO(name << ", prompt " << n);
      REQUIRE(std::ssize(written[n]) == limits.most);
      Ids text = prompts[n];
      text.insert(text.end(), written[n].begin(), written[n].end());
      const auto T = std::ssize(text);
      Run reference(writer.config, Dtype::f64, 1, T, ModelUse::evaluation, kLongest);
      round_weights(reference);
      const std::vector<double> logits = reference.logits({1, T, text, {}, 0});
      for (int64_t i = T - limits.most; i < T; ++i) {
        const auto row = logits.begin() + (i - 1) * V;
        const double likeliest = *std::max_element(row, row + ids);
        const int32_t id = text[static_cast<size_t>(i)];
        CHECK(id < ids);
        // As in tests/model/generation.cpp, for logits below 10.
        CHECK(row[id] >= likeliest - 1000 * kF32);
      }
    }
  }
}

TEST_CASE("a device tells logits that are no numbers where their ids may be written") {
  Writer writer(device_config(prior("bam")));
  std::vector<double> head = writer.run.parameter("lm_head.weight");
  const auto width = static_cast<size_t>(writer.config.width);
  head[40 * width] = std::numeric_limits<double>::quiet_NaN();
  writer.run.set_parameter("lm_head.weight", head);
  CHECK(writer.written({{2, 3}, {4}}, {3, 40, {}})[1].size() == 3);
  CHECK_THROWS_AS(writer.written({{2, 3}, {4}}, {3, 41, {}}), Error);
}

}  // namespace
}  // namespace bamtrain::testing
