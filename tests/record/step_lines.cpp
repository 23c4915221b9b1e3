#include "record/step_lines.h"

#include <filesystem>
#include <fstream>

#include "catch.h"
#include "core/error.h"
#include "data/files.h"
#include "train/bound_by_permissions.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

TEST_CASE("lines are cut back to the checkpoint's step, a half-written line included") {
  const Workplace w;
  {
    StepLines m(w.path("metrics.jsonl"), 0);
    for (int step = 1; step <= 5; ++step) m.write({{"step", step}, {"loss", 1.5}});
  }
  std::ofstream(w.path("metrics.jsonl"), std::ios::app) << "{\"step\": 6, \"lo";
  {
    StepLines m(w.path("metrics.jsonl"), 3);
    m.write({{"step", 4}, {"loss", 2.5}});
  }
  const auto lines = read_metrics(w.path("."));
  REQUIRE(lines.size() == 4);
  CHECK(lines[2]["step"] == 3);
  CHECK(lines[2]["loss"] == 1.5);
  CHECK(lines[3]["step"] == 4);
  CHECK(lines[3]["loss"] == 2.5);
}

TEST_CASE("the last line kept is known, as far as the file was cut back") {
  const Workplace w;
  const std::string path = w.path("metrics.jsonl");
  {
    StepLines m(path, 0);
    CHECK(m.last() == nlohmann::json::object());
    for (int step = 1; step <= 3; ++step) m.write({{"step", step}, {"seconds", 1.5 * step}});
  }
  CHECK(StepLines(path, 3).last() == nlohmann::json{{"step", 3}, {"seconds", 4.5}});
  CHECK(StepLines(path, 2).last() == nlohmann::json{{"step", 2}, {"seconds", 3.0}});
}

TEST_CASE("a fresh run starts with an empty file") {
  const Workplace w;
  { StepLines(w.path("metrics.jsonl"), 0).write({{"step", 1}}); }
  { StepLines m(w.path("metrics.jsonl"), 0); }
  CHECK(read_metrics(w.path(".")).empty());
}

namespace {

std::string lines_refusal(const std::string& path, int64_t step) {
  return error_of(ExitCode::io, [&] { StepLines(path, step); });
}

}  // namespace

TEST_CASE("a damaged line with whole ones behind it is named, and nothing is cut off") {
  const Workplace w;
  const std::string path = w.path("metrics.jsonl");
  const std::string first = "{\"step\": 1}\n{\"step\": 2}\n", later = "{\"step\": 4}\n";
  const std::vector<std::pair<std::string, std::string>> damages = {
      {"{\"step\": 3, \"lo", ":3:15: invalid JSON"},
      {"", ":3:1: invalid JSON"},
      {"[3]", ":3: expected a JSON object, found [3]"},
      {"{\"loss\": 3}", ":3: step: missing (an integer, 0 or more)"},
      {"{\"step\": \"3\"}", ":3: step: expected an integer, 0 or more, found \"3\""},
      {"\xff", ":3:1: invalid JSON"},
      {std::string("{\"step\": 3\0}", 12), ":3:11: NUL byte"},
      {"{\"step\": -1}", ":3: step: expected an integer, 0 or more, found -1"},
      // As a signed number it would be -1.
      {"{\"step\": 18446744073709551615}",
       ":3: step: expected an integer from 0 to 1099511627776, found 18446744073709551615"},
      {"{\"step\": 1099511627777}",
       ":3: step: expected an integer from 0 to 1099511627776, found 1099511627777"},
      {"{\"step\": 2}", ":3: expected a step after 2, found 2"},
      {std::string(1000, '['), ":3:101: nested deeper than 100 levels"},
  };
  for (const auto& [damage, part] : damages) {
    const std::string text = first + damage + "\n" + later;
    std::ofstream(path, std::ios::binary) << text;
    const std::string message = lines_refusal(path, 4);
    INFO(message);
    CHECK(message.find("metrics.jsonl" + part) != std::string::npos);
    CHECK(message.find("; ") != std::string::npos);
    CHECK(read_text(path) == text);
    if (part.find("a step after") != std::string::npos) continue;
    // Past the checkpoint's step, the damaged line is removed with the others.
    CHECK(StepLines(path, 3).last() == nlohmann::json{{"step", 2}});
    CHECK(read_text(path) == first);
  }
}

