// data.train as a list of weighted sources.

#include <nlohmann/json.hpp>

#include "fixture.h"

using namespace bamtrain;

namespace {

std::string sources_message(const std::string& list) {
  return message(kValid, {"data.train=" + list});
}

}  // namespace

TEST_CASE("sources are read, resolved and read again") {
  const RunConfig c =
      valid_with({R"(data.train=[{"path":"a","weight":3},{"path":"b/*.bin","weight":0.25}])"});
  CHECK(c.data.train.list == std::vector<DataSource>{{"a", 3}, {"b/*.bin", 0.25}});
  const nlohmann::json resolved = resolved_json(c);
  CHECK(resolved["data"]["train"] ==
        nlohmann::json::parse(R"([{"path":"a","weight":3},{"path":"b/*.bin","weight":0.25}])"));
  CHECK(read_run_config_text(resolved.dump(), "again", {}).data.train.list == c.data.train.list);
  // A single source supplies all windows, whatever its weight.
  const RunConfig one = valid_with({R"(data.train=[{"path":"a","weight":3}])"});
  CHECK(one.data.train.list == std::vector<DataSource>{{"a"}});
  CHECK(resolved_json(one)["data"]["train"] == "a");
}

TEST_CASE("weights that are no weights are refused, with the entry") {
  const auto with = [](const std::string& weight) {
    return sources_message(R"([{"path":"a","weight":1},{"path":"b","weight":)" + weight + "}]");
  };
  CHECK(with("0.5").empty());
  CHECK(with("1e12").empty());
  for (const char* weight :
       {"0", "-1", "-0.0", "1e999", "-1e999", "null", "\"1\"", "[1]", "true"}) {
    INFO(weight);
    const std::string text = with(weight);
    INFO(text);
    CHECK_FALSE(text.empty());
    // A number that overflows a double is already invalid JSON.
    if (std::string(weight).find("999") == std::string::npos) {
      check_mentions(text, {"data.train[1].weight", "a number above 0"});
    }
  }
  for (const char* weight : {"NaN", "Infinity"}) CHECK_FALSE(with(weight).empty());
  check_mentions(with("1e-13"), {"data.train[1].weight", "at least 1e-12 of the largest weight"});
  check_mentions(with("1e13"), {"data.train[0].weight"});
}

TEST_CASE(
    "weights whose sum no number holds, or beside which a task is rounded away, are refused") {
  const auto with = [](const std::string& a, const std::string& b) {
    return sources_message(R"([{"path":"a","weight":)" + a + R"(},{"path":"b","weight":)" + a +
                           R"(},{"task":"copy","length":[4,4],"weight":)" + b + "}]");
  };
  check_mentions(with("1e308", "1e308"), {"data.train: expected shard weights with a sum below"});
  check_mentions(with("1", "1e-12"),
                 {"data.train[2].weight", "at least 1e-12 of the sum of the shards' weights"});
  CHECK(with("0.5", "1e-12").find("weight") == std::string::npos);
}

TEST_CASE("lists that name no sources are refused") {
  check_mentions(sources_message("[]"), {"data.train:", "empty list; write the path"});
  check_mentions(sources_message(R"(["a"])"),
                 {"data.train[0]", "path (or task) and weight", "\"a\""});
  check_mentions(sources_message(R"([{"path":"a"}])"), {"data.train[0]", "found no weight"});
  check_mentions(sources_message(R"([{"weight":1}])"), {"data.train[0]", "found no path"});
  for (const char* entry :
       {R"([{"path":"a","weight":1,"wieght":2}])", R"([{"path":"a","wieght":2}])"}) {
    check_mentions(sources_message(entry), {"data.train[0]", "found the unknown key \"wieght\""});
  }
  check_mentions(sources_message(R"([{"path":"","weight":1}])"),
                 {"data.train[0].path", "non-empty"});
  check_mentions(sources_message(R"([{"path":"a","weight":1},{"path":"a","weight":2}])"),
                 {"data.train[1].path", "data.train[0]", "again"});
  check_mentions(sources_message("3"), {"data.train", "string"});
  check_mentions(
      sources_message("{\"path\":\"a\"}"),
      {"data.train: expected a non-empty string or an object with the keys task, length",
       "or an array, each element an object with the keys path, weight or an object with "
       "the keys task",
       "a list of such with weights"});
}
