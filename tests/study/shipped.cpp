// The shipped sweeps: their runs are valid and produce the metrics that they choose by. Also the
// figures of the papers whose ablations they are, each stated once here. Sources: BAM, appendix H
// of the submission (F of the preprint); Cable, section 5.4; DAPE, section 4.3, appendices B, C and
// G; ASEntmax, appendices D.3, G and table 11.

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "config/fixture.h"
#include "study/plan.h"

using namespace bamtrain;
using nlohmann::json;

namespace {

using Strings = std::vector<std::string>;
using Lengths = std::vector<int64_t>;

constexpr const char* kFolder = "configs/studies";

std::string in_source(const std::string& path) {
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  return std::string(source ? source : ".") + "/" + path;
}

std::vector<StudyRun> runs_in(const std::string& name) {
  return runs_of(read_study(in_source(std::string(kFolder) + "/" + name + ".json")));
}

/// The metrics that a run's results.json will have, by the rules of docs/config.md, docs/tasks.md
/// and docs/compare.md, without code of the program.
std::set<std::string> metrics_of(const json& config) {
  std::set<std::string> names;
  const auto add = [&names](const std::string& result, const Strings& numbers) {
    for (const std::string& number : numbers) names.insert(result + "/" + number);
  };
  const Strings of_answers = {"loss", "accuracy", "exact_match"};
  const json& val = config.at("data").at("val");
  const bool text = val.is_string() && !val.get<std::string>().empty();
  if (text) {
    add("validation", {"loss"});
    for (const int64_t length : config.at("eval").at("lengths")) {
      for (const char* protocol : {"windows", "last"}) {
        add(protocol + ("@" + std::to_string(length)), {"loss", "perplexity"});
      }
    }
  } else if (val.is_object()) {
    add("validation", of_answers);
  }
  for (const json& task : config.at("eval").at("tasks")) {
    for (const int64_t length : task.at("lengths")) {
      const std::string result = task.at("name").get<std::string>() + "@" + std::to_string(length);
      add(result, of_answers);
      if (task.at("bleu").get<bool>()) add(result, {"bleu"});
    }
  }
  return names;
}

/// Whether the pattern matches the whole text; * matches any text.
bool is_like(const char* pattern, const char* text) {
  if (*pattern == '*') return is_like(pattern + 1, text) || (*text && is_like(pattern, text + 1));
  if (*pattern != *text) return false;
  return *text == '\0' || is_like(pattern + 1, text + 1);
}

bool is_measured(const std::string& measure, const std::set<std::string>& metrics) {
  return std::any_of(metrics.begin(), metrics.end(), [&](const std::string& metric) {
    return is_like(measure.c_str(), metric.c_str());
  });
}

Strings without_repeats(const Strings& list) {
  Strings out;
  for (const std::string& s : list) {
    if (std::find(out.begin(), out.end(), s) == out.end()) out.push_back(s);
  }
  return out;
}

struct Axes {
  Strings rows, chosen, repeats;  // by label, in order
};

Axes axes_of(const std::vector<StudyRun>& runs) {
  Axes axes;
  for (const StudyRun& run : runs) {
    axes.rows.push_back(run.row);
    axes.chosen.insert(axes.chosen.end(), run.chosen.begin(), run.chosen.end());
    axes.repeats.insert(axes.repeats.end(), run.repeats.begin(), run.repeats.end());
  }
  return {without_repeats(axes.rows), without_repeats(axes.chosen), without_repeats(axes.repeats)};
}

/// The first run of a row.
const StudyRun& run_of(const std::vector<StudyRun>& runs, const std::string& row) {
  const auto found =
      std::find_if(runs.begin(), runs.end(), [&](const StudyRun& r) { return r.row == row; });
  INFO("row " << row);
  REQUIRE(found != runs.end());
  return *found;
}

/// The lengths from `from` to `to`, each twice the previous one.
Lengths doubled(int64_t from, int64_t to) {
  Lengths out;
  for (int64_t length = from; length <= to; length *= 2) out.push_back(length);
  return out;
}

json value_at(const StudyRun& run, const char* pointer) {
  return run.resolved.at(json::json_pointer(pointer));
}

/// What two identical runs agree in: what is trained and what is measured.
json anonymous(json config) {
  config.erase("name");
  config.erase("out_dir");
  return config;
}
json anonymous(const StudyRun& run) { return anonymous(run.resolved); }

bool is_of_a_paper(const std::string& name) {
  const Strings papers = {"asentmax-", "bam-", "cable-", "dape-"};
  return !name.ends_with("-reduced") &&
         std::any_of(papers.begin(), papers.end(),
                     [&](const std::string& paper) { return name.starts_with(paper); });
}

}  // namespace

