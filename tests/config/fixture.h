#pragma once
// A small valid config, and the error message for a changed one.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.h"
#include "config/reader.h"
#include "core/error.h"

inline const std::string kValid = R"({
  "config_version": 3,
  "out_dir": "out",
  "model": {
    "vocab": 96,
    "width": 48,
    "layers": 2,
    "heads": 4,
    "mlp": {"hidden": 64},
    "attention": {
      "prior": {"name": "bam", "init": "laplace"},
      "scale": {"name": "ssmax"}
    }
  },
  "data": {"train": "tokens/train", "sequence_length": 16},
  "train": {"steps": 10, "tokens_per_step": 256, "micro_batch": 2}
})";

/// kValid with overrides, as a user would give them with --set.
inline bamtrain::RunConfig valid_with(const std::vector<std::string>& overrides,
                                      bamtrain::ConfigUse use = bamtrain::ConfigUse::training) {
  return bamtrain::read_run_config_text(kValid, "run.json", overrides, use);
}

inline bamtrain::RunConfig read_config(const nlohmann::json& c) {
  return bamtrain::read_run_config_text(c.dump(), "run.json", {});
}

/// model.attention.prior in the resolved config.
inline nlohmann::json prior_of(const bamtrain::RunConfig& c) {
  return nlohmann::json(bamtrain::resolved_json(c))["model"]["attention"]["prior"];
}

/// The message of the Error that reading throws; empty if it throws none.
inline std::string message(const std::string& text, const std::vector<std::string>& overrides = {},
                           bamtrain::ExitCode code = bamtrain::ExitCode::config) {
  try {
    bamtrain::read_run_config_text(text, "run.json", overrides);
  } catch (const bamtrain::Error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return "";
}

/// kValid with the first occurrence of `from` replaced.
inline std::string replaced(const std::string& from, const std::string& to) {
  std::string text = kValid;
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// Whether the message has the part. "KEY: TEXT" may be "--set KEY=VALUE: TEXT", where an override
/// set that key.
inline bool mentions(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  const size_t colon = part.find(':');
  if (colon == std::string::npos) return false;
  const size_t set = text.find("--set " + part.substr(0, colon) + "=");
  return set != std::string::npos && text.find(part.substr(colon), set) != std::string::npos;
}

inline void check_mentions(const std::string& text, const std::vector<std::string>& parts) {
  INFO("the message: " << text);
  for (const std::string& part : parts) {
    INFO("must mention: " << part);
    CHECK(mentions(text, part));
  }
}

/// The configs that ship with the program in this folder, sorted by name.
inline std::vector<std::filesystem::path> shipped_configs(const std::string& folder = "configs") {
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  const std::filesystem::path root = source ? source : ".";
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(root / folder)) {
    if (entry.path().extension() == ".json") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}
