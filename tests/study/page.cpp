// A sweep's page.

#include "study/page.h"

#include "catch.h"

using namespace bamtrain;

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
  CHECK(study_page(t, {8}).find("<td>100.0<br>Welch's p 0.9</td>") != std::string::npos);
  cell.paired = PairedCell{{0.5, 0.125, 0.01, 3}, false, 0.02};
  const std::string page = study_page(t, {8});
  CHECK(page.find("<td><b>100.0</b><br>+50.00 \u00b1 12.50, p 0.02</td>") != std::string::npos);
  CHECK(page.find("Bold: differs from a &amp; b with p &lt; 0.05") != std::string::npos);
  CHECK(page.find("No differences by document: c: why &lt;not&gt;.") != std::string::npos);
  cell.paired->p_holm = 0.06;
  CHECK(study_page(t, {8}).find("<td>100.0<br>+50.00") != std::string::npos);
}

TEST_CASE("the page escapes names and holds the table") {
  const std::string page = study_page(small_table(), {8});
  CHECK(page.find("<h1>small &lt;study&gt;</h1>") != std::string::npos);
  CHECK(page.find("a &amp; b") != std::string::npos);
  CHECK(page.find("50.0 \u00b1 12.5 (62.5)") != std::string::npos);
  CHECK(page.find("1 of 3") != std::string::npos);
  CHECK(page.find("<svg") != std::string::npos);
  CHECK(page == study_page(small_table(), {8}));
}
