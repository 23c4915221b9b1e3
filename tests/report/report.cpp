#include "report/report.h"

#include <fmt/format.h>

#include <cmath>

#include "catch.h"
#include "mixes/registry.h"
#include "priors/registry.h"
#include "report/xml.h"
#include "scales/registry.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

MetricsLine loss_line(int64_t step, double loss) {
  return {step, 100.0 * static_cast<double>(step), loss, 1e-3, 2, 500, NAN, NAN, NAN};
}

MetricsHistory history(const std::vector<MetricsLine>& lines) {
  MetricsHistory out;
  for (const MetricsLine& m : lines) out.add(m);
  return out;
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
  std::vector<MetricsLine> lines = {loss_line(1, 8), loss_line(2, 4)};
  lines[1].validation_loss = 5;
  lines[0].seconds = 30;
  lines[1].seconds = 90;
  lines[1].grad_norm = 3;
  lines[1].mfu = 0.5;
  lines[1].data_wait = 12;
  a.metrics = history(lines);
  const std::string layer = "model.layers.0.self_attn.";
  a.parameters = {{layer + "prior.theta_alpha", {0, 1}},
                  {layer + "prior.theta_beta", {1, 0.5}},
                  {layer + "prior.theta_mu", {0, 0}},
                  {layer + "scale.s", {1, 1.5}}};
  a.perplexity = {2, 64, 32, "f", {{64, 50}, {256, 51}}, {{64, 48}, {256, 49}}, {}};
  a.attention = {4, {{1, 3}}, {{5, 10}}, {{1, 0.25}}};
  a.samples = {{2, kWild, "</blockquote>"}};
  b.metrics = history({loss_line(1, 9), loss_line(2, 6), loss_line(3, 5)});
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
            "perplexity of windows of each length", "perplexity of each window's last 32 tokens",
            "loss, smoothed", "validation loss", "loss, smoothed, against wall time",
            "gradient norm", "MFU, % of the measured matmul peak", "wait for data, ms a step",
            "entropy of attention, nats", "nonzero keys of attention",
            "nonzero blocks of attention, %", std::string(kWild) + ": bam, layer 0",
            "bam: theta_alpha against theta_beta", "ssmax: s of each head, by layer"});

  // The loss: x linear from 100 to 300, y logarithmic from 4 to 9, with a margin of 1/25.
  const Xml* loss = figure_of(body, "loss, smoothed");
  const auto curves = loss->all("polyline");
  REQUIRE(curves.size() == 4);  // as logged (faint), and smoothed
  CHECK(curves[0]->at("class") == "c0");
  CHECK(curves[0]->at("data-name") == std::string(kWild) + ", logged");
  CHECK(curves[0]->at("stroke-opacity") == "0.3");
  CHECK(curves[1]->at("class") == "c1");
  CHECK(curves[2]->at("data-name") == kWild);
  CHECK(curves[3]->at("data-name") == "rope");
  CHECK(curves[3]->attributes.count("stroke-opacity") == 0);
  const auto place = [](double tokens, double value) {
    const double x = (tokens - 92) / 216;
    const double y = (std::log(value / 4) / std::log(2.25) + 0.04) / 1.08;
    return fmt::format("{},{}", std::round((50 + x * 338) * 100) / 100,
                       std::round((202 - y * 192) * 100) / 100);
  };
  CHECK(curves[0]->at("points") == place(100, 8) + " " + place(200, 4));
  CHECK(curves[1]->at("points") == place(100, 9) + " " + place(200, 6) + " " + place(300, 5));
  // Means over the preceding values.
  CHECK(curves[2]->at("points") == place(100, 8) + " " + place(200, 6));
  CHECK(curves[3]->at("points") ==
        place(100, 9) + " " + place(200, 7.5) + " " + place(300, 20.0 / 3));
  CHECK(curves[3]->at("data-values") == "100,9 200,7.5 300,6.66667");
  CHECK(body.all("table")[0]->all("td")[2]->text == "6.0000");  // smoothed

  // Each run has the same colour everywhere.
  const Xml* windows = figure_of(body, "perplexity of windows of each length");
  CHECK(windows->all("polyline")[1]->at("class") == "c1");
  CHECK(windows->of_class("text", "label").size() == 2);
  CHECK(windows->of_class("text", "note")[0]->text == "trained at 64");
  CHECK(windows->all("circle")[3]->all("title")[0]->text == "rope: 800.00 at 256");
  CHECK(figure_of(body, "loss, smoothed, against wall time")->of_class("text", "title")[0]->text ==
        "minutes of training");
  CHECK(figure_of(body, "ssmax: s of each head, by layer")->all("circle").size() == 2);
  CHECK(figure_of(body, std::string(kWild) + ": bam, layer 0")->all("polyline").size() == 2);

  // One point per head; y from 0 to 4, with a margin of 1/25 at the top.
  const Xml* entropy = figure_of(body, "entropy of attention, nats");
  REQUIRE(entropy->all("circle").size() == 6);
  CHECK(entropy->all("circle")[1]->at("class") == "c0");
  CHECK(entropy->all("circle")[5]->all("title")[0]->text == "rope, layer 1, head 1: 4 nats");
  CHECK(figure_of(body, "nonzero keys of attention")->all("circle")[3]->all("title")[0]->text ==
        "rope, layer 0, head 1: 8 keys");
  const auto live = figure_of(body, "nonzero blocks of attention, %")->all("circle");
  REQUIRE(live.size() == 2);  // the second run has none
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
  one.metrics = history({loss_line(1, 8)});
  two.metrics = history({loss_line(1, 8), loss_line(2, 7)});
  for (const RunRecord* record : {&none, &one, &two}) {
    const Xml body = body_of(report_html({{"run", "out", record, std::nullopt, 0}}, {}));
    CHECK(body.all("table").size() == 1);
    // Two lines have the same gradient norm, learning rate and speed.
    CHECK(body.all("figure").size() == (record == &none ? 0 : record == &one ? 4 : 1));
    CHECK(report_plot({{"run", "out", record, std::nullopt, 0}}).empty());
  }
  const Xml body = body_of(report_html({{"run", "out", &one, bam_model(), 64}}, {}));
  CHECK(figure_of(body, "gradient norm")->all("circle").size() == 1);
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
  CHECK(report_plot(runs).ends_with(
      "\nthese runs were evaluated on different data: their perplexities are not comparable\n"));
  b.perplexity->data_fingerprint = "f";
  const auto nowhere = [&](const std::string& text) {
    CHECK(report_html(runs, {}).find(text) == std::string::npos);
    CHECK(report_plot(runs).find(text) == std::string::npos);
  };
  nowhere(note);
  // The same data: the longest length determined the documents.
  a.perplexity->documents = b.perplexity->documents = 14;
  nowhere("are not comparable");
  b.perplexity->documents = 8;
  const std::string of_documents =
      "hese runs were evaluated on different documents of the same data";
  CHECK(report_html(runs, {}).find("<p>T" + of_documents) != std::string::npos);
  CHECK(report_plot(runs).find("\nt" + of_documents) != std::string::npos);
}

