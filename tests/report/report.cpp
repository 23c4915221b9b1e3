#include "report/report.h"

#include <fmt/format.h>

#include <cmath>

#include "catch.h"
#include "priors/registry.h"
#include "report/xml.h"
#include "scales/registry.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

MetricsLine line(int64_t step, double loss) {
  return {step, 100.0 * static_cast<double>(step), loss, 1e-3, 2, 500, NAN, NAN, NAN};
}

ModelConfig bam_model() {
  ModelConfig c;
  c.vocab = 10;
  c.width = 8;
  c.layers = 1;
  c.heads = 2;
  c.kv_heads = 2;
  c.attention.prior = PriorChoice(*find_prior("bam"));
  c.attention.scale = ScaleChoice(*find_scale("ssmax"));
  return c;
}

std::vector<std::string> captions(const Xml& body) {
  std::vector<std::string> out;
  for (const Xml* c : body.all("figcaption")) out.push_back(c->text);
  return out;
}

const Xml* figure_of(const Xml& body, const std::string& title) {
  for (const Xml* f : body.all("figure")) {
    if (f->all("figcaption")[0]->text == title) return f;
  }
  FAIL("no figure " << title);
  return nullptr;
}

const char* const kWild = "<b>\"&'</b>";

}  // namespace

TEST_CASE("a report shows every run's numbers where they belong") {
  RunRecord a, b;
  a.metrics = {line(1, 8), line(2, 4)};
  a.metrics[1].validation_loss = 5;
  a.metrics[0].seconds = 30;
  a.metrics[1].seconds = 90;
  a.metrics[1].matrix_rate_share = 0.5;
  const std::string layer = "model.layers.0.self_attn.";
  a.parameters = {{layer + "prior.theta_alpha", {0, 1}},
                  {layer + "prior.theta_beta", {1, 0.5}},
                  {layer + "prior.theta_mu", {0, 0}},
                  {layer + "scale.s", {1, 1.5}}};
  a.perplexity = {2, 64, 32, "f", {{64, 50}, {256, 51}}, {{64, 48}, {256, 49}}, {}};
  a.attention = {4, {{1, 3}}, {{5, 10}}, {{1, 0.25}}};
  a.samples = {{2, kWild, "</blockquote>"}};
  b.metrics = {line(1, 9), line(2, 6), line(3, 5)};
  b.attention = {4, {{2, 2.5}, {0, 4}}, {{7, 8}, {1, 16}}, {}};
  b.perplexity = {3, 64, 32, "f", {{64, 40}, {256, 800}}, {{64, 41}, {256, 900}}, {}};
  const std::vector<ReportedRun> runs = {{kWild, "out/<a>", &a, bam_model(), 64},
                                         {"rope", "out/b", &b, std::nullopt, 0}};
  const std::string html =
      report_html(runs, {{"model.attention.prior.name", {"bam", "rope"}}, {"x", {kWild, ""}}});
  CHECK(references_in(html).empty());
  const Xml body = body_of(html);
  CHECK(body.all("h1")[0]->text == std::string(kWild) + ", rope");
  CHECK(body.all("b").size() == 1);  // the sample's prompt
  CHECK(body.all("b")[0]->text == kWild);
  CHECK(body.all("blockquote")[0]->text == "</blockquote>");
  CHECK(captions(body) ==
        std::vector<std::string>{
            "perplexity of windows of each length", "perplexity of each window's last tokens",
            "loss", "validation loss", "loss against wall time", "gradient norm", "learning rate",
            "tokens per second", "share of the machine's matrix rate, %",
            "entropy of attention, nats", "support of attention, keys",
            "live tiles of attention, %", std::string(kWild) + ": bam, layer 0",
            "bam: theta_alpha against theta_beta", "ssmax: s of each head, by layer"});

  // The loss: x linear from 100 to 300, y logarithmic from 4 to 9, a twenty-fifth to spare.
  const Xml* loss = figure_of(body, "loss");
  const auto lines = loss->all("polyline");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]->at("class") == "c0");
  CHECK(lines[0]->at("data-name") == kWild);
  CHECK(lines[1]->at("class") == "c1");
  const auto place = [](double tokens, double value) {
    const double x = (tokens - 92) / 216;
    const double y = (std::log(value / 4) / std::log(2.25) + 0.04) / 1.08;
    return fmt::format("{},{}", std::round((50 + x * 338) * 100) / 100,
                       std::round((202 - y * 192) * 100) / 100);
  };
  CHECK(lines[0]->at("points") == place(100, 8) + " " + place(200, 4));
  CHECK(lines[1]->at("points") == place(100, 9) + " " + place(200, 6) + " " + place(300, 5));

  // The same colour everywhere.
  const Xml* windows = figure_of(body, "perplexity of windows of each length");
  CHECK(windows->all("polyline")[1]->at("class") == "c1");
  CHECK(windows->of_class("text", "label").size() == 2);
  CHECK(windows->of_class("text", "note")[0]->text == "trained at 64");
  CHECK(windows->all("circle")[3]->all("title")[0]->text == "rope: 800.00 at 256");
  CHECK(figure_of(body, "loss against wall time")->of_class("text", "title")[0]->text ==
        "minutes of training");
  CHECK(figure_of(body, "ssmax: s of each head, by layer")->all("circle").size() == 2);
  CHECK(figure_of(body, std::string(kWild) + ": bam, layer 0")->all("polyline").size() == 2);

  // A point per head; y from 0 to 4, a twenty-fifth to spare above.
  const Xml* entropy = figure_of(body, "entropy of attention, nats");
  REQUIRE(entropy->all("circle").size() == 6);
  CHECK(entropy->all("circle")[1]->at("class") == "c0");
  CHECK(entropy->all("circle")[5]->all("title")[0]->text == "rope, layer 1, head 1: 4 nats");
  CHECK(figure_of(body, "support of attention, keys")->all("circle")[3]->all("title")[0]->text ==
        "rope, layer 0, head 1: 8 keys");
  const auto live = figure_of(body, "live tiles of attention, %")->all("circle");
  REQUIRE(live.size() == 2);  // the second run knows none
  CHECK(live[1]->all("title")[0]->text == std::string(kWild) + ", layer 0, head 1: 25 %");

  const auto tables = body.all("table");
  REQUIRE(tables.size() == 4);  // runs, two protocols, config
  const auto cells = tables[1]->all("td");
  REQUIRE(cells.size() == 4);
  const char* values[] = {"50.00", "51.00", "40.00", "800.00"};
  for (size_t i = 0; i < 4; ++i) CHECK(cells[i]->text == values[i]);
  CHECK(tables[3]->all("td")[2]->text == kWild);

  const std::string plot = report_plot(runs);
  CHECK(plot.find("perplexity of the last 32 tokens against length\n") == 0);
  CHECK(plot.find(" a " + std::string(kWild) + "\n") != std::string::npos);
  CHECK(plot.find(" b rope\n") != std::string::npos);
}

