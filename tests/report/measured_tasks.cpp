// Tasks in results.json as numbers, by length and as maps, and how a report shows them.

#include "report/measured_tasks.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "catch.h"
#include "core/error.h"
#include "data/files.h"
#include "report/report.h"
#include "report/xml.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// The measured tasks of a run with these results.
MeasuredTasks measured(const std::string& results) {
  const Workplace w;
  const std::string path = w.path("results.json");
  std::ofstream(path) << R"({"format": 1, "complete": true, "name": "n", "config": {},)"
                      << "\"results\": " << results << "}";
  return measured_tasks(Results(path));
}

const char* const kResults = R"({
  "validation": {"loss": 2, "loss_error": 0.1, "step": 3},
  "passkey@512": {"exact_match": 0.5, "exact_match_error": 0.25, "accuracy": null,
                  "accuracy_error": null, "prompts": 4, "step": 3,
                  "cells": [{"depth": 0, "exact_match": 1}, {"depth": 1, "exact_match": 0}]},
  "passkey@128": {"exact_match": 1, "exact_match_error": 0, "accuracy": 1,
                  "accuracy_error": 0, "prompts": 4, "step": 3,
                  "cells": [{"depth": 0, "exact_match": 1}, {"depth": 1, "exact_match": 0.75}]},
  "passkey@0": {"exact_match": 0.75, "exact_match_error": 0.25, "accuracy": 1,
                "accuracy_error": 0, "prompts": 4, "step": 3, "cells": []},
  "mail@home": {"acc": 0.25, "acc_error": 0.125, "loss": 3, "loss_error": 0.5, "step": 3},
  "windows@512": {"perplexity": 20, "perplexity_error": 1},
  "last@512": {"perplexity": 20, "perplexity_error": 1}
})";

}  // namespace

TEST_CASE("numbers of tasks are those with errors, by ascending length") {
  const MeasuredTasks tasks = measured(kResults);
  REQUIRE(tasks.numbers.size() == 4);
  const TaskNumbers& exact = tasks.numbers[0];
  CHECK(exact.task == "passkey");
  CHECK(exact.number == "exact_match");
  REQUIRE(exact.at.size() == 3);
  CHECK(exact.at[0].length == 0);
  CHECK(exact.at[1].length == 128);
  CHECK(exact.at[2].length == 512);
  CHECK(exact.at[2].value == 0.5);
  CHECK(exact.at[2].error == 0.25);
  CHECK(tasks.numbers[1].number == "accuracy");
  CHECK(std::isnan(tasks.numbers[1].at[2].value));
  CHECK(std::isnan(tasks.numbers[1].at[2].error.value()));
  CHECK(tasks.numbers[2].task == "mail@home");  // no length follows the @
  CHECK_FALSE(tasks.numbers[2].at[0].length.has_value());
  CHECK(tasks.numbers[3].number == "loss");
}

TEST_CASE("results with depths are maps, lengths across") {
  const MeasuredTasks tasks = measured(kResults);
  REQUIRE(tasks.maps.size() == 1);
  CHECK(tasks.maps[0].title == "passkey");
  CHECK(tasks.maps[0].lengths == std::vector<int64_t>{128, 512});
  CHECK(tasks.maps[0].depths == std::vector<double>{0, 1});
  CHECK(tasks.maps[0].shares == std::vector<double>{1, 1, 0.75, 0});
}

TEST_CASE("a damaged result is refused by its place") {
  const auto refuses = [](const char* results, const char* part) {
    const std::string message = error_of(ExitCode::io, [&] { measured(results); });
    INFO(message);
    CHECK(message.find(part) != std::string::npos);
  };
  refuses(R"({"a@1": {"acc": "1", "acc_error": 0}})", "results.json: a@1: acc: expected a number");
  refuses(R"({"a@1": {"acc": 1, "acc_error": -1}})", "acc_error: expected 0 or more");
  refuses(R"({"a@1": {"exact_match": 1, "cells": [{"depth": 2, "exact_match": 1}]}})",
          "a number from 0 to 1");
  refuses(R"({"a@1": {"exact_match": 1, "cells": 7}})", "cells");
}

TEST_CASE("a report has a chart and a table of each number, and the maps") {
  RunRecord a, b;
  MetricsLine line = {1, 100, 8, 1e-3, 2, 500, NAN, NAN, NAN};
  a.metrics.add(line);
  b.metrics.add(line);
  a.tasks = measured(kResults);
  b.tasks = measured(R"({"passkey@128": {"exact_match": 0, "exact_match_error": null}})");
  const Runs runs = {{"<a>", "out/a", &a, std::nullopt, 128},
                     {"b", "out/b", &b, std::nullopt, 128}};
  const std::string html = report_html(runs, {});
  CHECK(references_in(html).empty());
  const Xml body = body_of(html);
  std::vector<std::string> captions;
  for (const Xml* c : body.all("figcaption")) captions.push_back(c->text);
  const auto has = [&](const char* caption) {
    return std::count(captions.begin(), captions.end(), caption) == 1;
  };
  CHECK(has("passkey: exact match, %"));
  CHECK_FALSE(has("passkey: accuracy, %"));  // only one length above 0
  CHECK(has("<a>, passkey: exact match, %"));
  const Xml* chart = nullptr;
  for (const Xml* f : body.all("figure")) {
    if (f->all("figcaption")[0]->text == "passkey: exact match, %") chart = f;
  }
  REQUIRE(chart != nullptr);
  CHECK(chart->all("polyline")[0]->at("data-values") == "128,100,0 512,50,25");
  const auto maps = body.of_class("svg", "map");
  REQUIRE(maps.size() == 1);
  CHECK(maps[0]->of_class("rect", "f0").size() == 4);
  std::vector<std::string> cells;
  for (const Xml* cell : body.all("td")) cells.push_back(cell->text);
  const auto shows = [&](const char* text) {
    return std::find(cells.begin(), cells.end(), text) != cells.end();
  };
  CHECK(shows("50.0\u00a0\u00b1\u00a025.0"));
  CHECK(shows("0.0\u00a0\u00b1\u00a0-"));
  CHECK(shows("not finite"));
  CHECK(shows("25.0\u00a0\u00b1\u00a012.5"));  // from a file
}
