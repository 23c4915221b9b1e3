// Tables of results written here, compared with means worked out by hand.

#include "study/table.h"

#include <filesystem>

#include "study/fixture.h"

using namespace bamtrain;
using namespace bamtrain::testing;
using nlohmann::ordered_json;

namespace {

/// Accuracy at two lengths and the validation loss, as a finished run leaves them.
void write_finished(const StudyRun& run, double at9, double at18, double loss) {
  std::filesystem::create_directories(run.folder);
  Results results(run.folder + "/" + kResultsFile);
  results.set_run(run.slug, run.resolved);
  results.set("validation", {{"loss", loss}});
  results.set("copy@18", {{"accuracy", at18}, {"accuracy_error", 0.01}});
  results.set("copy@9", {{"accuracy", at9}, {"accuracy_error", 0.02}});
  results.set_complete();
  results.write();
}

ordered_json study_of(const Workplace& w) {
  write_base(w);
  ordered_json j = small_study(w);
  j["measures"] = {"copy@*/accuracy", "validation/loss"};
  return j;
}

}  // namespace

TEST_CASE("rows are means over repeats") {
  const Workplace w;
  const Study study = read_study(write_study(w, study_of(w)));
  const std::vector<StudyRun> runs = runs_of(study);
  write_finished(runs[0], 0.5, 0.25, 1);
  write_finished(runs[1], 0.6, 0.25, 2);
  write_finished(runs[2], 0.7, 0.25, 3);
  write_finished(runs[3], 1, 0, 4);
  write_finished(runs[4], 0.9, 0, 6);
  const StudyTable t = table_of(study, runs);
  REQUIRE(t.groups.size() == 2);
  CHECK(t.groups[0].name == "copy/accuracy");
  CHECK(t.groups[0].lengths == std::vector<int64_t>{9, 18});
  CHECK(t.groups[1].lengths.empty());
  REQUIRE(t.rows.size() == 2);
  const TableCell& at9 = *t.rows[0].cells[0][0];
  CHECK(at9.sample.mean == Approx(0.6));
  CHECK(*at9.sample.standard_deviation == Approx(0.1));
  CHECK(at9.best == 0.7);
  CHECK_FALSE(at9.p);
  CHECK(t.rows[0].cells[1][0]->best == 1);  // the lowest loss
  CHECK(t.rows[1].done == 2);
  CHECK(t.rows[1].open == 1);
  CHECK(*t.rows[1].cells[0][0]->p ==
        *welch_p(t.rows[1].cells[0][0]->sample, t.rows[0].cells[0][0]->sample));
  const std::string text = markdown(t);
  INFO(text);
  CHECK(text.find("## copy: accuracy (%), by length\n\n| attention | n | 9 | 18 |\n") !=
        std::string::npos);
  CHECK(text.find("| alibi | 3 | 60.0 ± 10.0 (70.0) | 25.0 ± 0.0 (25.0) |\n") != std::string::npos);
  CHECK(text.find("| rope, base 100 | 2 of 3 | 95.0 ± 7.1 (100.0) | 0.0 ± 0.0 (0.0) |\n") !=
        std::string::npos);
  // Two seeds of both: differences of 50 and 30 points, and of -25 twice.
  CHECK(text.find("Difference from alibi, paired by seed:\n\n| attention | 9 | 18 |\n") !=
        std::string::npos);
  CHECK(text.find("| rope, base 100 | +40.00 ± 10.00 (p 0.1560) | -25.00 ± 0.00 |\n") !=
        std::string::npos);
  const std::string lines = csv(t);
  CHECK(lines.find("\"rope, base 100\",,copy@18/accuracy,2,0,0,0,,-0.25,0,2,run,,\n") !=
        std::string::npos);
  CHECK(runs_csv(t).find("alibi,\"alibi, seed 1\",copy@9/accuracy,0.5,0.02\n") !=
        std::string::npos);
  const std::string tex = latex(t);
  CHECK(tex.find("\n{rope, base 100} & 2 of 3 & 95.0 $\\pm$ 7.1 (100.0)") != std::string::npos);
  CHECK(tex.find("copy: accuracy (\\%), by length") != std::string::npos);
}