TEST_CASE("a run that has logged nothing, one line, or no validation has a report") {
  RunRecord none, one, two;
  one.metrics = {line(1, 8)};
  two.metrics = {line(1, 8), line(2, 7)};
  for (const RunRecord* record : {&none, &one, &two}) {
    const Xml body = body_of(report_html({{"run", "out", record, std::nullopt, 0}}, {}));
    CHECK(body.all("table").size() == 1);
    CHECK(body.all("figure").size() == (record == &none ? 0 : 4));
    CHECK(report_plot({{"run", "out", record, std::nullopt, 0}}).empty());
  }
  const Xml body = body_of(report_html({{"run", "out", &one, bam_model(), 64}}, {}));
  CHECK(figure_of(body, "loss")->all("circle").size() == 1);
}

TEST_CASE("perplexities on different data are said not to compare") {
  RunRecord a, b;
  a.perplexity = {2, 64, 32, "f", {{64, 50}, {256, 51}}, {}, {}};
  b.perplexity = {2, 64, 32, "g", {{64, 50}, {256, 51}}, {}, {}};
  const std::vector<ReportedRun> runs = {{"a", "a", &a, std::nullopt, 0},
                                         {"b", "b", &b, std::nullopt, 0}};
  const std::string note = "evaluated on different data";
  CHECK(report_html(runs, {}).find(note) != std::string::npos);
  CHECK(report_plot(runs).find("perplexity against length\n") == 0);
  b.perplexity->data_fingerprint = "f";
  CHECK(report_html(runs, {}).find(note) == std::string::npos);
}

