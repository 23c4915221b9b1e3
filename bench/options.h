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

/// Options of benchmarks that measure a config's model.
class ModelOptions {
 public:
  /// --config, --set, --precision (default: the configuration's) and --isa.
  void add_to(CLI::App& app);

  /// The configuration, with these overrides applied last.
  RunConfig read(const std::vector<std::string>& more = {}) const;
  const std::string& isa() const { return isa_; }

 private:
  std::string config_, precision_, isa_ = "newest";
  std::vector<std::string> overrides_;
};

/// Prints the error that ended the program, and returns the exit code.
inline int report(const char* program, const std::exception& failure) {
  std::fprintf(stderr, "%s: %s\n", program, failure.what());
  const auto* error = dynamic_cast<const Error*>(&failure);
  return static_cast<int>(error ? error->code() : ExitCode::internal);
}

}  // namespace bamtrain::bench