TEST_CASE("a step that is too large by damage does not cut off the lines behind it") {
  const Workplace w;
  const std::string path = w.path("metrics.jsonl");
  const std::string text = "{\"step\": 1}\n{\"step\": 900}\n{\"step\": 3}\n";
  std::ofstream(path) << text;
  CHECK(lines_refusal(path, 3).find("metrics.jsonl:3: expected a step after 900, found 3") !=
        std::string::npos);
  CHECK(read_text(path) == text);
}

TEST_CASE("a file has as many lines of a step as its kind") {
  const Workplace w;
  const std::string path = w.path("samples.jsonl");
  std::ofstream(path) << "{\"step\": 1}\n{\"step\": 1}\n{\"step\": 2}\n";
  CHECK(lines_refusal(path, 2).find("samples.jsonl:2: expected a step after 1, found 1") !=
        std::string::npos);
  CHECK(StepLines(path, 1, {true}).last() == nlohmann::json{{"step", 1}});
  CHECK(read_text(path) == "{\"step\": 1}\n{\"step\": 1}\n");
}

TEST_CASE("an end that a power loss has torn is cut off, of however many lines it seems") {
  const Workplace w;
  const std::string path = w.path("metrics.jsonl"), good = "{\"step\": 1}\n";
  for (const std::string& torn : {std::string(4096, '\0'), std::string("{\"st\n\0\n", 8),
                                  std::string("{\"step\": 2}"), std::string("\n")}) {
    std::ofstream(path, std::ios::binary) << good << torn;
    CHECK(StepLines(path, 9).last() == nlohmann::json{{"step", 1}});
    CHECK(read_text(path) == good);
  }
}

TEST_CASE("damaged lines that are cut off are counted, unless they are of later steps") {
  const Workplace w;
  const std::string path = w.path("metrics.jsonl"), one = "{\"step\": 1}\n";
  const StepLineKind with_loss = {false, [](const JsonObject& line) { line.number("loss"); }};
  struct Case {
    std::string end;
    int64_t lines, first;
  };
  for (const Case& c : {Case{"", 0, 0}, Case{"{\"step\": 2", 0, 0}, Case{"[2]\n", 1, 2},
                        Case{"{\"step\": 2}\n[3]\n#\n{\"step\": 5", 2, 3},
                        // The first may be step 4, the second cannot.
                        Case{"#\n{\"step\": 5}\n#\n", 1, 2}}) {
    std::ofstream(path, std::ios::binary) << one << c.end;
    INFO(c.end);
    const StepLines lines(path, 3);
    CHECK(lines.damage().lines == c.lines);
    CHECK(lines.damage().first == c.first);
  }
  std::ofstream(path) << "{\"step\": 1, \"loss\": 1}\n"
                      << "{\"step\": 2}\n"
                      << "{\"step\": 9}\n";
  const StepLines lines(path, 3, with_loss);
  CHECK(lines.damage().lines == 1);
  CHECK(lines.damage().first == 2);
}

TEST_CASE("of lines that are cut while they are written, whole ones stay") {
  const Workplace w;
  const std::string path = w.path("metrics.jsonl");
  StepLines lines(path, 0);
  for (int step = 1; step <= 3; ++step) lines.write({{"step", step}});
  const std::string text = read_text(path);
  std::filesystem::resize_file(path, text.size() - 3);
  lines.write({{"step", 4}});
  std::vector<int64_t> steps;
  for (const auto& line : read_metrics(w.path("."))) steps.push_back(line["step"]);
  CHECK(steps == std::vector<int64_t>{1, 2, 4});
  CHECK(lines.take_lost());
}