TEST_CASE("errors stand beside their figures, where the files have any") {
  RunRecord now, old;
  now.metrics = {line(1, 8), line(2, 4)};
  now.metrics[0].validation_loss = 6;
  now.metrics[1].validation_loss = 5;
  now.metrics[1].validation_loss_error = 0.01234;
  now.perplexity = {2, 64, 32, "f", {{64, 50, 1.234}, {256, 5100, 12.6}}, {{64, 48, NAN}}, {}};
  old.metrics = {line(2, 4)};
  old.metrics[0].validation_loss = 5;
  old.perplexity = {2, 64, 32, "f", {{64, 51}, {256, 52}}, {{64, 53}}, {}};
  const auto cells = [](const Xml& body, size_t table) {
    std::vector<std::string> out;
    for (const Xml* cell : body.all("table")[table]->all("td")) out.push_back(cell->text);
    return out;
  };
  const std::string sign = " \u00b1 ";
  const std::string html =
      report_html({{"now", "a", &now, std::nullopt, 0}, {"old", "b", &old, std::nullopt, 0}}, {});
  const Xml body = body_of(html);
  CHECK(cells(body, 0)[3] == "5.0000" + sign + "0.0123");
  CHECK(cells(body, 0)[9] == "5.0000");
  CHECK(cells(body, 1) ==
        std::vector<std::string>{"50.00" + sign + "1.23", "5,100" + sign + "13", "51.00", "52.00"});
  CHECK(cells(body, 2) == std::vector<std::string>{"48.00" + sign + "-", "53.00"});
  CHECK(figure_of(body, "perplexity of windows of each length")
            ->all("circle")[0]
            ->all("title")[0]
            ->text == "now: 50.00" + sign + "1.23 at 64");
  CHECK(html.find("the standard error of having sampled this text, over its sequences") !=
        std::string::npos);
  CHECK(html.find("the standard error of having sampled this text, over its documents") !=
        std::string::npos);
  CHECK(report_html({{"old", "b", &old, std::nullopt, 0}}, {}).find("standard error") ==
        std::string::npos);
}

TEST_CASE("perplexities of an earlier step say so") {
  RunRecord run;
  run.metrics = {line(2, 8), line(1200, 7)};
  run.perplexity = {2, 64, 32, "f", {{64, 50}, {256, 51}}, {}, {}};
  const auto note = [&] {
    const Xml body = body_of(report_html({{kWild, "out", &run, std::nullopt, 0}}, {}));
    const auto paragraphs = body.all("p");
    return paragraphs.empty() ? "" : paragraphs[0]->text;
  };
  CHECK(note() == std::string(kWild) + " was evaluated at step 2.");
  run.perplexity->step = 1200;
  CHECK(note().empty());
}

TEST_CASE("a long run's report stays small") {
  RunRecord run;
  for (int64_t i = 1; i <= 100'000; ++i) {
    run.metrics.push_back(line(i, 5 + std::sin(static_cast<double>(i))));
  }
  CHECK(report_html({{"run", "out", &run, std::nullopt, 0}}, {}).size() < 200'000);
}

TEST_CASE("an evaluation's plot has a line per protocol") {
  const PerplexityResult result = {2, 64, 32, "f", {{64, 50}, {256, 51}}, {{64, 48}, {256, 49}},
                                   {}};
  const std::string plot = perplexity_plot(result);
  CHECK(plot.find(" a windows of each length, all positions\n") != std::string::npos);
  CHECK(plot.find(" b last 32 tokens of each window\n") != std::string::npos);
  CHECK(perplexity_plot({2, 64, 32, "f", {{64, 50}}, {{64, 48}}, {}}).empty());
}