TEST_CASE("the runs of every study that comes with the program give what it measures") {
  const auto files = shipped_configs(kFolder);
  REQUIRE(files.size() > 2);
  for (const auto& file : files) {
    INFO(file.string());
    const Study study = read_study(file.string());
    CHECK(study.name == file.stem().string());
    CHECK(study.out_dir == "out/studies/" + study.name);
    if (study.name == "passkey-reduced") continue;  // the user brings the tokenizer
    size_t combinations = 1;
    for (const StudyAxis& axis : study.axes) combinations *= axis.values.size();
    const std::vector<StudyRun> runs = runs_of(study);
    CHECK(runs.size() == combinations);
    std::set<std::string> configs;
    for (const StudyRun& run : runs) {
      INFO(run.label);
      const std::set<std::string> metrics = metrics_of(run.resolved);
      for (const std::string& measure : study.measures) {
        INFO(measure);
        CHECK(is_measured(measure, metrics));
      }
      if (!run.chosen.empty()) CHECK(metrics.count(study.choose_metric) == 1);
      const std::string& best = run.config.checkpoint.best_metric;
      if (!best.empty()) CHECK(metrics.count(best) == 1);
      CHECK(configs.insert(anonymous(run).dump()).second);  // no run appears under two labels
    }
  }
}

// If the measurements differed, each sweep would measure the run again after the other.
TEST_CASE("studies that take runs over have some of them, to the key") {
  int64_t folders = 0;
  for (const auto& file : shipped_configs(kFolder)) {
    const Study study = read_study(file.string());
    for (const std::string& folder : study.take_over) {
      INFO(file.string() << " from " << folder);
      const std::filesystem::path runs(folder);
      REQUIRE(runs.filename() == "runs");
      const std::string other = runs.parent_path().filename().string();
      CHECK(folder == "out/studies/" + other + "/runs");
      std::set<std::string> theirs;
      for (const StudyRun& run : runs_in(other)) theirs.insert(anonymous(run).dump());
      const std::vector<StudyRun> own = runs_of(study);
      CHECK(std::any_of(own.begin(), own.end(), [&](const StudyRun& run) {
        return theirs.count(anonymous(run).dump()) == 1;
      }));
      ++folders;
    }
  }
  CHECK(folders > 0);
}

TEST_CASE("docs/study.md has a row for every study of a paper") {
  std::ifstream in(in_source("docs/study.md"));
  std::stringstream text;
  text << in.rdbuf();
  for (const auto& file : shipped_configs(kFolder)) {
    const std::string name = file.stem().string();
    if (!is_of_a_paper(name)) continue;
    INFO(name);
    CHECK(text.str().find("| `" + name + "` |") != std::string::npos);
  }
  // The runs whose evaluations it shows.
  for (const char* row : {"RoPE", "RoPE SSMax"}) {
    const std::string slug = run_of(runs_in("bam-priors-1024"), row).slug;
    INFO(slug);
    CHECK(text.str().find("$run/" + slug + " ") != std::string::npos);
  }
}

