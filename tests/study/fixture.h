#pragma once
// A small sweep of a small run.

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "data/files.h"
#include "study/study.h"
#include "train/support.h"

namespace bamtrain::testing {

/// Writes the small run's config to the workplace, for the copy task, measured at two lengths.
inline std::string write_base(const Workplace& w) {
  nlohmann::json c = small_run(w);
  c["model"].erase("vocab");
  c["model"]["attention"] = {{"prior", {{"name", "alibi"}}}};
  const nlohmann::json task = {{"task", "copy"}, {"length", {3, 9}}};
  c["data"] = {{"train", task}, {"val", task}};
  c["train"] = {{"steps", 12}, {"sequences_per_step", 8}, {"micro_batch", 4}, {"lanes", 2}};
  c["checkpoint"] = {{"every", 3}};
  c["eval"] = {{"every", 4},
               {"tokens", 200},
               {"tasks", {{{"task", "copy"}, {"lengths", {9, 18}}, {"samples", 20}}}}};
  c["out_dir"] = w.path("base");
  return write_config(w, "base.json", c);
}

/// Two rows of three seeds.
inline nlohmann::ordered_json small_study(const Workplace& w) {
  return {
      {"study_version", 1},
      {"name", "small"},
      {"config", "base.json"},
      {"out_dir", w.path("study")},
      {"axes",
       {{{"name", "attention"},
         {"values",
          {{"alibi", nlohmann::ordered_json::object()},
           {"rope, base 100", {{"model.attention.prior", {{"name", "rope"}, {"theta", 100}}}}}}}},
        {{"key", "seed"}, {"values", {1, 2, 3}}, {"for", "repeat"}}}},
      {"measures", {"copy@*/loss", "validation/loss"}},
      {"reference", "alibi"}};
}

inline std::string write_study(const Workplace& w, const nlohmann::ordered_json& study,
                               const std::string& name = "study.json") {
  std::ofstream(w.path(name)) << study.dump(2);
  return w.path(name);
}

/// The message of the Error that read_study throws; empty if it throws none.
template <class F>
std::string config_error(F&& f) {
  return error_or_none(ExitCode::config, f);
}

}  // namespace bamtrain::testing
