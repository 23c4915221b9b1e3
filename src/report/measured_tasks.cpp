#include "report/measured_tasks.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_object.h"
#include "report/retrieval_maps.h"

namespace bamtrain {

namespace {

using nlohmann::json;

/// "vt@4096", or "hellaswag".
struct ResultName {
  std::string task;
  std::optional<int64_t> length;
};

ResultName parsed(const std::string& result) {
  const size_t at = result.rfind('@');
  if (at == std::string::npos) return {result, std::nullopt};
  int64_t length = 0;
  const char *const begin = result.data() + at + 1, *const end = result.data() + result.size();
  const auto [stop, error] = std::from_chars(begin, end, length);
  if (error != std::errc() || stop != end || length < 0) return {result, std::nullopt};
  return {result.substr(0, at), length};
}

}  // namespace

MeasuredTasks measured_tasks(const Results& results) {
  const JsonPlace place = {results.path(), ExitCode::io,
                           "remove the file, or restore it from a copy"};
  MeasuredTasks out;
  json rows = json::array();  // in the format of an evaluation
  for (const auto& [result, numbers] : results.all().items()) {
    const ResultName name = parsed(result);
    if (!is_task(name.task)) continue;
    json row = numbers;
    const JsonObject object(row, place / result);
    for (const auto& [number, value] : numbers.items()) {
      const std::string error = number + "_error";
      if (!object.has(error.c_str())) continue;
      if (!value.is_null() && !value.is_number()) {
        (place / result / number).refuse("a number, or null", value.dump());
      }
      auto at = std::find_if(out.numbers.begin(), out.numbers.end(), [&, of = number](auto& n) {
        return n.task == name.task && n.number == of;
      });
      if (at == out.numbers.end()) {
        out.numbers.push_back({name.task, number, {}});
        at = out.numbers.end() - 1;
      }
      at->at.push_back({name.length, value.is_null() ? NAN : value.get<double>(),
                        standard_error(object, error.c_str())});
    }
    if (!name.length || !object.has("cells")) continue;
    row["task"] = name.task;
    row["length"] = static_cast<uint64_t>(*name.length);
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const json& a, const json& b) { return a["length"] < b["length"]; });
  out.maps = retrieval_maps({{"scores", std::move(rows)}}, place);
  for (TaskNumbers& n : out.numbers) {
    std::stable_sort(n.at.begin(), n.at.end(),
                     [](const TaskNumber& a, const TaskNumber& b) { return a.length < b.length; });
  }
  return out;
}

}  // namespace bamtrain
