// report.html of a training run, and `bamtrain report` as a user calls it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "catch.h"
#include "report/xml.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;

std::vector<std::string> captions(const std::string& html) {
  std::vector<std::string> out;
  const Xml body = body_of(html);
  for (const Xml* c : body.all("figcaption")) out.push_back(c->text);
  return out;
}

bool has_caption(const std::string& html, const std::string& caption) {
  const auto all = captions(html);
  return std::find(all.begin(), all.end(), caption) != all.end();
}

/// Two small trained runs: bam + ssmax, and rope on the same data.
struct TwoRuns {
  Workplace w;
  nlohmann::json config = small_run(w);

  TwoRuns() {
    config["eval"] = {{"every", 4}, {"lengths", {16, 48}}, {"tokens", 480}};
    train("bam", {});
    config["model"]["attention"]["prior"] = {{"name", "rope"}};
    config["model"]["attention"]["scale"] = {{"name", "none"}};
    train("rope", {});
  }

  Outcome train(const std::string& name, const std::vector<std::string>& changes) {
    config["name"] = name + " <&>";
    config["out_dir"] = w.path(name);
    const Outcome o =
        run(bamtrain_command(write_config(w, name + ".json", config), changes), threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    CHECK(o.output.find("report " + w.path(name) + "/report.html\n") != std::string::npos);
    return o;
  }

  Outcome report(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = {bamtrain_program(), "report"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run(command);
  }
};

/// The JSON header of a safetensors file.
std::string header_of(const std::string& path) {
  const std::string file = read_text(path);
  uint64_t bytes = 0;
  for (size_t i = 8; i-- > 0;) bytes = bytes << 8 | static_cast<unsigned char>(file[i]);
  return file.substr(8, bytes);
}

}  // namespace

TEST_CASE("report compares runs on one page and plots them") {
  const TwoRuns t;
  const std::string page = t.w.path("page.html");
  const Outcome o = t.report({t.w.path("bam"), t.w.path("rope/"), "-o", page});
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(o.output.find("perplexity of the last 16 tokens against length\n") == 0);
  CHECK(o.output.find(" a bam <&>\n") != std::string::npos);
  CHECK(o.output.find(" b rope <&>\n") != std::string::npos);
  CHECK(o.output.find("\nreport " + page + "\n") != std::string::npos);

  const std::string html = read_text(page);
  const Xml body = body_of(html);
  CHECK(body.all("h1")[0]->text == "bam <&>, rope <&>");
  for (const char* caption :
       {"perplexity of windows of each length", "perplexity of each window's last 16 tokens",
        "loss, smoothed", "validation loss", "loss, smoothed, against wall time", "gradient norm",
        "learning rate", "tokens per second", "entropy of attention, nats", "bam <&>: bam, layer 0",
        "bam <&>: bam, layer 1", "bam: theta_alpha against theta_beta",
        "ssmax: s of each head, by layer"}) {
    INFO(caption);
    CHECK(has_caption(html, caption));
  }
  // Every key has weight under softmax.
  CHECK_FALSE(has_caption(html, "nonzero keys of attention"));
  CHECK_FALSE(has_caption(html, "nonzero blocks of attention, %"));
  CHECK(html.find("Constant, so not drawn: nonzero keys of attention: ") != std::string::npos);
  // No length is the training length of 64, so the headline has the losses of results.json.
  const auto loss = [&](const std::string& name) {
    const auto file = nlohmann::json::parse(read_text(t.w.path(name) + "/results.json"));
    return fmt::format("{:.4f}", file["results"]["validation"]["loss"].get<double>());
  };
  CHECK(body.of_class("p", "headline")[0]->text == "bam <&>: validation loss " + loss("bam") +
                                                       " at step 8; rope <&>: validation loss " +
                                                       loss("rope"));
  // Exactly the keys that differ.
  const Xml* differences = body.all("table").back();
  std::vector<std::string> keys;
  for (const Xml* row : differences->all("tbody")[0]->all("tr")) {
    keys.push_back(row->all("span")[0]->text);
  }
  CHECK(std::find(keys.begin(), keys.end(), "model.attention.prior.name") != keys.end());
  CHECK(std::find(keys.begin(), keys.end(), "model.attention.scale.name") != keys.end());
  for (const std::string& key : keys) CHECK(key.rfind("model.attention.", 0) == 0);

  // The training run's own report covers the first run only.
  const std::string own = read_text(t.w.path("bam/report.html"));
  CHECK(has_caption(own, "perplexity of windows of each length"));
  CHECK(has_caption(own, "bam <&>: bam, layer 1"));
  CHECK(body_of(own).all("h2").back()->text == "Parameters of priors, scales and normalizers");
}

TEST_CASE("a run under way has a report from its first validation pass on") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["eval"] = {{"every", 2}, {"tokens", 480}};
  const std::string page = w.path("out/report.html");
  std::string seen;
  const Outcome o = run_and(
      bamtrain_command(write_config(w, "run.json", c), {"train.steps=1000000", "log.every=2"}),
      "step 4 validation loss",
      [&](int process) {
        seen = read_text(page);  // step 2's at least: it precedes the printed line
        kill(process, SIGUSR1);
      },
      threads(1));
  INFO(o.output);
  REQUIRE(o.code == 85);
  CHECK(has_caption(seen, "validation loss"));
  CHECK(has_caption(seen, "small: bam, layer 0"));

