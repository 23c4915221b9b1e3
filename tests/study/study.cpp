// Reading a sweep's file, and what is refused.

#include "study/study.h"

#include "config/fixture.h"
#include "study/fixture.h"

using namespace bamtrain;
using namespace bamtrain::testing;
using nlohmann::ordered_json;

namespace {

std::string refusal(const Workplace& w, const ordered_json& study) {
  return config_error([&] { read_study(write_study(w, study)); });
}

}  // namespace

TEST_CASE("a study says what its runs differ in") {
  const Workplace w;
  ordered_json j = small_study(w);
  j["set"] = {{"train.steps", 9}};
  j["choose"] = {{"metric", "copy@9/accuracy"}, {"mode", "max"}};
  j["axes"].push_back({{"key", "optimizer.lr"}, {"values", {1e-3, 2e-3}}, {"for", "choose"}});
  j["axes"].push_back(
      {{"key", "model.layers"}, {"values", {{"deep", 4}, {"flat", 1}}}, {"name", "depth"}});
  const Study s = read_study(write_study(w, j));
  CHECK(s.name == "small");
  CHECK(s.config == w.path("base.json"));
  CHECK(s.set == StudySettings{{"train.steps", 9}});
  CHECK(s.choose_metric == "copy@9/accuracy");
  CHECK(s.choose_highest);
  REQUIRE(s.axes.size() == 4);
  CHECK(s.axes[0].use == AxisUse::rows);
  CHECK(s.axes[0].values[0].label == "alibi");
  CHECK(s.axes[0].values[0].settings.empty());
  CHECK(s.axes[0].values[1].settings[0].first == "model.attention.prior");
  CHECK(s.axes[1].name == "seed");
  CHECK(s.axes[1].use == AxisUse::repeat);
  CHECK(s.axes[1].values[2].label == "3");
  CHECK(s.axes[2].name == "lr");
  CHECK(s.axes[2].values[0].label == "0.001");
  CHECK(s.axes[3].name == "depth");
  CHECK(s.axes[3].values[0].settings == StudySettings{{"model.layers", 4}});
}

TEST_CASE("what is no study is refused by the key that is not one") {
  const Workplace w;
  const auto with = [&](const char* key, const ordered_json& value) {
    ordered_json j = small_study(w);
    j[key] = value;
    return refusal(w, j);
  };
  const auto without = [&](const char* key) {
    ordered_json j = small_study(w);
    j.erase(key);
    return refusal(w, j);
  };
  for (const char* key : {"study_version", "name", "config", "out_dir", "axes", "measures"}) {
    INFO(key);
    check_mentions(without(key), {key});
  }
  check_mentions(with("study_version", 2), {"study_version", "2"});
  check_mentions(with("mesures", 2), {"mesures", "did you mean measures?"});
  check_mentions(with("name", 3), {"name", "string"});
  check_mentions(with("measures", ordered_json::array()), {"measures", "empty list; add a metric"});
  check_mentions(with("set", {{"out_dir", "x"}}), {"set", "out_dir"});
  check_mentions(with("out_dir", "~/studies"), {"out_dir", "only a shell expands"});
  check_mentions(with("set", 1), {"set", "object"});
  check_mentions(with("name", "a\nb"), {"name", "a non-empty label of one line"});
  for (const char* key : {"", "train.", "seed=1"}) {
    check_mentions(with("set", {{key, 1}}), {"set", "a config key"});
  }
  check_mentions(with("choose", {{"metric", "a/b"}, {"mode", "most"}}), {"choose.mode", "most"});
  check_mentions(with("axes", ordered_json::array()), {"axes"});
  const auto axis = [&](const ordered_json& a) { return with("axes", ordered_json::array({a})); };
  check_mentions(axis({{"key", "seed"}}), {"axes[0].values", "found no values"});
  check_mentions(axis({{"key", "seed"}, {"values", ordered_json::array()}}), {"axes[0].values"});
  check_mentions(axis({{"name", "a"}, {"values", {1, 2}}}), {"axes[0].values", "labels"});
  check_mentions(axis({{"values", {{"a", {{"seed", 1}}}}}}), {"axes[0].name"});
  check_mentions(axis({{"key", "seed"}, {"values", {1, 1}}}),
                 {"axes[0].values[1]", "duplicate value \"1\""});
  check_mentions(axis({{"key", "seed"}, {"values", {1}}, {"for", "row"}}), {"axes[0].for", "row"});
  check_mentions(axis({{"key", "seed"}, {"values", {1}}, {"vaules", {1}}}), {"axes[0].vaules"});
  check_mentions(with("axes", {{{"key", "seed"}, {"values", {1}}},
                               {{"name", "seed"}, {"values", {{"a", {{"seed", 1}}}}}}}),
                 {"axes[1]", "duplicate name \"seed\""});
  check_mentions(with("axes", {{{"key", "seed"}, {"values", {1}}},
                               {{"name", "b"}, {"values", {{"a", {{"seed", 1}}}}}}}),
                 {"axes", "seed in \"seed\" and in \"b\""});
  std::ofstream(w.path("broken.json")) << "{\"name\": 1,}";
  check_mentions(config_error([&] { read_study(w.path("broken.json")); }), {"broken.json"});
}