TEST_CASE("studies of papers have the rows, seeds and rates of their papers") {
  const Strings bam_rows = {
      "Sinusoidal",       "NoPE",       "RoPE",       "ALiBi",       "BAM",
      "Sinusoidal SSMax", "NoPE SSMax", "RoPE SSMax", "ALiBi SSMax", "BAM SSMax"};
  std::map<std::string, Axes> expected = {
      {"bam-initialization", {{"Laplace", "Uniform", "linear", "normal"}, {}, {"42"}}},
      {"bam-parameters", {{"beta", "beta, alpha", "beta, alpha, mu"}, {}, {"42"}}},
      {"bam-training-length", {{"512", "1024", "2048"}, {}, {"42"}}},
      {"bam-priors-1024", {bam_rows, {}, {"42"}}},
      {"bam-scalable-softmax", {bam_rows, {}, {"42"}}},
      {"dape-hidden",
       {{"T 128, Baseline", "T 128, D_DAPE 4", "T 128, D_DAPE 8", "T 128, D_DAPE 16",
         "T 128, D_DAPE 32", "T 128, D_DAPE 64", "T 512, Baseline", "T 512, D_DAPE 4",
         "T 512, D_DAPE 8", "T 512, D_DAPE 16", "T 512, D_DAPE 32", "T 512, D_DAPE 64"},
        {},
        {"1"}}},
      {"dape-variants",
       {{"T 128, Baseline", "T 128, Concat", "T 128, Add_Residual", "T 128, Concat_Residual",
         "T 512, Baseline", "T 512, Concat", "T 512, Add_Residual", "T 512, Concat_Residual"},
        {},
        {"1"}}},
      {"dape-bias-matrix",
       {{"QK + B (baseline)", "QK + B + f(B)", "QK + B + f(QK, B)"}, {}, {"1"}}},
      {"cable-training-length",
       {{"Cable 512", "Cable 1024", "Cable 2048", "Cable 4096", "Cable 8192", "Sinusoidal 512",
         "Sinusoidal 1024", "Sinusoidal 2048", "Sinusoidal 4096", "Sinusoidal 8192"},
        {},
        {"1"}}},
      {"cable-kernel",
       {{"Cable, T 512", "Cable, T 1024", "K-Cable, T 512", "K-Cable, T 1024"}, {}, {"1"}}},
      {"cable-content-scale",
       {{"Cable, 1/sqrt(D)", "Cable, 1", "Cable, 1/sqrt(C)", "K-Cable, 1/sqrt(D)", "K-Cable, 1",
         "K-Cable, 1/sqrt(C)"},
        {},
        {"1"}}},
      {"asentmax-rope-scaling",
       {{"Softmax", "Softmax, factor 4", "Softmax, factor 8", "Softmax, factor 16",
         "Softmax, factor 32"},
        {"0.0002", "0.0004", "0.001"},
        {"1", "2", "3"}}},
      {"asentmax-delayed-copy", {{"softmax", "entmax 1.5", "entmax 1.75", "entmax 2"}, {}, {"1"}}},
  };
  for (const auto& file : shipped_configs(kFolder)) {
    const std::string name = file.stem().string();
    if (!is_of_a_paper(name)) continue;
    INFO(name);
    const auto axes = expected.find(name);
    REQUIRE(axes != expected.end());
    const Axes found = axes_of(runs_in(name));
    CHECK(found.rows == axes->second.rows);
    CHECK(found.chosen == axes->second.chosen);
    CHECK(found.repeats == axes->second.repeats);
    expected.erase(axes);
  }
  for (const auto& [name, unused] : expected) {
    INFO("no such file: " << kFolder << "/" << name << ".json");
    CHECK(false);
  }
}

// tests/config/recipes.cpp compares those recipes with the papers.
TEST_CASE("rows of studies that are a recipe of configs are that recipe, to the key") {
  struct Same {
    const char *study, *row, *config;
    Strings overrides = {};
  };
  const Strings books3 = {"data.train=data/books3-gpt2/train", "data.val=data/books3-gpt2/val"};
  const std::vector<Same> all = {
      {"bam-initialization", "Uniform", "bam-120m"},
      {"bam-parameters", "beta, alpha", "bam-120m"},
      {"bam-training-length", "512", "bam-120m"},
      {"bam-scalable-softmax", "Sinusoidal", "bam-sinusoidal-120m"},
      {"bam-scalable-softmax", "NoPE", "bam-nope-120m"},
      {"bam-scalable-softmax", "RoPE", "bam-rope-120m"},
      {"bam-scalable-softmax", "ALiBi", "bam-alibi-120m"},
      {"bam-scalable-softmax", "BAM SSMax", "bam-120m"},
      {"dape-hidden", "T 512, Baseline", "dape-alibi-125m"},
      {"dape-hidden", "T 512, D_DAPE 32", "dape-dape-alibi-125m"},
      {"dape-variants", "T 512, Baseline", "dape-kerple-125m"},
      {"dape-variants", "T 512, Concat_Residual", "dape-dape-kerple-125m"},
      {"dape-bias-matrix", "QK + B (baseline)", "dape-kerple-125m", books3},
      {"dape-bias-matrix", "QK + B + f(QK, B)", "dape-dape-kerple-125m", books3},
      {"cable-training-length", "Cable 512", "cable-tiny"},
      {"cable-training-length", "Sinusoidal 512", "cable-sinusoidal-tiny", {"eval.lengths=[512]"}},
      {"cable-kernel", "Cable, T 512", "cable-tiny"},
      {"cable-kernel", "K-Cable, T 512", "kcable-tiny"},
      {"cable-content-scale", "Cable, 1/sqrt(D)", "cable-tiny"},
      {"cable-content-scale", "K-Cable, 1/sqrt(D)", "kcable-tiny"},
  };
  for (const Same& same : all) {
    INFO(same.study << ": " << same.row << " as " << same.config);
    const RunConfig recipe =
        read_run_config(in_source(std::string("configs/") + same.config + ".json"), same.overrides);
    CHECK(anonymous(run_of(runs_in(same.study), same.row)) == anonymous(resolved_json(recipe)));
  }
}

