// Rows and means, compared with numbers worked out by hand.

#include "eval/retrieval_scores.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "catch.h"

using namespace bamtrain;
using nlohmann::ordered_json;

namespace {

// Two prompts at each of three depths.
const std::vector<PromptScores> kScores = {{"exact_match", {1, 1, 0, 1, 0, 0}},
                                           {"accuracy", {1, 1, 0.5, 1, 0.25, 0}}};
const std::vector<std::string> kNames = {"exact_match", "accuracy"};

}  // namespace

TEST_CASE("a row has means over all prompts, their errors, and means by depth") {
  const ordered_json row = retrieval_row(kScores, 3);
  CHECK(row["prompts"] == 6);
  CHECK(row["exact_match"] == 0.5);
  // sqrt(sum of squares / (n (n - 1))): 6 x 0.25 / 30.
  CHECK(row["exact_match_error"].get<double>() == Approx(std::sqrt(1.5 / 30)).epsilon(1e-14));
  CHECK(row["accuracy"] == 0.625);
  CHECK(row["cells"] ==
        ordered_json::array({{{"depth", 0.0}, {"exact_match", 1.0}, {"accuracy", 1.0}},
                             {{"depth", 0.5}, {"exact_match", 0.5}, {"accuracy", 0.75}},
                             {{"depth", 1.0}, {"exact_match", 0.0}, {"accuracy", 0.125}}}));
  CHECK_FALSE(retrieval_row(kScores, 0).contains("cells"));
  CHECK(retrieval_row({{"recall", {0.5}}}, 0) ==
        ordered_json({{"recall", 0.5}, {"recall_error", nullptr}, {"prompts", 1}}));
}

TEST_CASE("depths lie from before all to behind all") {
  CHECK(depth_of(0, 20) == 0);
  CHECK(depth_of(7, 20) == Approx(7.0 / 19));
  CHECK(depth_of(19, 20) == 1);
}

TEST_CASE("means of a depth count every length alike") {
  const std::vector<ordered_json> rows = {
      retrieval_row({{"recall", {1, 0.5, 0, 0}}}, 2),
      retrieval_row({{"recall", {0.25, 0.5}}}, 2),
  };
  CHECK(depth_means(rows, {"recall"}) == ordered_json::array({{{"depth", 0.0}, {"recall", 0.5}},
                                                              {{"depth", 1.0}, {"recall", 0.25}}}));
}

TEST_CASE("a row out of a file is one with its numbers and depths, or none") {
  const ordered_json row = retrieval_row(kScores, 3);
  CHECK(is_retrieval_row(row, kNames, 3));
  CHECK(is_retrieval_row(retrieval_row(kScores, 0), kNames, 0));
  CHECK_FALSE(is_retrieval_row(row, kNames, 2));
  CHECK_FALSE(is_retrieval_row(row, kNames, 0));
  CHECK_FALSE(is_retrieval_row(row, {"recall"}, 3));
  const auto refused = [&](const char* pointer, const ordered_json& value) {
    ordered_json other = row;
    other[ordered_json::json_pointer(pointer)] = value;
    return !is_retrieval_row(other, kNames, 3);
  };
  CHECK(refused("/exact_match", nullptr));
  CHECK(refused("/exact_match", 1.5));
  CHECK(refused("/accuracy_error", "x"));
  CHECK(refused("/prompts", "6"));
  CHECK(refused("/cells", 1));
  CHECK(refused("/cells/1", 1));
  CHECK(refused("/cells/1/depth", 0.25));
  CHECK(refused("/cells/2/accuracy", nullptr));
  CHECK(refused("/cells/2/accuracy", -1));
  CHECK_FALSE(is_retrieval_row(ordered_json(3), kNames, 3));
}