TEST_CASE("the best of the values to choose is taken for each row, by validation") {
  const Workplace w;
  ordered_json j = study_of(w);
  j["axes"].push_back({{"key", "optimizer.lr"}, {"values", {1, 2}}, {"for", "choose"}});
  Study study = read_study(write_study(w, j));
  const std::vector<StudyRun> runs = runs_of(study);
  REQUIRE(runs.size() == 12);
  // alibi: 1 has the better mean, although the best single run is of 2; rope: 2 has it.
  const double losses[] = {3, 3, 3, 1, 5, 5, 3, 3, 3, 2, 2, 2};
  for (size_t i = 0; i < 12; ++i) write_finished(runs[i], i < 6 ? 0.25 : 0.5, 0, losses[i]);
  StudyTable t = table_of(study, runs);
  CHECK(t.choices == std::vector<std::string>{"lr"});
  CHECK(t.rows[0].chosen == std::vector<std::string>{"1"});
  CHECK(t.rows[1].chosen == std::vector<std::string>{"2"});
  CHECK(t.rows[0].done == 3);
  CHECK(markdown(t).find("| attention | lr | n | 9 | 18 |") != std::string::npos);
  CHECK(t.at_ends == std::vector<std::string>{"alibi: lr 1", "rope, base 100: lr 2"});
  CHECK(markdown(t).find("may lie beyond: alibi: lr 1; rope, base 100: lr 2.") !=
        std::string::npos);
  // While runs with other values are pending, neither the best value nor p is known.
  for (size_t i = 0; i < 3; ++i) write_finished(runs[i], 0.25 + 0.1 * static_cast<double>(i), 0, 3);
  CHECK(table_of(study, runs).rows[1].cells[0][0]->p);
  std::filesystem::remove_all(runs[3].folder);
  t = table_of(study, runs);
  CHECK(t.rows[0].chosen == std::vector<std::string>{"1"});
  CHECK(t.rows[0].not_compared == 1);
  CHECK_FALSE(t.rows[1].cells[0][0]->p);
  CHECK(markdown(t).find("| alibi | 1 | 3, 1 of other values open |") != std::string::npos);
  write_finished(runs[3], 0.25, 0, 1);
  study.choose_highest = true;
  t = table_of(study, runs);
  CHECK(t.rows[0].chosen == std::vector<std::string>{"2"});
  CHECK(t.rows[1].chosen == std::vector<std::string>{"1"});
  // A value with fewer finished repeats does not win, whatever their mean.
  study.choose_highest = false;
  std::filesystem::remove_all(runs[11].folder);
  record_diverged(study, runs[11], "loss nan");
  t = table_of(study, runs);
  CHECK(t.rows[1].chosen == std::vector<std::string>{"1"});
  REQUIRE(t.diverged.size() == 1);
  CHECK(markdown(t).find("Diverged: " + runs[11].label) != std::string::npos);
}

TEST_CASE("values that are chosen within their axis, or are no numbers, are at no end") {
  const Workplace w;
  ordered_json j = study_of(w);
  j["axes"][1]["values"] = {1};
  j["axes"].push_back({{"key", "optimizer.lr"}, {"values", {2, 10, 1}}, {"for", "choose"}});
  j["axes"].push_back(
      {{"key", "schedule.name"}, {"values", {"cosine", "constant"}}, {"for", "choose"}});
  const Study study = read_study(write_study(w, j));
  const std::vector<StudyRun> runs = runs_of(study);
  REQUIRE(runs.size() == 12);
  for (const StudyRun& run : runs) {
    const bool alibi = run.row == "alibi";
    const bool best = run.chosen[0] == (alibi ? "2" : "10");
    write_finished(run, 0.5, 0, best ? 1 : 2);
  }
  const StudyTable t = table_of(study, runs);
  CHECK(t.rows[0].chosen[0] == "2");
  CHECK(t.at_ends == std::vector<std::string>{"rope, base 100: lr 10"});
}

TEST_CASE("a study of which nothing is done has an empty table") {
  const Workplace w;
  const Study study = read_study(write_study(w, study_of(w)));
  const StudyTable t = table_of(study, runs_of(study));
  CHECK(t.groups.empty());
  CHECK(t.rows.size() == 2);
  CHECK(markdown(t).find("# small") == 0);
}

TEST_CASE("a number without a length is no column of those with one, whatever its name") {
  const Workplace w;
  ordered_json j = study_of(w);
  j["axes"] = {{{"key", "seed"}, {"values", {1}}}};
  j["measures"] = {"z*/loss"};
  j["set"] = {{"eval.tasks",
               {{{"task", "copy"}, {"name", "z"}, {"lengths", {9, 18}}, {"samples", 20}},
                {{"task", "cloze"}, {"name", "z"}, {"file", w.path("none")}}}}};
  j.erase("reference");
  const Study study = read_study(write_study(w, j));
  const std::vector<StudyRun> runs = runs_of(study);
  std::filesystem::create_directories(runs[0].folder);
  Results results(runs[0].folder + "/" + kResultsFile);
  results.set_run(runs[0].slug, runs[0].resolved);
  results.set("z", {{"loss", 0.25}});
  results.set("z@9", {{"loss", 0.5}});
  results.set("z@18", {{"loss", 0.75}});
  results.set_complete();
  results.write();
  const StudyTable t = table_of(study, runs);
  REQUIRE(t.groups.size() == 2);
  const size_t alone = t.groups[0].lengths.empty() ? 0 : 1;
  CHECK(t.groups[alone].metrics == std::vector<std::string>{"z/loss"});
  CHECK(t.groups[1 - alone].lengths == std::vector<int64_t>{9, 18});
  CHECK(t.groups[1 - alone].metrics == std::vector<std::string>{"z@9/loss", "z@18/loss"});
  CHECK(t.rows[0].cells[alone][0]->sample.mean == 0.25);
}