  // An incomplete last line, and no checkpoint yet.
  const std::string copy = w.path("copy");
  fs::create_directory(copy);
  std::ofstream(copy + "/metrics.jsonl") << read_text(w.path("out/metrics.jsonl")) << "{\"step\":";
  const Outcome r = run({bamtrain_program(), "report", copy, "-o", w.path("page.html")});
  INFO(r.output);
  CHECK(r.code == 0);
  CHECK(has_caption(read_text(w.path("page.html")), "loss, smoothed"));
}

TEST_CASE("a report that cannot be written is a warning, and the model's bits are the same") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["eval"] = {{"every", 2}, {"tokens", 480}};
  const auto train = [&](const std::string& out) {
    c["out_dir"] = w.path(out);
    const Outcome o = run(bamtrain_command(write_config(w, out + ".json", c)), threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    return o.output;
  };
  const std::string with = train("with");
  CHECK(with.find("warning") == std::string::npos);
  CHECK(fs::exists(w.path("with/report.html")));
  fs::create_directories(w.path("without/report.html"));  // in the report's place
  const std::string without = train("without");
  const std::string warning =
      "warning: report not updated: " + w.path("without/report.html") + ": ";
  size_t warnings = 0;
  for (size_t at = 0; (at = without.find(warning, at)) != std::string::npos; ++at) ++warnings;
  CHECK(warnings == 5);  // four validation passes and the end
  CHECK(without.find("\nreport ") == std::string::npos);
  CHECK(digest(w.path("with/checkpoint-00000008")) ==
        digest(w.path("without/checkpoint-00000008")));
}

TEST_CASE("report refuses what it cannot read or write") {
  const TwoRuns t;
  const std::string page = t.w.path("page.html"), bam = t.w.path("bam");
  const auto refused = [&](const std::vector<std::string>& arguments, int code,
                           const std::string& part) {
    const Outcome o = t.report(arguments);
    INFO(o.output);
    CHECK(o.code == code);
    CHECK(o.output.find(part) != std::string::npos);
    CHECK_FALSE(fs::exists(page));
  };
  refused({"-o", page}, 2, "RUN");
  refused({bam + "x"}, 6, bam + "x: no such folder");
  refused({bam, t.w.path("rope")}, 2, "--output: missing (the page of several runs)");
  refused({bam, "--figure", "loss"}, 2, "--output: missing (the file of a figure)");
  refused({bam, bam + "/", "-o", page}, 2, "is given twice");
  refused({t.w.path("none"), "-o", page}, 6, "no such folder");
  fs::create_symlink(t.w.path("loop"), t.w.path("loop"));
  refused({t.w.path("loop"), "-o", page}, 6, t.w.path("loop"));
  refused({std::string(300, 'x'), "-o", page}, 6, std::string(300, 'x'));
  refused({t.w.path("val"), "-o", page}, 6, "not a run's folder: no metrics.jsonl");
  refused({bam, "-o", t.w.path("none/page.html")}, 6, t.w.path("none"));
  refused({bam, "-o", t.w.path("val")}, 6, t.w.path("val"));
  std::ofstream(t.w.path("rope/metrics.jsonl"), std::ios::app) << "damage\n";
  refused({bam, t.w.path("rope"), "-o", page}, 6, "rope/metrics.jsonl:9:1: invalid JSON");
  std::ofstream(bam + "/checkpoint-00000008/state.json") << "{";
  refused({bam, "-o", page}, 5, "checkpoint-00000008/state.json:1:");
}