TEST_CASE("errors stand beside their figures, where the files have any") {
  RunRecord now, old;
  std::vector<MetricsLine> lines = {loss_line(1, 8), loss_line(2, 4), loss_line(2, 4)};
  lines[0].validation_loss = 6;
  lines[1].validation_loss = lines[2].validation_loss = 5;
  lines[1].validation_loss_error = 0.01234;
  now.metrics = history({lines[0], lines[1]});
  now.perplexity = {2, 64, 32, "f", {{64, 50, 1.234}, {256, 5100, 12.6}}, {{64, 48, NAN}}, {}};
  old.metrics = history({lines[2]});
  old.perplexity = {2, 64, 32, "f", {{64, 51}, {256, 52}}, {{64, 53}}, {}};
  const auto cells = [](const Xml& body, size_t table) {
    std::vector<std::string> out;
    for (const Xml* cell : body.all("table")[table]->all("td")) out.push_back(cell->text);
    return out;
  };
  const std::string sign = "\u00a0\u00b1\u00a0";
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
  CHECK(html.find("the standard error over the sequences of this text") != std::string::npos);
  CHECK(html.find("the standard error over the documents of this text") != std::string::npos);
  CHECK(report_html({{"old", "b", &old, std::nullopt, 0}}, {}).find("the standard error of") ==
        std::string::npos);
}

