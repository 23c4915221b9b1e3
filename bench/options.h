#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "core/error.h"
#include "train/run_config.h"

namespace bamtrain::bench {

/// Accepts sizes and counts of one or more.
inline CLI::Range positive() { return {int64_t{1}, int64_t{1} << 40}; }

/// What programs ask for that measure the model of a configuration.
class ModelOptions {
 public:
  /// --config, --set, --precision (with none the configuration's) and --isa.
  void add_to(CLI::App& app);

  /// The configuration, after these overrides too.
  RunConfig read(const std::vector<std::string>& more = {}) const;
  const std::string& isa() const { return isa_; }

 private:
  std::string config_, precision_, isa_ = "newest";
  std::vector<std::string> overrides_;
};

/// Says what ended the program, and returns the exit code.
inline int report(const char* program, const std::exception& failure) {
  std::fprintf(stderr, "%s: %s\n", program, failure.what());
  const auto* error = dynamic_cast<const Error*>(&failure);
  return static_cast<int>(error ? error->code() : ExitCode::internal);
}

}  // namespace bamtrain::bench
