#include "options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "config/reader.h"
#include "rates.h"

namespace bamtrain::bench {

BenchOptions::BenchOptions(const std::string& what) : app_(std::make_unique<CLI::App>(what)) {
  app_->set_version_flag("--version", matrix_library());
}

BenchOptions::~BenchOptions() = default;

void BenchOptions::add(const std::string& name, int64_t* to, const std::string& help,
                       int64_t smallest, int64_t largest) {
  app_->add_option(name, *to, help)->check(CLI::Range(smallest, largest));
}

void BenchOptions::add(const std::string& name, double* to, const std::string& help) {
  app_->add_option(name, *to, help);
}

void BenchOptions::add_flag(const std::string& name, bool* to, const std::string& help) {
  app_->add_flag(name, *to, help);
}

void BenchOptions::add_choice(const std::string& name, std::string* to, const std::string& help,
                              const std::vector<std::string>& choices) {
  app_->add_option(name, *to, help)->check(CLI::IsMember(choices));
}

void BenchOptions::add_list(const std::string& name, std::vector<int64_t>* to,
                            const std::string& help, int64_t smallest, int64_t largest) {
  app_->add_option(name, *to, help)->delimiter(',')->check(CLI::Range(smallest, largest));
}

void BenchOptions::add_required_list(const std::string& name, std::vector<std::string>* to,
                                     const std::string& help) {
  app_->add_option(name, *to, help)->required()->delimiter(',');
}

void BenchOptions::read(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& end) {
    std::exit(app_->exit(end));
  }
}

void add_isa(BenchOptions& options, std::string* to) {
  options.add_choice("--isa", to, "newest, or avx2: as on a processor without AVX-512, fp32 only",
                     {"newest", "avx2"});
}

void ModelOptions::add_to(BenchOptions& options) {
  CLI::App& app = *options.app_;
  app.add_option("--config", config_, "run configuration")->required();
  app.add_option("--set", overrides_, "override a config key");
  options.add_choice("--precision", &precision_, "default: the config's train.precision",
                     {"fp32", "bf16"});
  add_isa(options, &isa_);
}

RunConfig ModelOptions::read(const std::vector<std::string>& more) const {
  std::vector<std::string> all = overrides_;
  if (!precision_.empty()) all.push_back("train.precision=" + precision_);
  all.insert(all.end(), more.begin(), more.end());
  return read_run_config(config_, all);
}

}  // namespace bamtrain::bench