TEST_CASE("a page begins with the facts of its runs, as far as they are known") {
  RunRecord a, b;
  const std::vector<ReportedRun> runs = {
      {"a", "a", &a, std::nullopt, 0, {{"parameters", "1,000"}, {"hardware", kWild}}},
      {"b", "b", &b, std::nullopt, 0, {{"precision", "bf16"}, {"hardware", "h"}}}};
  const Xml body = body_of(report_html(runs, {}));
  const Xml* facts = body.all("table")[0];
  std::vector<std::string> names, values;
  for (const Xml* row : facts->all("tbody")[0]->all("tr")) {
    names.push_back(row->all("th")[0]->text);
    for (const Xml* cell : row->all("td")) values.push_back(cell->text);
  }
  CHECK(names == std::vector<std::string>{"parameters", "hardware", "precision"});
  CHECK(values == std::vector<std::string>{"1,000", "", kWild, "h", "", "bf16"});
}

TEST_CASE("how many last tokens count stands beside them, of each run where they differ") {
  RunRecord a, b;
  a.perplexity = {2, 64, 16, "f", {}, {{64, 48}, {256, 49}}, {}};
  b.perplexity = {2, 64, 16, "f", {}, {{64, 41}, {256, 42}}, {}};
  const auto caption = [&] {
    return captions(body_of(
        report_html({{"a", "a", &a, std::nullopt, 0}, {"b", "b", &b, std::nullopt, 0}}, {})))[0];
  };
  CHECK(caption() == "perplexity of each window's last 16 tokens");
  b.perplexity->last_tokens = 256;
  CHECK(caption() == "perplexity of each window's last 16 (a), 256 (b) tokens");
}

TEST_CASE("bins are drawn at their middle and named by their ends") {
  RunRecord run;
  run.perplexity = {2, 64, 16, "f", {}, {}, {{1024, 50, 1.5, 0, 1.25}, {2000, 48, NAN, 1024}}};
  const auto page = [&] { return body_of(report_html({{"a", "a", &run, std::nullopt, 0}}, {})); };
  const Xml body = page();
  const Xml* bins = figure_of(body, "perplexity by position in one long pass");
  CHECK(bins->all("polyline")[0]->at("data-values") == "512,50,1.5 1512,48");
  CHECK(bins->all("circle")[1]->all("title")[0]->text ==
        "a: 48.00\u00a0\u00b1\u00a0- at 1,024 to 2,000");
  CHECK(bins->of_class("line", "error").size() == 1);
  const auto tables = body.all("table");
  REQUIRE(tables.size() == 3);  // the run's, perplexities, bits
  CHECK(tables[1]->all("thead")[0]->all("th")[1]->text == "0 to 1,024");
  CHECK(tables[2]->all("td")[0]->text == "1.2500");
  run.perplexity->bins.pop_back();  // the whole range of the longest windows
  CHECK(page().all("figure").empty());
}

TEST_CASE("charts of one prior have the same axes") {
  RunRecord record;
  const std::string layer = "model.layers.0.self_attn.prior.";
  record.parameters = {{layer + "theta_alpha", {0, 1}},
                       {layer + "theta_beta", {1, 0.5}},
                       {layer + "theta_mu", {0, 0}}};
  RunRecord steep = record;
  steep.parameters[layer + "theta_alpha"] = {0, 2};
  const auto ticks_of = [&](const std::vector<ReportedRun>& runs, const char* run) {
    const Xml body = body_of(report_html(runs, {}));
    std::vector<std::string> out;
    for (const Xml* tick :
         figure_of(body, std::string(run) + ": bam, layer 0")->of_class("text", "tick")) {
      out.push_back(tick->text + " at " + tick->at("x") + " " + tick->at("y"));
    }
    return out;
  };
  const ReportedRun flat_run = {"flat", "a", &record, bam_model(), 64},
                    steep_run = {"steep", "b", &steep, bam_model(), 256};
  CHECK(ticks_of({flat_run}, "flat") != ticks_of({steep_run}, "steep"));
  CHECK(ticks_of({flat_run, steep_run}, "flat") == ticks_of({flat_run, steep_run}, "steep"));
}

