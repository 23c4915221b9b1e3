// Paired differences between rows of a study, of runs written here.

#include "study/paired_cells.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/json_digest.h"
#include "core/student_t.h"
#include "study/fixture.h"
#include "study/table.h"

using namespace bamtrain;
using namespace bamtrain::testing;
using nlohmann::ordered_json;

namespace {

void write_results(const StudyRun& run, const std::string& result, const ordered_json& numbers) {
  std::filesystem::create_directories(run.folder);
  Results results(run.folder + "/" + kResultsFile);
  results.set_run(run.slug, run.resolved);
  results.set(result, numbers);
  results.set_complete();
  results.write();
}

/// perplexity.json with sums over two targets a document, and the results that come from it.
void write_perplexity(const StudyRun& run, const std::vector<double>& sums,
                      const std::string& targets = "t") {
  double all = 0;
  std::string text, counts;
  for (const double sum : sums) {
    all += sum;
    text += (text.empty() ? "" : " ") + std::to_string(sum);
    counts += counts.empty() ? "2" : " 2";
  }
  const double loss = all / 2 / static_cast<double>(sums.size());
  ordered_json row = {{"length", 64}, {"loss", loss}, {"perplexity", std::exp(loss)}};
  write_results(run, "last@64", {{"loss", loss}, {"perplexity", std::exp(loss)}});
  row["targets"] = targets;
  row["sums"] = text;
  std::ofstream(run.folder + "/perplexity.json")
      << digested_json({{"step", 12},
                        {"training_length", 9},
                        {"data_fingerprint", "f"},
                        {"last_tokens", 2},
                        {"last", {row}},
                        {"target_counts", {{targets, counts}}}});
}

/// The small study, of copying, with an evaluation by length that only these files have.
struct Fixture {
  Workplace w;
  ordered_json json;

  explicit Fixture(const std::vector<int>& seeds, const std::string& measure) {
    write_base(w);
    json = small_study(w);
    json["axes"][1]["values"] = seeds;
    json["measures"] = {measure};
  }
};

const TableCell& cell_of(const StudyTable& t, size_t row) { return *t.rows.at(row).cells[0][0]; }

}  // namespace

TEST_CASE("runs of the same seed pair: the t-test of their differences") {
  const Fixture f({1, 2, 3}, "copy@9/accuracy");
  const Study study = read_study(write_study(f.w, f.json));
  const std::vector<StudyRun> runs = runs_of(study);
  // Seeds vary by 0.2, rows by 0.02.
  const double values[] = {0.3, 0.5, 0.7, 0.32, 0.519, 0.721};
  for (size_t i = 0; i < 6; ++i) write_results(runs[i], "copy@9", {{"accuracy", values[i]}});
  const StudyTable t = table_of(study, runs);
  CHECK_FALSE(cell_of(t, 0).paired);
  REQUIRE(cell_of(t, 1).paired);
  const PairedCell& paired = *cell_of(t, 1).paired;
  CHECK_FALSE(paired.by_document);
  CHECK(paired.difference.pairs == 3);
  CHECK(paired.difference.value == Approx(0.02));
  const double error = std::sqrt((0.001 * 0.001 * 2) / 2 / 3);
  CHECK(paired.difference.error.value() == Approx(error).epsilon(1e-9));
  CHECK(paired.difference.p.value() == Approx(student_two_sided(0.02 / error, 2)).epsilon(1e-6));
  CHECK(paired.p_holm == paired.difference.p);
  CHECK(paired.is_significant());
  CHECK(*cell_of(t, 1).p > 0.8);  // Welch's, which the seeds' spread decides
  const std::string text = markdown(t);
  INFO(text);
  CHECK(text.find("| rope, base 100 | 3 | **52.0** ± 20.1 (72.1) |") != std::string::npos);
  CHECK(text.find("| alibi | 3 | 50.0 ± 20.0 (70.0) |") != std::string::npos);
  CHECK(text.find("\nDifference from alibi, paired by seed:\n") != std::string::npos);
  CHECK(text.find("| rope, base 100 | +2.000 ± 0.058 (p 0.0008) |") != std::string::npos);
  CHECK(text.find("Welch") == std::string::npos);
  CHECK(text.find("Bold: differs from alibi with p < 0.05 in a paired t-test") !=
        std::string::npos);
  CHECK(latex(t).find("\\textbf{52.0}") != std::string::npos);
  CHECK(csv(t).find(",3,run,") != std::string::npos);
}