TEST_CASE("a line ends with the CRC-32C of what is before it, and no flipped digit is taken") {
  const Workplace w;
  const std::string path = w.path("metrics.jsonl");
  {
    StepLines lines(path, 0);
    for (int step = 1; step <= 3; ++step) lines.write({{"step", step}, {"loss", 1.25}});
  }
  // Computed with a bitwise CRC of RFC 3720, in another language.
  const std::string first = "{\"step\":1,\"loss\":1.25,\"crc\":3968583430}\n",
                    second = "{\"step\":2,\"loss\":1.25,\"crc\":3187511209}\n",
                    third = "{\"step\":3,\"loss\":1.25,\"crc\":2368714700}\n";
  CHECK(read_text(path) == first + second + third);
  CHECK(StepLines(path, 3).last() == nlohmann::json{{"step", 3}, {"loss", 1.25}});
  for (size_t bit = 0; bit < 8 * (second.size() - 1); ++bit) {
    std::string flipped = second;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    std::ofstream(path, std::ios::binary) << first << flipped << third;
    INFO(flipped);
    const size_t name = second.find("crc");
    if (bit / 8 >= name && bit / 8 < name + 3) continue;  // becomes a line of an earlier program
    CHECK(lines_refusal(path, 3).find("metrics.jsonl:2") != std::string::npos);
  }
  std::ofstream(path) << first << "{\"step\":2,\"loss\":1.35,\"crc\":3187511209}\n" << third;
  CHECK(lines_refusal(path, 3).find("metrics.jsonl:2: expected a line that ends with ,\"crc\":") !=
        std::string::npos);
  // Lines of earlier programs, and one whose crc is not at its end.
  std::ofstream(path) << "{\"step\":1,\"loss\":1.25}\n" << second;
  CHECK(StepLines(path, 2).last() == nlohmann::json{{"step", 2}, {"loss", 1.25}});
  std::ofstream(path) << first << "{\"crc\":3187511209,\"step\":2,\"loss\":1.25}\n" << third;
  CHECK(lines_refusal(path, 3).find("metrics.jsonl:2: expected a line that ends with") !=
        std::string::npos);
}

TEST_CASE("a file of lines that cannot be written or read is an error that names the file") {
  {
    const Workplace w;
    CHECK(lines_refusal(w.path("absent/metrics.jsonl"), 0).find("absent/metrics.jsonl") !=
          std::string::npos);
  }
  const BoundByPermissions bound;
  if (!bound) {
    WARN("no user without root's rights: skipped");
    return;
  }
  const Workplace w;
  const std::string path = w.path("metrics.jsonl");
  std::ofstream(path) << "{\"step\": 1}\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_write);
  CHECK(lines_refusal(path, 1).find("metrics.jsonl: cannot read: Permission denied") !=
        std::string::npos);
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  CHECK(read_text(path) == "{\"step\": 1}\n");
}

TEST_CASE("a resumed run keeps metrics.jsonl as it is where a line in its middle is damaged") {
  const Workplace w;
  const std::string config = write_config(w, "run.json", small_run(w));
  REQUIRE(run(bamtrain_command(config, {"train.stop_at=4"}), threads(1)).code == 0);
  std::string text = read_text(w.path("out/metrics.jsonl"));
  text[text.find('\n') + 1] = '#';
  std::ofstream(w.path("out/metrics.jsonl")) << text;
  const Outcome o = run(bamtrain_command(config), threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::io));
  CHECK(o.output.find("out/metrics.jsonl:2:1: invalid JSON") != std::string::npos);
  CHECK(read_text(w.path("out/metrics.jsonl")) == text);
}

TEST_CASE("a resumed run says which lines of its metrics were damaged and are gone") {
  const Workplace w;
  const std::string config = write_config(w, "run.json", small_run(w));
  REQUIRE(run(bamtrain_command(config, {"train.stop_at=4"}), threads(1)).code == 0);
  std::string text = read_text(w.path("out/metrics.jsonl"));
  for (int line = 0; line < 2; ++line) text.replace(text.rfind("\"loss\""), 6, "\"lozz\"");
  std::ofstream(w.path("out/metrics.jsonl")) << text;
  const Outcome o = run(bamtrain_command(config), threads(1));
  INFO(o.output);
  CHECK(o.code == 0);
  CHECK(o.output.find(
            "warning: metrics.jsonl: cut off 2 damaged line(s) at its end, from line 3 on") !=
        std::string::npos);
  CHECK(read_metrics(w.path("out")).size() == 6);
}
