#include "model/parameter_counts.h"

#include "build.h"
#include "catch.h"

namespace bamtrain::testing {
namespace {

using Parts = std::vector<std::pair<std::string, int64_t>>;

// small_config: 29 tokens, width 24, 20 hidden units of SwiGLU, 4 heads, 2 key-value heads.
constexpr int64_t kEmbedding = 29 * 24, kAttention = 2 * 24 * 24 + 2 * 12 * 24, kMlp = 3 * 20 * 24;

TEST_CASE("the parts of a model have the parameters that one counts by hand") {
  ModelConfig c = small_config();
  c.layers = 1;
  c.attention.prior = prior("bam");
  CHECK(parameter_counts(ParameterLayout(c, 40)) == Parts{{"embedding", kEmbedding},
                                                          {"attention", kAttention},
                                                          {"mlp", kMlp},
                                                          {"norms", 3 * 24},
                                                          {"prior", 3 * 4},
                                                          {"head", kEmbedding}});
  CHECK(
      describe_parameters(ParameterLayout(c, 40)) ==
      "4,644 parameters: embedding 696, attention 1,728, mlp 1,440, norms 72, prior 12, head 696");
}

TEST_CASE("biases count with their matrices, a tied head with the embedding, positions there too") {
  ModelConfig c = small_config();
  c.layers = 1;
  c.bias = c.tied = true;
  c.attention.prior = prior("learned");
  CHECK(parameter_counts(ParameterLayout(c, 40)) ==
        Parts{{"embedding", kEmbedding + 40 * 24},
              {"attention", kAttention + 2 * 24 + 2 * 12},
              {"mlp", kMlp + 2 * 20 + 24},
              {"norms", 3 * 24}});
}

TEST_CASE("a head of classes counts as many rows, with its bias") {
  ModelConfig c = small_config();
  c.layers = 1;
  c.classes = 5;
  c.bias.head = true;
  CHECK(parameter_counts(ParameterLayout(c, 40)).back() ==
        std::pair<std::string, int64_t>{"head", 5 * 24 + 5});
}

TEST_CASE("no parameter is counted in two parts or in none") {
  for (const char* name : {"cable", "cope", "fire", "t5", "transformer_xl"}) {
    ModelConfig c = small_config();
    c.attention.prior = prior(name);
    const ParameterLayout layout(c, 40);
    int64_t all = 0, counted = 0;
    for (const Parameter& p : layout.all()) all += p.size;
    for (const auto& [part, count] : parameter_counts(layout)) counted += count;
    INFO(name);
    CHECK(counted == all);
  }
}

}  // namespace
}  // namespace bamtrain::testing