TEST_CASE("what a mix of heads reads is not shown as what is added to a logit") {
  RunRecord shallow, steep;
  const std::string layer = "model.layers.0.self_attn.prior.";
  shallow.parameters = {{layer + "theta_alpha", {0, 1}},
                        {layer + "theta_beta", {1, 0.5}},
                        {layer + "theta_mu", {0, 0}}};
  steep.parameters = shallow.parameters;
  steep.parameters[layer + "theta_alpha"] = {0, 2};
  ModelConfig mixed = bam_model();
  mixed.attention.prior.mixes = {MixChoice(*find_mix("dape"))};
  const ReportedRun plain_run = {"p", "a", &shallow, bam_model(), 64},
                    mixed_run = {"m", "b", &steep, mixed, 256};
  const auto headings = [](const Xml& body) {
    std::vector<std::string> out;
    for (const Xml* h : body.all("h2")) {
      if (h->text.starts_with("What ")) out.push_back(h->text);
    }
    return out;
  };
  const std::string added = "What the priors add to a logit", read = "What mixes of heads read";
  const Xml alone = body_of(report_html({mixed_run}, {}));
  CHECK(headings(alone) == std::vector<std::string>{read});
  CHECK(captions(alone)[0] == "m: what dape reads: bam, layer 0");

  const Xml both = body_of(report_html({mixed_run, plain_run}, {}));
  CHECK(headings(both) == std::vector<std::string>{added, read});
  CHECK(captions(both)[0] == "p: bam, layer 0");
  CHECK(captions(both)[1] == "m: what dape reads: bam, layer 0");
  // The axes of the two are independent.
  const auto ticks = [](const Xml& body, const std::string& title) {
    std::vector<std::string> out;
    for (const Xml* tick : figure_of(body, title)->of_class("text", "tick")) {
      out.push_back(tick->text + " at " + tick->at("x") + " " + tick->at("y"));
    }
    return out;
  };
  const Xml plain = body_of(report_html({plain_run}, {}));
  CHECK(ticks(both, "p: bam, layer 0") == ticks(plain, "p: bam, layer 0"));
  CHECK(ticks(both, captions(both)[1]) == ticks(alone, captions(alone)[0]));
  CHECK(ticks(both, captions(both)[0]) != ticks(both, captions(both)[1]));
}

TEST_CASE("a result of very many lengths makes no page of as many points") {
  RunRecord run;
  run.perplexity = {2, 64, 16, "f", {}, {}, {}};
  for (int64_t length = 1; length <= 500'000; ++length) {
    const double p = 50 + std::sin(static_cast<double>(length));
    run.perplexity->windows.push_back({length, p, 1});
    run.perplexity->bins.push_back({length, p, 1, length - 1, 2});
  }
  run.attention = {1, HeadMeans(500'000, {1, 2}), HeadMeans(500'000, {1, 2}), {}};
  run.attention->entropy[7] = run.attention->nonzero_keys[7] = {3, 4};  // the means vary
  const std::string html = report_html({{"a", "a", &run, std::nullopt, 0}}, {});
  CHECK(html.size() < 300'000);
  CHECK(body_of(html).all("figure").size() == 4);
}

TEST_CASE("perplexities of an earlier step say so") {
  RunRecord run;
  run.metrics = history({loss_line(2, 8), loss_line(1200, 7)});
  run.perplexity = {2, 64, 32, "f", {{64, 50}, {256, 51}}, {}, {}};
  const auto note = [&] {
    const Xml body = body_of(report_html({{kWild, "out", &run, std::nullopt, 0}}, {}));
    return body.all("p")[2]->text;  // after the headline and its note
  };
  CHECK(note() == std::string(kWild) + " was evaluated at step 2.");
  run.perplexity->step = 1200;
  CHECK(note().find("evaluated") == std::string::npos);
}

TEST_CASE("a long run's report stays small") {
  RunRecord run;
  for (int64_t i = 1; i <= 100'000; ++i) {
    run.metrics.add(loss_line(i, 5 + std::sin(static_cast<double>(i))));
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