TEST_CASE("BAM's ablations: 120M, 19,251 steps of 589,824 tokens, whatever is varied") {
  for (const char* study : {"bam-initialization", "bam-parameters", "bam-training-length",
                            "bam-priors-1024", "bam-scalable-softmax"}) {
    for (const StudyRun& run : runs_in(study)) {
      INFO(study << ": " << run.label);
      const RunConfig& c = run.config;
      CHECK((c.model.width == 768 && c.model.layers == 12 && c.model.heads == 16));
      CHECK(
          (c.train.steps == 19251 && c.train.tokens_per_step == 589824 && c.optimizer.lr == 1e-3));
      // The same number of tokens per microbatch at every length.
      CHECK(c.train.micro_batch * c.data.sequence_length == 8192);
      CHECK(c.eval.lengths == doubled(512, 32768));
    }
  }
  const std::map<std::string, const char*> inits = {
      {"Laplace", "laplace"}, {"Uniform", "uniform"}, {"linear", "linear"}, {"normal", "normal"}};
  for (const StudyRun& run : runs_in("bam-initialization")) {
    CHECK(value_at(run, "/model/attention/prior/init") == inits.at(run.row));
    CHECK(value_at(run, "/model/attention/prior/train") == json({"theta_alpha", "theta_beta"}));
  }
  const std::map<std::string, Strings> trained = {
      {"beta", {"theta_beta"}},
      {"beta, alpha", {"theta_alpha", "theta_beta"}},
      {"beta, alpha, mu", {"theta_alpha", "theta_beta", "theta_mu"}}};
  for (const StudyRun& run : runs_in("bam-parameters")) {
    CHECK(value_at(run, "/model/attention/prior/train") == trained.at(run.row));
    CHECK(value_at(run, "/model/attention/prior/init") == "uniform");
  }
  for (const StudyRun& run : runs_in("bam-training-length")) {
    CHECK(run.row == std::to_string(run.config.data.sequence_length));
  }
  // The same ten models at both lengths.
  const auto models = [](const char* study, int64_t T) {
    std::vector<json> out;
    for (const StudyRun& run : runs_in(study)) {
      INFO(study << ": " << run.row);
      CHECK(run.config.data.sequence_length == T);
      const bool ssmax = run.row.ends_with("SSMax");
      CHECK(run.config.model.attention.scale.name() == (ssmax ? "ssmax" : "none"));
      out.push_back(run.resolved.at("model"));
    }
    return out;
  };
  CHECK(models("bam-priors-1024", 1024) == models("bam-scalable-softmax", 512));
}

TEST_CASE("DAPE's ablations: 125M, 50,000 steps of 256 sequences at either length") {
  for (const char* study : {"dape-hidden", "dape-variants", "dape-bias-matrix"}) {
    for (const StudyRun& run : runs_in(study)) {
      INFO(study << ": " << run.label);
      const RunConfig& c = run.config;
      const int64_t T = run.row.starts_with("T 128") ? 128 : 512;
      CHECK(c.data.sequence_length == T);
      CHECK(c.train.tokens_per_step == 256 * T);
      CHECK((c.train.steps == 50000 && c.schedule.warmup_steps == 500 && c.optimizer.lr == 6e-4));
      CHECK((c.model.width == 768 && c.model.layers == 12 && c.model.heads == 12));
      CHECK(c.eval.lengths == doubled(T, 8192));
      const bool books3 = std::string(study) == "dape-bias-matrix";
      CHECK(c.data.val == (books3 ? "data/books3-gpt2/val" : "data/arxiv-gpt2/val"));
      const bool baseline = run.row.find("aseline") != std::string::npos;
      CHECK(static_cast<bool>(c.model.attention.prior.mix_of(0)) == !baseline);
    }
  }
  for (const StudyRun& run : runs_in("dape-hidden")) {
    CHECK(run.config.model.attention.prior.of(0).name() == "alibi");
    const size_t at = run.row.find("D_DAPE ");
    if (at == std::string::npos) continue;
    CHECK(value_at(run, "/model/attention/prior/hidden").dump() == run.row.substr(at + 7));
  }
  const std::map<std::string, const char*> variants = {
      {"T 512, Concat", "concat"},
      {"T 512, Add_Residual", "add_residual"},
      {"T 128, Concat_Residual", "concat_residual"}};
  const std::vector<StudyRun> of_variants = runs_in("dape-variants");
  for (const auto& [row, variant] : variants) {
    const StudyRun& run = run_of(of_variants, row);
    CHECK(value_at(run, "/model/attention/prior/variant") == variant);
    CHECK(value_at(run, "/model/attention/prior/base/name") == "kerple");
  }
  const StudyRun of_bias = run_of(runs_in("dape-bias-matrix"), "QK + B + f(B)");
  CHECK(value_at(of_bias, "/model/attention/prior/variant") == "bias_only");
  CHECK(value_at(of_bias, "/model/attention/prior/base/name") == "kerple");
}