TEST_CASE("runs of one name, and of none, are told apart by their folders") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  const auto train = [&](const std::string& folder, const char* name) {
    c["name"] = name;
    c["out_dir"] = w.path(folder);
    c["train"]["stop_at"] = 1;
    c["eval"] = {{"lengths", {16, 48}}, {"tokens", 480}};
    const Outcome o = run(bamtrain_command(write_config(w, "run.json", c)), threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    return o.output;
  };
  const auto heading = [&](const std::vector<std::string>& folders) {
    std::vector<std::string> command = {bamtrain_program(), "report", "-o", w.path("page.html")};
    for (const std::string& f : folders) command.push_back(w.path(f));
    const Outcome o = run(command);
    INFO(o.output);
    REQUIRE(o.code == 0);
    return body_of(read_text(w.path("page.html"))).all("h1")[0]->text;
  };
  CHECK(train("many/of/a/run", "same").find("same: 1 process") == 0);
  train("many/of/b/run", "same");
  CHECK(train("unnamed", "").find("unnamed: 1 process") == 0);
  CHECK(body_of(read_text(w.path("unnamed/report.html"))).all("h1")[0]->text == "unnamed");
  CHECK(heading({"many/of/a/run", "many/of/b/run"}) == "a/run, b/run");
  CHECK(heading({"many/of/a/run/", "unnamed"}) == "same, unnamed");
  CHECK(heading({"unnamed/"}) == "unnamed");
}

TEST_CASE("a figure is one chart of the page, in a file of its own") {
  const TwoRuns t;
  const std::string file = t.w.path("figure.svg"), bam = t.w.path("bam"), rope = t.w.path("rope");
  const auto figure = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {bam, rope, "-o", file});
    const Outcome o = t.report(arguments);
    INFO(o.output);
    CHECK(o.code == 0);
    CHECK(o.output == "figure " + file + "\n");
    return read_text(file);
  };
  const std::string svg = figure({"--figure", "perplexity"});
  const Xml x = parse_xml(svg);
  CHECK(x.at("width") == "84mm");
  CHECK(x.at("aria-label") == "perplexity of windows of each length");
  std::vector<std::string> names;
  for (const Xml* line : x.all("polyline")) {
    if (line->attributes.count("data-name") != 0) names.push_back(line->at("data-name"));
  }
  CHECK(names == std::vector<std::string>{"bam <&>", "rope <&>"});
  CHECK(figure({"--figure", "perplexity"}) == svg);  // may replace its own file
  CHECK(parse_xml(figure({"--figure", "bam-bam-layer-1", "--width", "140"})).at("width") ==
        "140mm");

  const auto refused = [&](const std::vector<std::string>& arguments) {
    const Outcome o = t.report(arguments);
    INFO(o.output);
    CHECK(o.code == 2);
    return o.output;
  };
  const std::string before = read_text(file);
  const std::string list = refused({bam, rope, "-o", file, "--figure", "list"});
  CHECK(list.find("--figure: unknown figure 'list'; these runs have perplexity, perplexity-last, "
                  "loss, ") != std::string::npos);
  CHECK(list.find("bam-bam-layer-0, bam-bam-layer-1, bam-parameters, ") != std::string::npos);
  CHECK(refused({bam, rope, "-o", file, "--figure", "perplexity-bins"})
            .find("--figure perplexity-bins: these runs have no ") != std::string::npos);
  refused({bam, "-o", file, "--width", "140"});
  for (const char* width : {"1", "401", "nan", "84mm", ""}) {
    CHECK(refused({bam, "-o", file, "--figure", "loss", "--width", width}).find("--width") !=
          std::string::npos);
  }
  CHECK(refused({bam, "-o", file, "--figure", ""}).find("these runs have ") != std::string::npos);
  CHECK(refused({bam, "-o", bam + "/report.html", "--figure", "loss"})
            .find("exists and is not a figure of bamtrain report") != std::string::npos);
  CHECK(refused({bam, "-o", file}).find("exists and is not a page of bamtrain report") !=
        std::string::npos);
  CHECK(read_text(file) == before);
}

