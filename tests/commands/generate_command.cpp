// `bamtrain generate` as a user calls it: what it prints and refuses.

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "core/utf8.h"
#include "on_terminal.h"
#include "train/trained_text.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct WritingText : TrainedText {
  using TrainedText::TrainedText;

  Words command(const Words& more) const {
    Words all = {bamtrain_program(), "generate", "--checkpoint", checkpoint};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Outcome generate(const Words& more) const { return run(command(more), threads(1)); }
  std::string text_of(const Words& more) const {
    const Outcome o = generate(more);
    INFO(o.output);
    REQUIRE(o.code == 0);
    CHECK(first_invalid_utf8(o.output) == std::string_view::npos);
    return o.output;
  }
  void check_refused(const Words& more, ExitCode code, const std::string& message) const {
    const Outcome o = generate(more);
    INFO(o.output);
    CHECK(o.code == static_cast<int>(code));
    CHECK(contains(o.output, message));
  }
};

}  // namespace

TEST_CASE("generate prints the same for a prompt as option, as file and as standard input") {
  const WritingText t;
  const std::string prompt = "The old sailor\n";
  const Words more = {"--max-tokens", "40"};
  const auto with = [&](Words first) {
    first.insert(first.end(), more.begin(), more.end());
    return first;
  };
  const std::string text = t.text_of(with({"--prompt", prompt}));
  CHECK(text.size() > 10);
  CHECK_FALSE(text.starts_with(prompt));
  write_bytes(t.text.w.path("prompt"), prompt);
  CHECK(t.text_of(with({"--prompt-file", t.text.w.path("prompt")})) == text);
  std::string shell = "exec \"$@\" < " + t.text.w.path("prompt");
  for (const Words& option : {Words{}, Words{"--prompt-file", "-"}}) {
    Words command = {"sh", "-c", shell, "sh"};
    for (const std::string& word : t.command(with(option))) command.push_back(word);
    const Outcome o = run(command, threads(1));
    CHECK(o.code == 0);
    CHECK(o.output == text);
  }
  // Another seed, another prompt and greedy decoding give different texts, also past the training
  // length.
  CHECK(t.text_of(with({"--prompt", prompt, "--seed", "1"})) != text);
  CHECK(t.text_of(with({"--prompt", ""})) != text);
  const Words greedy = {"--prompt", prompt, "--temperature", "0", "--max-tokens", "100"};
  CHECK(t.text_of(greedy) != text);
  CHECK(t.text_of(greedy) == t.text_of(greedy));
}

TEST_CASE("generate writes less of the same text where fewer tokens are asked for") {
  const WritingText t;
  const std::string prompt = std::string(900, 'x') + " Her brother";  // many prefill chunks
  const auto written = [&](const char* tokens) {
    return t.text_of({"--prompt", prompt, "--top-k", "9", "--max-tokens", tokens});
  };
  const std::string six = written("60");
  CHECK(six.starts_with(written("9")));
  CHECK(six.size() > written("9").size());
}

TEST_CASE("generate ends before stop strings and takes filters, precision and other priors") {
  const WritingText t;
  const Words base = {"--prompt", "Her brother", "--max-tokens", "60"};
  const auto with = [&](const Words& more) {
    Words all = base;
    all.insert(all.end(), more.begin(), more.end());
    return t.text_of(all);
  };
  const std::string whole = with({});
  REQUIRE(whole.size() > 30);
  size_t at = 10;
  while ((whole[at] & 0xC0) == 0x80) ++at;
  size_t end = at + 3;
  while ((whole[end] & 0xC0) == 0x80) ++end;
  const std::string stop = whole.substr(at, end - at);
  CHECK(with({"--stop", "never in it", "--stop", stop}) == whole.substr(0, whole.find(stop)));
  const std::string greedy = with({"--temperature", "0"});
  CHECK(with({"--top-k", "1"}) == greedy);
  CHECK(with({"--top-p", "1e-9"}) == greedy);
  CHECK(with({"--min-p", "1"}) == greedy);
  CHECK(with({"--precision", "fp32"}) == whole);
  CHECK(with({"--tokenizer", t.text.tokenizer}) == whole);
  CHECK(with({"--set", "model.attention.window=0"}) == whole);
  CHECK(with({"--stop", "[" + stop + "]"}) == whole);  // not parsed as a list
}

