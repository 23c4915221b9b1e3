// Reading what pairs rows of perplexity.json.

#include "record/perplexity_result.h"

#include <nlohmann/json.hpp>

#include "catch.h"
#include "data/files.h"

using namespace bamtrain;
using namespace bamtrain::testing;
using nlohmann::json;

namespace {

json small_result() {
  return json::parse(R"({
    "step": 1, "training_length": 8, "data_fingerprint": "f", "text": "documents",
    "windows": [{"length": 8, "loss": 1.5, "perplexity": 4.5, "targets": "t", "sums": "1.25 4.75"},
                {"length": 16, "loss": 1.5, "perplexity": 4.5, "targets": "t", "sums": "2 4"},
                {"length": 32, "loss": 1.5, "perplexity": 4.5, "targets": "u", "sums": "6"},
                {"length": 64, "loss": 1.5, "perplexity": 4.5}],
    "target_counts": {"t": "1 3", "u": "4"}})");
}

std::string refusal(const json& result) {
  return error_or_none(ExitCode::io, [&] { read_perplexity(result, "r"); });
}

}  // namespace

TEST_CASE("sums and counts by document are read, and older rows have none") {
  const PerplexityResult result = read_perplexity(small_result(), "r");
  REQUIRE(result.windows.size() == 4);
  const std::vector<Cluster>& clusters = result.windows[0].clusters;
  REQUIRE(clusters.size() == 2);
  CHECK(clusters[0].sum == 1.25);
  CHECK(clusters[0].count == 1);
  CHECK(clusters[1].sum == 4.75);
  CHECK(clusters[1].count == 3);
  CHECK(result.windows[3].targets.empty());
  CHECK(result.windows[3].clusters.empty());
  CHECK(have_same_targets(result.windows[0], result.windows[1]));
  CHECK_FALSE(have_same_targets(result.windows[0], result.windows[2]));
  CHECK_FALSE(have_same_targets(result.windows[3], result.windows[3]));
  LengthPerplexity other = result.windows[0];
  other.clusters[0].count = 2;
  CHECK_FALSE(have_same_targets(result.windows[0], other));
}

TEST_CASE("sums that do not fit their counts are refused") {
  const auto with = [](const char* path, const json& value) {
    json result = small_result();
    result[json::json_pointer(path)] = value;
    return refusal(result);
  };
  CHECK(refusal(small_result()).empty());
  CHECK(with("/windows/0/sums", "1.25").find("a sum for each of 2 counts, found 1") !=
        std::string::npos);
  for (const json& sums : {json("1.25 x"), json("1.25  4"), json("1.25,4"), json("nan 1"),
                           json("1e999 1"), json(""), json({1, 2})}) {
    INFO(sums.dump());
    CHECK_FALSE(with("/windows/0/sums", sums).empty());
  }
  for (const json& counts : {json("1"), json("0 3"), json("-1 3"), json("1.5 3"),
                             json("1 99999999999999999"), json({1, 3})}) {
    INFO(counts.dump());
    CHECK_FALSE(with("/target_counts/t", counts).empty());
  }
  CHECK_FALSE(with("/windows/0/targets", "v").empty());
  CHECK_FALSE(with("/windows/0/targets", 3).empty());
}