TEST_CASE("Cable's ablations: tiny, 5,000 steps of 524,288 tokens at every length") {
  for (const char* study : {"cable-training-length", "cable-kernel", "cable-content-scale"}) {
    for (const StudyRun& run : runs_in(study)) {
      INFO(study << ": " << run.label);
      const RunConfig& c = run.config;
      CHECK((c.model.width == 512 && c.model.layers == 6 && c.model.heads == 8));
      CHECK((c.train.steps == 5000 && c.train.tokens_per_step == 524288 && c.optimizer.lr == 6e-4));
      CHECK(c.train.micro_batch * c.data.sequence_length == 128 * 512);
    }
  }
  for (const StudyRun& run : runs_in("cable-training-length")) {
    INFO(run.row);
    const int64_t T = run.config.data.sequence_length;
    const bool cable = run.row == "Cable " + std::to_string(T);
    CHECK((cable || run.row == "Sinusoidal " + std::to_string(T)));
    CHECK(run.config.model.attention.prior.of(0).name() == (cable ? "cable" : "sinusoidal"));
    // Sinusoids are evaluated at their training length only.
    CHECK(run.config.eval.lengths == (cable ? doubled(512, 16384) : Lengths{T}));
  }
  for (const StudyRun& run : runs_in("cable-kernel")) {
    INFO(run.row);
    const bool kernel = run.row.starts_with("K-Cable");
    CHECK(run.config.model.attention.prior.of(0).name() == (kernel ? "kcable" : "cable"));
    CHECK(run.config.data.sequence_length == (run.row.ends_with("1024") ? 1024 : 512));
  }
}

TEST_CASE("ASEntmax's table 11: llama3's factors on Flip-Flop, the best at four times the length") {
  const std::vector<StudyRun> runs = runs_in("asentmax-rope-scaling");
  CHECK(runs.size() == 5 * 3 * 3);
  for (const StudyRun& run : runs) {
    INFO(run.label);
    const RunConfig& c = run.config;
    const ModelConfig& m = c.model;
    CHECK((m.width == 256 && m.layers == 4 && m.heads == 8 && m.mlp.hidden == 512));
    CHECK((c.train.steps == 78125 && c.train.sequences_per_step == 128));
    CHECK(c.schedule.warmup_steps == 10000);
    CHECK(m.attention.scale.name() == "none");
    CHECK(m.attention.normalizer.name() == "softmax");
    CHECK(value_at(run, "/data/train/ignore") == "sparse");
    const json prior = value_at(run, "/model/attention/prior");
    CHECK((prior.at("name") == "rope" && prior.at("theta") == 10000));
    const bool scaled = run.row != "Softmax";
    CHECK(prior.at("scaling") == (scaled ? "llama3" : "none"));
    const std::string factor =
        scaled ? run.row.substr(std::string("Softmax, factor ").size()) : "1";
    CHECK(prior.at("factor").get<double>() == std::stod(factor));
    CHECK(c.checkpoint.best_metric == "select@256/exact_match");
    REQUIRE(c.eval.tasks.size() == 2);
    CHECK(c.eval.tasks[0].trained().lengths == doubled(64, 4096));
    CHECK(c.eval.tasks[0].trained().samples == 1000);
  }
}

TEST_CASE("ASEntmax's delayed copy: eight layers, 256 tokens") {
  const std::map<std::string, double> alphas = {
      {"entmax 1.5", 1.5}, {"entmax 1.75", 1.75}, {"entmax 2", 2}};
  for (const StudyRun& run : runs_in("asentmax-delayed-copy")) {
    INFO(run.label);
    const RunConfig& c = run.config;
    CHECK(c.model.layers == 8);
    CHECK(c.data.sequence_length == 256);
    CHECK(c.model.attention.scale.name() == "none");
    CHECK(value_at(run, "/data/train/length") == json({127, 127}));
    const auto alpha = alphas.find(run.row);
    const json normalizer = value_at(run, "/model/attention/normalizer");
    CHECK(normalizer.at("name") == (alpha == alphas.end() ? "softmax" : "entmax"));
    if (alpha != alphas.end()) CHECK(normalizer.at("alpha") == alpha->second);
  }
}
