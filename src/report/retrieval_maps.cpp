#include "report/retrieval_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/input_file.h"
#include "core/json_digest.h"

namespace bamtrain {

namespace {

using nlohmann::json;

constexpr int64_t kMostBytes = int64_t{16} << 20, kMostLength = int64_t{1} << 40;
constexpr const char* kRemedy = "name what bamtrain eval --task passkey or niah has written";

double share_of(const JsonObject& object, const char* key) {
  const double share = object.number(key);
  if (!(share >= 0 && share <= 1)) {
    (object.where() / key).refuse("a number from 0 to 1", fmt::format("{}", share));
  }
  return share;
}

/// One column of a map.
struct Row {
  std::string task;
  const char* score;
  int64_t length;
  std::vector<double> depths, shares;
};

Row row_of(const JsonObject& row) {
  const char* const score = row.has("exact_match") ? "exact_match" : "recall";
  Row out = {row.text("task"), score, row.count("length", kMostLength), {}, {}};
  for (const json& cell : row.list("cells")) {
    const JsonObject c(cell, row.where() / "cells");
    out.depths.push_back(share_of(c, "depth"));
    out.shares.push_back(share_of(c, score));
  }
  return out;
}

std::vector<double> transposed(const std::vector<Row>& rows) {
  std::vector<double> shares;
  for (size_t d = 0; d < rows[0].depths.size(); ++d) {
    for (const Row& row : rows) shares.push_back(row.shares[d]);
  }
  return shares;
}

HeatMap map_of(const std::vector<Row>& rows) {
  const bool exact = std::string(rows[0].score) == "exact_match";
  HeatMap map = {
      rows[0].task, exact ? "exact match" : "recall", {}, rows[0].depths, transposed(rows)};
  for (const Row& row : rows) map.lengths.push_back(row.length);
  return map;
}

}  // namespace

std::vector<HeatMap> retrieval_maps(const json& result, const JsonPlace& place) {
  std::vector<std::vector<Row>> tasks;
  for (const json& value : JsonObject(result, place).list("scores")) {
    const JsonObject object(value, place / "scores");
    if (!object.has("cells") || object.list("cells").empty()) continue;
    Row row = row_of(object);
    const auto same = std::find_if(tasks.begin(), tasks.end(),
                                   [&](const auto& t) { return t[0].task == row.task; });
    if (same == tasks.end()) {
      tasks.push_back({std::move(row)});
      continue;
    }
    if (row.depths != (*same)[0].depths) {
      (place / "scores").refuse("the same depths at every length", row.task);
    }
    same->push_back(std::move(row));
  }
  std::vector<HeatMap> maps;
  for (const std::vector<Row>& rows : tasks) maps.push_back(map_of(rows));
  return maps;
}

std::vector<HeatMap> read_retrieval_maps(const std::string& path) {
  const InputFile file(path, ExitCode::io, kRemedy);
  const json result = parse_digested_json(file.text(kMostBytes), {path, ExitCode::data, kRemedy});
  std::vector<HeatMap> maps = retrieval_maps(result, {path, ExitCode::data, kRemedy});
  if (maps.empty()) {
    throw Error::fault(ExitCode::data, path, "no scores by depth",
                       "evaluate niah with --task-set depths=20");
  }
  return maps;
}

}  // namespace bamtrain
