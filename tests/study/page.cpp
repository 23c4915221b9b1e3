// A sweep's page.

#include "study/page.h"

#include <filesystem>
#include <fstream>

#include "catch.h"
#include "report/xml.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

StudyTable small_table() {
  StudyTable t;
  t.name = "small <study>";
  t.row_name = "attention";
  t.groups = {
      {"copy/exact_match", "exact_match", {"copy@8/exact_match", "copy@16/exact_match"}, {8, 16}}};
  const TableCell seeds = {{3, 0.5, 0.125}, 0.625, std::nullopt},
                  single = {{1, 1, std::nullopt}, 1, {}};
  t.rows = {{"a & b", {}, 3, 0, 0, {{seeds, seeds}}}, {"c", {}, 1, 0, 2, {{single, std::nullopt}}}};
  return t;
}

}  // namespace

TEST_CASE("a chart has the means, and a band of one deviation where there are several runs") {
  const Chart c = study_chart(small_table(), 0, {8});
  REQUIRE(c.series.size() == 2);
  CHECK(c.series[0].points[1].x == 16);
  CHECK(c.series[0].points[1].y == 50);  // percent
  CHECK(c.series[0].spread[1].low == 37.5);
  CHECK(c.series[0].spread[1].high == 62.5);
  CHECK(c.series[1].points.size() == 1);
  CHECK(c.series[1].spread.empty());
  REQUIRE(c.marks.size() == 1);
  CHECK(c.marks[0].x == 8);
  CHECK(c.x_ticks == std::vector<double>{8, 16});
}

TEST_CASE("a cell has its difference from the reference, and is bold if that is significant") {
  StudyTable t = small_table();
  t.reference = "a & b";
  t.unpaired = {"c: why <not>"};
  TableCell& cell = *t.rows[1].cells[0][0];
  cell.p = 0.9;
  CHECK(study_page(t, {8}, {}).find("<td>100.0<br/>Welch's p\u00a00.9</td>") != std::string::npos);
  cell.paired = PairedCell{{0.5, 0.125, 0.01, 3}, false, 0.02};
  const std::string page = study_page(t, {8}, {});
  CHECK(page.find("<td><b>100.0</b><br/>+50.00\u00a0\u00b1\u00a012.50, p\u00a00.02</td>") !=
        std::string::npos);
  CHECK(page.find("Bold: differs from a &amp; b with p &lt; 0.05") != std::string::npos);
  CHECK(page.find("No differences by document: c: why &lt;not&gt;.") != std::string::npos);
  cell.paired->p_holm = 0.06;
  CHECK(study_page(t, {8}, {}).find("<td>100.0<br/>+50.00") != std::string::npos);
}

TEST_CASE("the page escapes names and holds the table") {
  const std::string page = study_page(small_table(), {8}, {});
  CHECK(page.find("<h1>small &lt;study&gt;</h1>") != std::string::npos);
  CHECK(page.find("a &amp; b") != std::string::npos);
  CHECK(page.find("50.0\u00a0\u00b1\u00a012.5 (62.5)") != std::string::npos);
  CHECK(page.find("1 of 3") != std::string::npos);
  CHECK(page.find("<svg") == std::string::npos);  // the means do not vary
  StudyTable t = small_table();
  t.rows[0].cells[0][1]->sample.mean = 0.75;
  CHECK(study_page(t, {8}, {}).find("<svg") != std::string::npos);
  CHECK(study_page(t, {8}, {}) == study_page(t, {8}, {}));
}

TEST_CASE("the page links each run to its report, or else its folder, and says its time") {
  const Workplace w;
  namespace fs = std::filesystem;
  Study study;
  study.out_dir = w.path("study");
  std::vector<StudyRun> runs(4);
  const char* const folders[] = {"study/runs/a <1> #2", "earlier/b", "study/runs/c",
                                 "study/runs/d"};
  for (size_t i = 0; i < 4; ++i) {
    runs[i].label = "run <" + std::to_string(i) + ">";
    runs[i].folder = w.path(folders[i]);
    if (i < 3) fs::create_directories(runs[i].folder);
  }
  std::ofstream(runs[0].folder + "/report.html") << "a page";
  std::ofstream(runs[0].folder + "/metrics.jsonl") << "{\"step\": 1, \"seconds\": 15}\n";
  std::ofstream(runs[1].folder + "/metrics.jsonl") << "{\"step\": 1, \"seconds\": 75000}\n";
  StudyTable t = small_table();
  t.kinds = {RunState::Kind::done, RunState::Kind::done, RunState::Kind::diverged,
             RunState::Kind::to_do};
  const Xml body = body_of(study_page(t, {}, page_runs(study, runs, t)));
  const auto links = body.all("a");
  REQUIRE(links.size() == 3);
  CHECK(links[0]->at("href") == "runs/a%20%3C1%3E%20%232/report.html");
  CHECK(links[0]->text == "run <0>");
  CHECK(links[1]->at("href") == "../earlier/b");
  CHECK(links[2]->at("href") == "runs/c");
  const auto items = body.all("li");
  REQUIRE(items.size() == 4);
  CHECK(items[0]->all("span")[0]->text == "15s");
  CHECK(items[1]->all("span")[0]->text == "20h50m");
  CHECK(items[2]->all("em")[0]->text == "diverged");
  CHECK(items[3]->all("em")[0]->text == "open");
  CHECK(items[3]->text.find("run <3>") == 0);
  CHECK(items[3]->all("span").empty());
  CHECK(body.of_class("span", "time")[0]->text == "20h50m");
}