TEST_CASE("of values with labels the numbers say which is at an end; LaTeX says it as well") {
  const Workplace w;
  ordered_json j = study_of(w);
  j["axes"][1]["values"] = {1};
  j["axes"].push_back(
      {{"key", "optimizer.lr"}, {"values", {{"slow", 1e-3}, {"<fast>", 2e-3}}}, {"for", "choose"}});
  const Study study = read_study(write_study(w, j));
  const std::vector<StudyRun> runs = runs_of(study);
  for (const StudyRun& run : runs) write_finished(run, 0.5, 0, run.chosen[0] == "slow" ? 2 : 1);
  const StudyTable t = table_of(study, runs);
  CHECK(t.at_ends == std::vector<std::string>{"alibi: lr <fast>", "rope, base 100: lr <fast>"});
  CHECK(latex(t).find("% Chosen at an end of the values") != std::string::npos);
  CHECK(markdown(t).find("| alibi | \\<fast> |") != std::string::npos);
}

TEST_CASE("labels stay text in Markdown, in a spreadsheet and in LaTeX") {
  const Workplace w;
  ordered_json j = study_of(w);
  j["name"] = "<script>alert(1)</script>";
  j["reference"] = "=HYPERLINK(\"http://x\")";
  j["axes"] = {{{"name", "attention"},
                {"values",
                 {{"=HYPERLINK(\"http://x\")", {{"optimizer.lr", 1e-3}}},
                  {"@a", {{"optimizer.lr", 2e-3}}},
                  {"-b", {{"optimizer.lr", 3e-3}}},
                  {" =9", {{"optimizer.lr", 6e-3}}},
                  {"\u3000\u00A0@c", {{"optimizer.lr", 7e-3}}},
                  {"\uFF1D1", {{"optimizer.lr", 8e-3}}},
                  {"\uFF0B2", {{"optimizer.lr", 9e-3}}},
                  {"\uFF0D3", {{"optimizer.lr", 1e-2}}},
                  {"\uFF204", {{"optimizer.lr", 2e-2}}},
                  {" d", {{"optimizer.lr", 3e-2}}},
                  {"-0.5", {{"optimizer.lr", 4e-3}}},
                  {"c\u202E<b>\uFFFE", {{"optimizer.lr", 5e-3}}}}}}};
  const Study study = read_study(write_study(w, j));
  const std::vector<StudyRun> runs = runs_of(study);
  for (const StudyRun& run : runs) write_finished(run, 0.5, 0, 1);
  const StudyTable t = table_of(study, runs);
  const std::string md = markdown(t), table = csv(t), each = runs_csv(t), tex = latex(t);
  INFO(md << table << each << tex);
  CHECK(md.starts_with("# \\<script>alert(1)\\</script>\n"));
  const std::string replaced = "\xEF\xBF\xBD";
  CHECK(md.find("| c" + replaced + "\\<b>" + replaced + " |") != std::string::npos);
  for (const std::string& file : {table, each}) {
    CHECK(file.find("\n\"'=HYPERLINK(\"\"http://x\"\")\",") != std::string::npos);
    CHECK(file.find("\n\"'@a\",") != std::string::npos);
    CHECK(file.find("\n\"'-b\",") != std::string::npos);
    for (const char* const text :
         {" =9", "\u3000\u00A0@c", "\uFF1D1", "\uFF0B2", "\uFF0D3", "\uFF204"}) {
      INFO(text);
      CHECK(file.find(std::string("\n\"'") + text + "\",") != std::string::npos);
    }
    CHECK(file.find("\n d,") != std::string::npos);
    CHECK(file.find("\n-0.5,") != std::string::npos);
    CHECK(file.find("\nc" + replaced + "<b>" + replaced + ",") != std::string::npos);
  }
  std::set<std::string> all = {"row,run,"};  // the header
  for (const StudyRun& run : runs) all.insert(run_cells(run.row, run.label));
  CHECK(run_cells_in(each) == all);
  for (const std::string& file : {md, table, each, tex}) {
    CHECK(file.find("\xE2\x80\xAE") == std::string::npos);  // U+202E
    CHECK(file.find("\xEF\xBF\xBE") == std::string::npos);  // U+FFFE
  }
}
