#pragma once
// A run on text and its tokenizer, for tests of generated text.

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.h"
#include "tools/support.h"
#include "train/support.h"

namespace bamtrain::testing {

/// text.txt, a tokenizer of 500 entries, its shards in data/train and data/val, and the config of a
/// run on them that trains in a second. The model has more ids than the tokenizer.
struct TextRun {
  Workplace w;
  std::string tokenizer = w.path("tokenizer.model");
  nlohmann::json config;

  TextRun() {
    write_bytes(tokenizer, trained_model(llama_settings()));
    std::string text;
    const std::vector<std::string> sentences = sample_sentences();
    for (size_t i = 0; i < 3000; ++i) {
      text += sentences[i * 31 % sentences.size()] + (i % 9 == 8 ? "\n\n" : " ");
    }
    write_bytes(w.path("text.txt"), text);
    const char* build = std::getenv("BAMTRAIN_BUILD");
    const Outcome o = run({std::string(build ? build : "build") + "/data_tools/bamdata", "tokenize",
                           "--document", "blank-line", "--tokenizer", tokenizer, "--val-fraction",
                           "0.1", "--output", w.path("data"), w.path("text.txt")});
    INFO(o.output);
    REQUIRE(o.code == 0);
    config = small_run(w);
    config["model"]["vocab"] = 512;
    config["data"] = {
        {"train", w.path("data/train")}, {"val", w.path("data/val")}, {"sequence_length", 64}};
  }

  /// Leaves no other copy of the tokenizer than that at its path.
  void remove_copies() const {
    std::vector<std::filesystem::path> copies;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(w.path("."))) {
      const bool is_copy = entry.path().filename() == "tokenizer.model" &&
                           !std::filesystem::equivalent(entry.path(), tokenizer);
      if (is_copy) copies.push_back(entry.path());
    }
    for (const auto& copy : copies) std::filesystem::remove(copy);
  }

  /// Trains to step `end` and returns the checkpoint.
  std::string train(int end, const std::string& out = "out") {
    config["out_dir"] = w.path(out);
    config["train"]["stop_at"] = end;
    const Outcome o = run(bamtrain_command(write_config(w, out + ".json", config)), threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    char name[40];
    std::snprintf(name, sizeof name, "/checkpoint-%08d", end);
    return w.path(out) + name;
  }
};

/// A run on text with this prior, trained for two steps, and its checkpoint.
struct TrainedText {
  TextRun text;
  std::string checkpoint;

  explicit TrainedText(const char* prior = "bam") {
    text.config["model"]["attention"]["prior"] = {{"name", prior}};
    checkpoint = text.train(2);
  }
};

/// The lines of a file of JSON objects, without their crc.
inline std::vector<nlohmann::json> read_lines(const std::string& path) {
  std::ifstream in(path);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(nlohmann::json::parse(line));
    lines.back().erase("crc");
  }
  return lines;
}

}  // namespace bamtrain::testing
