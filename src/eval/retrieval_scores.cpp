#include "eval/retrieval_scores.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "core/clustered_mean.h"
#include "core/error.h"
#include "eval/mean_json.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

bool has_number(const ordered_json& object, const std::string& name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number();
}

bool has_share(const ordered_json& object, const std::string& name) {
  if (!has_number(object, name)) return false;
  const auto share = object[name].get<double>();
  return share >= 0 && share <= 1;
}

bool is_cell(const ordered_json& cell, const std::vector<std::string>& names, double depth) {
  if (!cell.is_object() || !has_number(cell, "depth") || cell["depth"] != depth) return false;
  for (const std::string& name : names) {
    if (!has_share(cell, name)) return false;
  }
  return true;
}

}  // namespace

double depth_of(int64_t i, int64_t depths) {
  require(depths >= 2 && i >= 0 && i < depths, "a depth of several");
  return static_cast<double>(i) / static_cast<double>(depths - 1);
}

ordered_json retrieval_row(const std::vector<PromptScores>& scores, int64_t depths) {
  require(!scores.empty() && !scores[0].of_prompts.empty(), "scores of prompts");
  const size_t prompts = scores[0].of_prompts.size(),
               of_depth = prompts / std::max<size_t>(1, static_cast<size_t>(depths));
  require(depths == 0 || of_depth * static_cast<size_t>(depths) == prompts,
          "as many prompts at every depth");
  ordered_json row;
  for (const PromptScores& s : scores) {
    require(s.of_prompts.size() == prompts, "as many prompts of every score");
    std::vector<Cluster> each;
    for (const double x : s.of_prompts) each.push_back({x, 1});
    put_mean(&row, s.name, clustered_mean(each));
  }
  row["prompts"] = prompts;
  for (int64_t i = 0; i < depths; ++i) {
    ordered_json cell = {{"depth", depth_of(i, depths)}};
    for (const PromptScores& s : scores) {
      cell[s.name] =
          mean_of(std::span(s.of_prompts).subspan(static_cast<size_t>(i) * of_depth, of_depth));
    }
    row["cells"].push_back(std::move(cell));
  }
  return row;
}

bool is_retrieval_row(const ordered_json& row, const std::vector<std::string>& names,
                      int64_t depths) {
  if (!row.is_object() || !has_number(row, "prompts")) return false;
  for (const std::string& name : names) {
    const auto error = row.find(name + "_error");
    if (!has_share(row, name) || error == row.end()) return false;
    if (!error->is_number() && !error->is_null()) return false;
  }
  const auto cells = row.find("cells");
  if (depths == 0) return cells == row.end();
  if (cells == row.end() || !cells->is_array() || std::ssize(*cells) != depths) return false;
  for (int64_t i = 0; i < depths; ++i) {
    if (!is_cell((*cells)[static_cast<size_t>(i)], names, depth_of(i, depths))) return false;
  }
  return true;
}

ordered_json depth_means(const std::vector<ordered_json>& rows,
                         const std::vector<std::string>& names) {
  require(!rows.empty(), "a row");
  ordered_json means = ordered_json::array();
  for (size_t i = 0; i < rows[0]["cells"].size(); ++i) {
    ordered_json cell = {{"depth", rows[0]["cells"][i]["depth"]}};
    for (const std::string& name : names) {
      std::vector<double> values;
      for (const ordered_json& row : rows) values.push_back(row["cells"][i][name].get<double>());
      cell[name] = mean_of(values);
    }
    means.push_back(std::move(cell));
  }
  return means;
}

}  // namespace bamtrain