TEST_CASE("generate finds the tokenizer by its fingerprint, near the shards") {
  const WritingText t;
  const Words more = {"--prompt", "Her", "--max-tokens", "5"};
  const std::string text = t.text_of(more);
  const Workplace& w = t.text.w;
  t.text.remove_copies();
  // A different tokenizer next to the shards, and the right one under another name.
  auto settings = llama_settings();
  settings["vocab_size"] = "400";
  write_bytes(w.path("data/a.model"), trained_model(settings));
  fs::rename(t.text.tokenizer, w.path("data/train/of these.model"));
  CHECK(t.text_of(more) == text);
  // Mistral's own name for it, and a name that tells nothing.
  fs::rename(w.path("data/train/of these.model"), w.path("data/tokenizer.model.v7"));
  CHECK(t.text_of(more) == text);
  fs::rename(w.path("data/tokenizer.model.v7"), w.path("spm"));
  CHECK(t.text_of(more) == text);

  fs::create_directory(w.path("away"));
  fs::rename(w.path("spm"), w.path("away/elsewhere"));
  t.check_refused(more, ExitCode::data, "give its path with --tokenizer");
  Words named = more;
  named.insert(named.end(), {"--tokenizer", w.path("away/elsewhere")});
  CHECK(t.text_of(named) == text);
  named.back() = w.path("data/a.model");
  t.check_refused(named, ExitCode::data, "expected the model's tokenizer");
  named.back() = w.path("none.model");
  t.check_refused(named, ExitCode::io, "none.model");
  named.back() = w.path("text.txt");
  t.check_refused(named, ExitCode::data, "a SentencePiece model");
}

TEST_CASE("generate with shards that say nothing of their tokenizer wants it named") {
  const TextRun text;
  nlohmann::json c = small_run(text.w);  // shards without a manifest
  c["train"]["stop_at"] = 1;
  REQUIRE(run(bamtrain_command(write_config(text.w, "plain.json", c)), threads(1)).code == 0);
  Words command = {bamtrain_program(), "generate",
                   "--checkpoint",     text.w.path("out/checkpoint-00000001"),
                   "--prompt",         "Her"};
  Outcome o = run(command, threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::usage));
  CHECK(contains(o.output, "give it with --tokenizer"));
  command.insert(command.end(), {"--tokenizer", text.tokenizer});
  o = run(command, threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::data));
  CHECK(contains(o.output, "at most model.vocab = 211 ids, found 500"));
}

TEST_CASE("generate refuses what it cannot do before it prints anything") {
  const WritingText t;
  const auto refused = [&](const Words& more, ExitCode code, const std::string& message) {
    Words all = {"--prompt", "Her"};
    all.insert(all.end(), more.begin(), more.end());
    t.check_refused(all, code, message);
  };
  for (const char* option : {"--temperature", "--top-p", "--min-p", "--top-k", "--seed"}) {
    refused({option, ""}, ExitCode::usage, std::string(option) + ": expected ");
  }
  for (const char* seed : {"-1", "18446744073709551615", "99999999999999999999999"}) {
    refused(
        {"--seed", seed}, ExitCode::usage,
        "--seed: expected an integer from 0 to 9223372036854775807, found " + std::string(seed));
  }
  refused({"--temperature", "-1"}, ExitCode::usage, "--temperature: expected 0");
  refused({"--temperature", "nan"}, ExitCode::usage, "--temperature: expected 0");
  refused({"--temperature", "inf"}, ExitCode::usage, "--temperature: expected 0");
  refused({"--top-p", "0"}, ExitCode::usage, "--top-p: expected a number above 0");
  refused({"--top-p", "1.1"}, ExitCode::usage, "--top-p: expected a number above 0");
  refused({"--top-p", "nan"}, ExitCode::usage, "--top-p: expected a number above 0");
  refused({"--min-p", "-0.1"}, ExitCode::usage, "--min-p: expected a number from 0 to 1");
  refused({"--top-k", "-1"}, ExitCode::usage, "--top-k: expected an integer from 0 to");
  refused({"--max-tokens", "0"}, ExitCode::usage, "--max-tokens");
  refused({"--samples", "0"}, ExitCode::usage, "--samples: expected an integer from 1 to");
  refused({"--samples", "2", "--temperature", "0"}, ExitCode::usage,
          "--samples: greedy decoding (--temperature 0) writes the same text each time");
  refused({"--stop", ""}, ExitCode::usage, "--stop: empty text; give text");
  refused({"--stop", "\xFF"}, ExitCode::usage, "--stop: not valid UTF-8; give text");
  refused({"--precision", "tf32"}, ExitCode::usage,
          "--precision: unknown value 'tf32'; choose one of fp32, bf16");
  refused({"--set", "seed=3"}, ExitCode::usage, "only model.attention.prior");
  refused({"--set", "model.attention.prior=rope"}, ExitCode::config, "the parameters of bam");
  refused({"--prompt-file", "x"}, ExitCode::usage, "--prompt");
  refused({"--max-tokens", "9000000000000000000"}, ExitCode::usage, "--max-tokens");
  t.check_refused({"--prompt", "a\xFF"}, ExitCode::data, "--prompt: not valid UTF-8");
  t.check_refused({"--prompt-file", "/none/prompt"}, ExitCode::io, "/none/prompt");
  t.check_refused({"--prompt-file", "/tmp"}, ExitCode::io, "/tmp");
  Words absent = t.command({"--prompt", "Her"});
  absent[3] = t.text.w.path("none");
  const Outcome o = run(absent, threads(1));
  CHECK(o.code == static_cast<int>(ExitCode::checkpoint));
  CHECK(contains(o.output, t.text.w.path("none")));
  absent[3] = t.text.w.path("out");
  CHECK(contains(run(absent, threads(1)).output, "newest checkpoint, checkpoint-"));
}