TEST_CASE("runs that differ in their seed alone are one line of a figure") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["eval"] = {{"every", 4}, {"lengths", {16, 48}}, {"tokens", 480}};
  std::vector<double> losses;  // with windows of 48
  for (const int seed : {1, 2, 3}) {
    const std::string name = "bam-seed" + std::to_string(seed);
    c["name"] = name;
    c["out_dir"] = w.path(name);
    c["seed"] = seed;
    REQUIRE(run(bamtrain_command(write_config(w, "run.json", c)), threads(1)).code == 0);
    losses.push_back(
        nlohmann::json::parse(read_text(w.path(name + "/perplexity.json")))["windows"][1]["loss"]);
  }
  std::vector<std::string> command = {bamtrain_program(), "report", "--figure",
                                      "perplexity",       "-o",     w.path("figure.svg")};
  for (const int seed : {1, 2, 3}) command.push_back(w.path("bam-seed" + std::to_string(seed)));
  const Outcome o = run(command);
  INFO(o.output);
  REQUIRE(o.code == 0);
  const Xml x = parse_xml(read_text(w.path("figure.svg")));
  const auto lines = x.all("polyline");
  REQUIRE(lines.size() == 2);  // including the legend's
  CHECK(lines[1]->at("data-name") == "bam (3 seeds)");
  const double mean = (losses[0] + losses[1] + losses[2]) / 3;
  double squares = 0;
  for (const double loss : losses) squares += (loss - mean) * (loss - mean);
  const double deviation = std::sqrt(squares / 2);
  REQUIRE(deviation > 0);
  double at = 0, y = 0, low = 0, high = 0;
  const std::string values = lines[1]->at("data-values");
  REQUIRE(std::sscanf(values.substr(values.find(' ')).c_str(), "%lf,%lf", &at, &y) == 2);
  CHECK(at == 48);
  CHECK(y == Approx(std::exp(mean)).epsilon(1e-5));
  const std::string spread = x.all("polygon")[0]->at("data-spread");
  REQUIRE(std::sscanf(spread.substr(spread.find(' ')).c_str(), "%lf,%lf", &low, &high) == 2);
  CHECK(low == Approx(std::exp(mean - deviation)).epsilon(1e-5));
  CHECK(high == Approx(std::exp(mean + deviation)).epsilon(1e-5));
}

TEST_CASE("report leaves files that are no pages alone") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["stop_at"] = 1;
  REQUIRE(run(bamtrain_command(write_config(w, "run.json", c)), threads(1)).code == 0);
  const auto report = [&](const std::string& output) {
    const Outcome o = run({bamtrain_program(), "report", w.path("out"), "-o", output});
    INFO(o.output);
    CHECK((o.code == 0 || o.output.find("--output: ") != std::string::npos));
    return o.code;
  };
  for (const std::string name : {"out/metrics.jsonl", "run.json", "val/000.bin"}) {
    const std::string before = read_text(w.path(name));
    CHECK(report(w.path(name)) == 2);
    CHECK(read_text(w.path(name)) == before);
  }
  CHECK(report("") == 2);
  CHECK(report(w.path("out/report.html")) == 0);
  std::ofstream(w.path("empty")) << "";
  CHECK(report(w.path("empty")) == 0);
  CHECK(report(w.path("empty")) == 0);
}

