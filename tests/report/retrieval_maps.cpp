// Results of passkey and niah as maps, and invalid results.

#include "report/retrieval_maps.h"

#include <nlohmann/json.hpp>

#include "catch.h"
#include "core/error.h"
#include "data/files.h"
#include "tools/support.h"
#include "train/support.h"

using namespace bamtrain;
using nlohmann::json;

namespace {

json row(const char* task, int length, const char* score, std::vector<double> shares) {
  json out = {{"task", task}, {"length", length}, {"cells", json::array()}};
  out[score] = 0.5;
  for (size_t i = 0; i < shares.size(); ++i) {
    const double depth = static_cast<double>(i) / static_cast<double>(shares.size() - 1);
    out["cells"].push_back({{"depth", depth}, {score, shares[i]}});
  }
  return out;
}

json result() {
  return {{"scores",
           {row("niah_single_1", 512, "recall", {1, 0.5}),
            row("niah_single_1", 1024, "recall", {0.25, 0}),
            row("niah_single_2", 512, "recall", {0.75, 1})}}};
}

/// Parses the results as if from a file.
std::vector<HeatMap> maps_of(const json& value) {
  return retrieval_maps(json::parse(value.dump()), {"file", ExitCode::data, "another"});
}

}  // namespace

TEST_CASE("a map of each task, lengths across and depths down") {
  const std::vector<HeatMap> maps = maps_of(result());
  REQUIRE(maps.size() == 2);
  CHECK(maps[0].title == "niah_single_1");
  CHECK(maps[0].value == "recall");
  CHECK(maps[0].lengths == std::vector<int64_t>{512, 1024});
  CHECK(maps[0].depths == std::vector<double>{0, 1});
  CHECK(maps[0].shares == std::vector<double>{1, 0.25, 0.5, 0});
  CHECK(maps[1].shares == std::vector<double>{0.75, 1});
  const auto passkeys = maps_of({{"scores", {row("passkey", 0, "exact_match", {0, 1})}}});
  CHECK(passkeys[0].value == "exact match");
  CHECK(maps_of({{"scores", {{{"task", "vt"}, {"recall", 1}}}}}).empty());
}

TEST_CASE("what is no result is refused by its place") {
  const auto refused = [](const json& value) {
    try {
      maps_of(value);
    } catch (const Error& e) {
      CHECK(e.code() == ExitCode::data);
      return e.where();
    }
    return std::string("none");
  };
  CHECK(refused(json(3)) == "file");
  CHECK(refused(json::object()) == "file: scores");
  CHECK(refused({{"scores", {3}}}) == "file: scores");
  const auto changed = [&](const char* pointer, const json& value) {
    json r = result();
    r[json::json_pointer(pointer)] = value;
    return refused(r);
  };
  CHECK(changed("/scores/0/task", 3) == "file: scores: task");
  CHECK(changed("/scores/0/length", -1) == "file: scores: length");
  CHECK(changed("/scores/0/cells", 1) == "file: scores: cells");
  CHECK(changed("/scores/0/cells/1", 1) == "file: scores: cells");
  CHECK(changed("/scores/0/cells/1/recall", 1.5) == "file: scores: cells: recall");
  CHECK(changed("/scores/0/cells/1/depth", "a") == "file: scores: cells: depth");
  CHECK(changed("/scores/1/cells/1/depth", 0.75) == "file: scores");
}

TEST_CASE("a file without depths has no map, and says how it would have") {
  const testing::Workplace w;
  testing::write_bytes(w.path("a"), R"({"scores": []})");
  testing::write_bytes(w.path("b"), result().dump());
  testing::write_bytes(w.path("c"), "{");
  CHECK(testing::contains(
      testing::error_of(ExitCode::data, [&] { read_retrieval_maps(w.path("a")); }), "depths=20"));
  CHECK(read_retrieval_maps(w.path("b")).size() == 2);
  testing::error_of(ExitCode::data, [&] { read_retrieval_maps(w.path("c")); });
  testing::error_of(ExitCode::io, [&] { read_retrieval_maps(w.path("none")); });
}