TEST_CASE("generate refuses a text longer than a learned table, by name") {
  const WritingText t("learned");
  const std::string prompt = "Her brother";
  CHECK_FALSE(t.text_of({"--prompt", prompt, "--max-tokens", "10"}).empty());
  t.check_refused(
      {"--prompt", prompt, "--max-tokens", "100"}, ExitCode::usage,
      "--max-tokens: expected at most 64 positions, the size of the learned table, found 1");
}

TEST_CASE("generate refuses a normalizer that needs a text's length, and takes its other form") {
  WritingText t;
  nlohmann::json& attention = t.text.config["model"]["attention"];
  attention["normalizer"] = {{"name", "topk"}, {"k", "n/2"}, {"of", "sequence"}};
  t.checkpoint = t.text.train(2, "sequence");
  t.check_refused(
      {"--prompt", "Her"}, ExitCode::config,
      "model.attention.normalizer.of: expected \"row\" with k \"n/2\": incremental decoding does "
      "not know the final length, found \"sequence\"; --set model.attention.normalizer.of=row");
  CHECK_FALSE(t.text_of({"--prompt", "Her", "--max-tokens", "4", "--set",
                         "model.attention.normalizer.of=row"})
                  .empty());
}

TEST_CASE("generate counts the model's weights to the memory of a text") {
  const auto needed = [](int64_t vocab) {
    TextRun text;
    text.config["model"]["vocab"] = vocab;
    Words command = {"sh", "-c", "ulimit -v 8000000; exec \"$@\"", "sh", bamtrain_program()};
    const Words more = {"generate", "--checkpoint", text.train(1), "--prompt",
                        "Her",      "--max-tokens", "16777216"};
    command.insert(command.end(), more.begin(), more.end());
    const Outcome o = run(command, threads(1));
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::device));
    const std::string found = "found ";
    return std::stod(o.output.substr(o.output.find(found) + found.size()));
  };
  // Two fp32 matrices of 64 columns, and little else that grows with the vocabulary.
  const double mebibytes = 40'000.0 * 64 * 2 * 4 / (1 << 20);
  const double more = needed(40'512) - needed(512);
  CHECK(more > mebibytes);
  CHECK(more < 2 * mebibytes);
}

TEST_CASE("generate prints the prompt first on a terminal, elsewhere with --echo") {
  const WritingText t;
  const Words base = {"--prompt", "Her brother", "--max-tokens", "8", "--stop", "\n"};
  const auto with = [&](const std::string& option) {
    Words all = base;
    all.push_back(option);
    return all;
  };
  const std::string text = t.text_of(base);
  CHECK(t.text_of(with("--no-echo")) == text);
  CHECK(t.text_of(with("--echo")) == "Her brother" + text);
  const std::string line = printable(text) + "\r\n";
  CHECK(on_terminal(80, t.command(base)) == "Her brother" + line);
  CHECK(on_terminal(80, t.command(with("--no-echo"))) == line);
}

