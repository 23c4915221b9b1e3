#include "options.h"

#include "config/reader.h"

namespace bamtrain::bench {

void ModelOptions::add_to(CLI::App& app) {
  app.add_option("--config", config_, "run configuration")->required();
  app.add_option("--set", overrides_, "override a config key");
  app.add_option("--precision", precision_, "default: the config's train.precision")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  app.add_option("--isa", isa_, "newest, or avx2: as on a processor without AVX-512, fp32 only")
      ->check(CLI::IsMember({"newest", "avx2"}));
}

RunConfig ModelOptions::read(const std::vector<std::string>& more) const {
  std::vector<std::string> all = overrides_;
  if (!precision_.empty()) all.push_back("train.precision=" + precision_);
  all.insert(all.end(), more.begin(), more.end());
  return read_run_config(config_, all);
}

}  // namespace bamtrain::bench