TEST_CASE("a report under the name of another format is refused, and nothing is written") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["stop_at"] = 1;
  REQUIRE(run(bamtrain_command(write_config(w, "run.json", c)), threads(1)).code == 0);
  const auto report = [&](const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {bamtrain_program(), "report", w.path("out"), "-o",
                                        w.path(name)};
    command.insert(command.end(), more.begin(), more.end());
    const Outcome o = run(command);
    INFO(o.output);
    CHECK(o.code == (fs::exists(w.path(name)) ? 0 : 2));
    return o.output;
  };
  const std::vector<std::string> figure = {"--figure", "loss"};
  for (const std::string name :
       {"x.png", "x.pdf", "x.html", "x.PDF", "x.svgz", "x.bmp", "x.emf", "x.avif", "x.docx"}) {
    const std::string output = report(name, figure);
    CHECK(output.find("--output: expected a name that ends with .svg, as figures are SVG, found " +
                      w.path(name) + "; write " + w.path("x.svg") + " and convert") !=
          std::string::npos);
    CHECK_FALSE(fs::exists(w.path(name)));
  }
  for (const std::string name : {"x.svg.gz", ".png"}) {
    CHECK(report(name, figure).find("as figures are SVG") != std::string::npos);
    CHECK_FALSE(fs::exists(w.path(name)));
  }
  for (const std::string name : {"x.pdf", "x.svg", "x.md"}) {
    CHECK(report(name).find("--output: expected a name that ends with .html") != std::string::npos);
    CHECK_FALSE(fs::exists(w.path(name)));
  }
  for (const std::string name : {"ok.svg", "ok.SVG", "figure", "run-1.5"}) {
    report(name, figure);
    CHECK(fs::exists(w.path(name)));
  }
  for (const std::string name : {"ok.html", "ok.htm", "page", "page-1.5"}) {
    report(name);
    CHECK(fs::exists(w.path(name)));
  }
}

TEST_CASE("a line that the report refuses is refused by a resume, at the same place") {
  const Workplace w;
  const std::string config = write_config(w, "run.json", small_run(w));
  REQUIRE(run(bamtrain_command(config, {"train.stop_at=4"}), threads(1)).code == 0);
  const std::string path = w.path("out/metrics.jsonl"), good = read_text(path);
  const size_t second = good.find('\n') + 1, third = good.find('\n', second) + 1;
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string line = good.substr(second, third - second);
    return line.replace(line.find(from), from.size(), to);
  };
  for (const std::string& damage :
       {std::string("damage\n"), std::string("{\"step\":2}\n"), changed(":2,", ":1,"),
        changed(":2,", ":18446744073709551615,"), changed("\"loss\":", "\"loss\":\"x\",\"b\":"),
        changed("\"seconds\":", "\"seconds\":\"x\",\"b\":"),
        changed("\"step\":2", "\"step\":2,\"parameters\":3"),
        changed("\"step\":2", "\"step\":2,\"attention\":{}"), std::string(1000, '[') + "\n"}) {
    std::ofstream(path) << good.substr(0, second) << damage << good.substr(third);
    const Outcome report =
        run({bamtrain_program(), "report", w.path("out"), "-o", w.path("page.html")});
    const Outcome resume = run(bamtrain_command(config), threads(1));
    INFO(report.output << resume.output);
    CHECK(report.code == 6);
    CHECK(resume.code == 6);
    const std::string message = report.output.substr(report.output.find(path));
    CHECK(message.find(path + ":2") == 0);
    CHECK(message.find("restore the file from a copy, or remove the line") != std::string::npos);
    CHECK(resume.output.find(message) != std::string::npos);
  }
  std::ofstream(path) << good;
  CHECK(run(bamtrain_command(config), threads(1)).code == 0);
}