TEST_CASE("runs of other data or another seed do not pair") {
  Fixture f({1, 2, 3}, "copy@9/accuracy");
  f.json["axes"][0]["values"]["rope, base 100"]["data.train"] = {{"task", "copy"},
                                                                 {"length", {4, 9}}};
  const Study study = read_study(write_study(f.w, f.json));
  const std::vector<StudyRun> runs = runs_of(study);
  const double values[] = {0.3, 0.5, 0.7, 0.32, 0.519, 0.721};
  for (size_t i = 0; i < 6; ++i) write_results(runs[i], "copy@9", {{"accuracy", values[i]}});
  StudyTable t = table_of(study, runs);
  CHECK_FALSE(cell_of(t, 1).paired);
  CHECK(cell_of(t, 1).p);
  CHECK(markdown(t).find("Welch's p against alibi") != std::string::npos);
  CHECK(markdown(t).find("**") == std::string::npos);
}

TEST_CASE("p is corrected over the rows of a column") {
  Fixture f({1, 2, 3}, "copy@9/accuracy");
  f.json["axes"][0]["values"]["third"] = {{"model.attention.prior", {{"name", "nope"}}}};
  const Study study = read_study(write_study(f.w, f.json));
  const std::vector<StudyRun> runs = runs_of(study);
  const double values[] = {0.3, 0.5, 0.7, 0.32, 0.519, 0.721, 0.3, 0.52, 0.71};
  for (size_t i = 0; i < 9; ++i) write_results(runs[i], "copy@9", {{"accuracy", values[i]}});
  const StudyTable t = table_of(study, runs);
  const PairedCell &second = *cell_of(t, 1).paired, &third = *cell_of(t, 2).paired;
  CHECK(*second.p_holm == 2 * *second.difference.p);
  CHECK(*third.p_holm == *third.difference.p);
}

TEST_CASE("one run a row: documents pair") {
  const Workplace w;
  StudyRun a, b;
  a.row = "a", b.row = "b";
  a.folder = w.path("a"), b.folder = w.path("b");
  a.resolved = b.resolved = {{"seed", 1}, {"data", {{"train", "x"}, {"sequence_length", 9}}}};
  write_perplexity(a, {2, 4, 6, 8});
  write_perplexity(b, {1.8, 3.81, 5.8, 7.79});
  const auto cell = [&](PairedCells* cells, const std::string& metric) {
    const DoneRun run = {&b, Results(b.folder + "/" + kResultsFile)};
    const DoneRun reference = {&a, Results(a.folder + "/" + kResultsFile)};
    return cells->cell({&run}, {&reference}, metric);
  };
  PairedCells cells;
  const auto loss = cell(&cells, "last@64/loss"), perplexity = cell(&cells, "last@64/perplexity");
  REQUIRE(loss);
  CHECK(loss->by_document);
  CHECK(loss->difference.pairs == 4);
  CHECK(loss->difference.value == Approx(-0.1));
  const double error = std::sqrt(4.0 / 3 * 2 * 0.01 * 0.01) / 8;
  CHECK(loss->difference.error.value() == Approx(error).epsilon(1e-6));
  CHECK(perplexity->difference.value == Approx(std::exp(2.4) - std::exp(2.5)));
  CHECK(perplexity->difference.p == loss->difference.p);
  CHECK(cells.notes().empty());
  CHECK_FALSE(cell(&cells, "last@64/bits_per_byte"));
  CHECK(cells.notes().empty());

  const auto note = [&] {
    PairedCells again;
    CHECK_FALSE(cell(&again, "last@64/loss"));
    CHECK_FALSE(cell(&again, "last@64/perplexity"));
    REQUIRE(again.notes().size() == 1);
    return again.notes()[0];
  };
  write_perplexity(b, {1.8, 3.81, 5.8, 7.79}, "u");
  CHECK(note() == "b: it scores other targets than a");
  std::filesystem::remove(b.folder + "/perplexity.json");
  CHECK(note() == "b: its perplexity.json lacks the sums by document of these results");
  write_perplexity(b, {1.8, 3.81, 5.8, 7.79});
  write_results(b, "last@64", {{"loss", 2.3}, {"perplexity", std::exp(2.3)}});  // measured again
  CHECK(note() == "b: its perplexity.json lacks the sums by document of these results");
  write_perplexity(b, {1.8, 3.81, 5.8, 7.79});
  std::ofstream(b.folder + "/perplexity.json") << "{";
  CHECK(note().find("perplexity.json") != std::string::npos);
}