TEST_CASE("each of several samples is the text of its seed, alone") {
  const WritingText t;
  const Words base = {"--prompt", "Her brother", "--max-tokens", "20", "--seed"};
  const auto seeded = [&](const std::string& seed, const Words& more) {
    Words all = base;
    all.push_back(seed);
    all.insert(all.end(), more.begin(), more.end());
    return t.text_of(all);
  };
  const std::string three = seeded("5", {"--samples", "3"});
  std::string expected;
  std::set<std::string> seeds, texts;
  for (int n = 1; n <= 3; ++n) {
    const std::string head = "=== sample " + std::to_string(n) + " of 3, --seed ";
    const size_t at = three.find(head);
    INFO(three);
    REQUIRE(at != std::string::npos);
    const size_t digits = at + head.size();
    const std::string seed = three.substr(digits, three.find(' ', digits) - digits);
    seeds.insert(seed);
    const std::string text = seeded(seed, {});
    texts.insert(text);
    expected += (n > 1 ? "\n" : "") + head + seed + " ===\n" + text + "\n";
    if (n == 1) CHECK(seed == "5");
  }
  CHECK(three == expected);
  CHECK(seeds.size() == 3);
  CHECK(texts.size() == 3);
  // More samples begin with the same ones.
  const std::string first =
      three.substr(three.find('\n'), three.find("\n\n===") - three.find('\n'));
  CHECK(contains(seeded("5", {"--samples", "2"}), first));
  CHECK(contains(seeded("5", {"--samples", "2", "--echo"}), " ===\nHer brother"));
}

TEST_CASE("generate samples at temperature 0.8 from 50 tokens by default") {
  const WritingText t;
  const Words base = {"--prompt", "Her brother", "--max-tokens", "40"};
  const auto with = [&](const Words& more) {
    Words all = base;
    all.insert(all.end(), more.begin(), more.end());
    return t.text_of(all);
  };
  const std::string text = with({});
  CHECK(with({"--temperature", "0.8", "--top-k", "50"}) == text);
  CHECK(with({"--temperature", "1"}) != text);
  CHECK(with({"--top-k", "0"}) != text);
}

TEST_CASE("generate sends no controls to a terminal") {
  const WritingText t;
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE(grantpt(terminal) == 0);
  REQUIRE(unlockpt(terminal) == 0);
  const std::string name = ptsname(terminal);
  const int other = open(name.c_str(), O_RDWR | O_NOCTTY);
  REQUIRE(other >= 0);
  termios as_is = {};
  REQUIRE(tcgetattr(other, &as_is) == 0);
  cfmakeraw(&as_is);
  REQUIRE(tcsetattr(other, TCSANOW, &as_is) == 0);
  // High temperature: bytes are about as likely as any other token.
  const Words more = {"--prompt", "Her", "--max-tokens",  "60",
                      "--top-k",  "0",   "--temperature", "50"};
  const std::string text = t.text_of(more);
  REQUIRE(replace_controls(text) != text);
  Words command = {"sh", "-c", "exec \"$@\" > " + name, "sh"};
  for (const std::string& word : t.command(more)) command.push_back(word);
  const Outcome o = run(command, threads(1));
  INFO(o.output);
  REQUIRE(o.code == 0);
  const std::string end = "\x1D";  // sent by the test
  REQUIRE(write(other, end.data(), 1) == 1);
  std::string shown;
  for (char c = 0; !shown.ends_with(end) && read(terminal, &c, 1) == 1;) shown += c;
  CHECK(shown == "Her" + replace_controls(text) + "\n" + end);
  close(other);
  close(terminal);
}

TEST_CASE("generate into a place that takes nothing is an error of files") {
  if (!fs::exists("/dev/full")) {
    WARN("skipped: there is no /dev/full");
    return;
  }
  const WritingText t;
  Words command = {"sh", "-c", "exec \"$@\" > /dev/full", "sh"};
  for (const std::string& word : t.command({"--prompt", "Her"})) command.push_back(word);
  const Outcome o = run(command, threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::io));
  CHECK(contains(o.output, "bamtrain: standard output: write failed: No space left on device; "));
}
