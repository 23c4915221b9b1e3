#pragma once

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "train/run_config.h"

namespace CLI {
class App;
}

namespace bamtrain::bench {

/// The command line of a benchmark on a CPU, with --version for the library of matrix products.
/// Variables keep their values where the option is not given.
class BenchOptions {
 public:
  explicit BenchOptions(const std::string& what);
  ~BenchOptions();

  /// Sizes and counts.
  void add(const std::string& name, int64_t* to, const std::string& help, int64_t smallest = 1,
           int64_t largest = int64_t{1} << 40);
  void add(const std::string& name, double* to, const std::string& help);
  void add_flag(const std::string& name, bool* to, const std::string& help);
  void add_choice(const std::string& name, std::string* to, const std::string& help,
                  const std::vector<std::string>& choices);
  /// Separated by commas.
  void add_list(const std::string& name, std::vector<int64_t>* to, const std::string& help,
                int64_t smallest, int64_t largest);
  void add_required_list(const std::string& name, std::vector<std::string>* to,
                         const std::string& help);

  /// Ends the program after --help and --version, and where an option is wrong or missing.
  void read(int argc, char** argv);

 private:
  friend class ModelOptions;
  std::unique_ptr<CLI::App> app_;
};

/// --isa, by name.
void add_isa(BenchOptions& options, std::string* to);

/// Options of benchmarks that measure a config's model.
class ModelOptions {
 public:
  /// --config, --set, --precision (default: the configuration's) and --isa.
  void add_to(BenchOptions& options);

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