TEST_CASE("a run's name reaches neither terminal nor page as a control") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["name"] =
      "a\x1B]0;b\x07\xC2\x9B"
      "c";
  c["train"]["stop_at"] = 1;
  Outcome o = run(bamtrain_command(write_config(w, "run.json", c)), threads(1));
  const Outcome r = run({bamtrain_program(), "report", w.path("out"), "-o", w.path("page.html")});
  REQUIRE(o.code == 0);
  REQUIRE(r.code == 0);
  for (const std::string& text : {o.output + r.output, read_text(w.path("out/report.html")),
                                  read_text(w.path("page.html"))}) {
    for (const char* control : {"\x1B", "\x07", "\xC2\x9B"}) {
      CHECK(text.find(control) == std::string::npos);
    }
  }
  CHECK(o.output.find("a\xEF\xBF\xBD]0;b\xEF\xBF\xBD\xEF\xBF\xBD"
                      "c: 1 process") != std::string::npos);
}

TEST_CASE("a page begins with what its run is, and was started on") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["stop_at"] = 2;
  REQUIRE(run(bamtrain_command(write_config(w, "run.json", c)), threads(1)).code == 0);
  std::ofstream(w.path("out/starts.json"))
      << R"([{"version": "0.1.0", "commit": "abc123", "host": "node", "processor": "A CPU",
              "processes": 1, "threads": 1, "started": "2026-11-25T00:00:00Z",
              "parameters": 12345}])";
  REQUIRE(run({bamtrain_program(), "report", w.path("out"), "-o", w.path("page.html")}).code == 0);
  const auto facts = [](const std::string& html) {
    std::map<std::string, std::string> out;
    const Xml body = body_of(html);
    for (const Xml* row : body.all("table")[0]->all("tbody")[0]->all("tr")) {
      out[row->all("th")[0]->text] = row->all("td")[0]->text;
    }
    return out;
  };
  auto shown = facts(read_text(w.path("page.html")));
  CHECK(shown.at("total time") != "");
  shown.erase("total time");
  const std::map<std::string, std::string> expected = {
      {"model", "2 layers, width 64, 4 heads (2 of keys and values), vocabulary 211"},
      {"attention", "bam, scale ssmax, normalizer softmax"},
      {"parameters", "12,345"},
      {"training", "8 steps of 1,024 tokens, sequences of 64"},
      {"optimizer", "radam, lr 0.003, cosine"},
      {"precision", "fp32"},
      {"hardware", "A CPU, node"},
      {"processes", "1 of 1 thread"},
      {"last start", "2026-11-25T00:00:00Z"},
      {"program", "bamtrain 0.1.0, abc123"}};
  for (const auto& [name, value] : expected) CHECK(shown[name] == value);
  CHECK(shown.size() == expected.size());
  // The report written during training counts the parameters from the tensors.
  int64_t parameters = 0;
  const auto header =
      nlohmann::json::parse(header_of(w.path("out/checkpoint-00000002/model.safetensors")));
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    int64_t size = 1;
    for (const int64_t n : tensor["shape"]) size *= n;
    parameters += size;
  }
  std::string digits = facts(read_text(w.path("out/report.html"))).at("parameters");
  digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
  CHECK(digits == std::to_string(parameters));
}

TEST_CASE("a dry run tells the memory that the live report takes") {
  const Workplace w;
  std::vector<std::string> command = bamtrain_command(write_config(w, "run.json", small_run(w)));
  command.push_back("--dry-run");
  const Outcome o = run(command, threads(1));
  INFO(o.output);
  CHECK(o.code == 0);
  // At most 16,384 lines of 13 numbers of 8 bytes, and the curves of 8 heads.
  CHECK(o.output.find("+ report                            1.9 MiB") != std::string::npos);
}

TEST_CASE("seconds count on where a run is resumed") {
  const Workplace w;
  const nlohmann::json c = small_run(w);
  const std::string file = write_config(w, "run.json", c);
  REQUIRE(run(bamtrain_command(file, {"train.stop_at=4"}), threads(1)).code == 0);
  const double first = read_metrics(w.path("out")).back()["seconds"];
  REQUIRE(run(bamtrain_command(file), threads(1)).code == 0);
  const auto lines = read_metrics(w.path("out"));
  REQUIRE(lines.size() == 8);
  for (size_t i = 1; i < 8; ++i) {
    CHECK(lines[i]["seconds"].get<double>() > lines[i - 1]["seconds"].get<double>());
  }
  CHECK(lines[3]["seconds"] == first);
}
