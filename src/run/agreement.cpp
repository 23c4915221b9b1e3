#include "run/agreement.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/input_file.h"
#include "core/json.h"
#include "core/sha256.h"
#include "record/run_files.h"

namespace bamtrain {

namespace {

constexpr const char* kOneCommand = "start every process with the same command and configuration";

/// SHA-256 of the tokens at places of equal distance over all shards.
std::string sample(const ShardSet& shards) {
  Sha256 digest;
  std::vector<int32_t> tokens(kSampledTokens);
  int64_t begin = 0;  // of the shard, in the tokens of all
  const int64_t stride = std::max<int64_t>(1, shards.tokens() / kSampledPlaces);
  int64_t place = 0;
  for (int64_t i = 0; i < shards.size(); ++i) {
    const Shard& shard = shards.shard(i);
    for (; place < begin + shard.tokens(); place += stride) {
      const int64_t at = place - begin, n = std::min(kSampledTokens, shard.tokens() - at);
      shard.read(at, n, tokens.data(), shards.vocab());
      digest.update(tokens.data(), static_cast<size_t>(n) * sizeof tokens[0]);
    }
    begin += shard.tokens();
  }
  return digest.hex();
}

}  // namespace

std::vector<Fact> program_facts(const std::string& command) {
  const InputFile program("/proc/self/exe", ExitCode::io, "mount /proc");
  return {{"command", command, ExitCode::usage, kOneCommand},
          {"program", "SHA-256 " + program.sha256(), ExitCode::distributed,
           "start the same build of bamtrain on every node"}};
}

std::vector<Fact> config_facts(const nlohmann::json& resolved) {
  std::vector<Fact> facts;
  for (const auto& [path, value] : leaves_of(resolved)) {
    if (path == "data.train" || path == "data.val") continue;
    facts.push_back({path, value.dump(), ExitCode::config, kOneCommand});
  }
  return facts;
}

std::vector<Fact> data_facts(const std::string& of, const std::vector<Source>& sources) {
  std::vector<Fact> facts;
  for (const Source& s : sources) {
    const std::string name =
        of + (sources.size() > 1 ? ", source " + std::to_string(facts.size() / 2) : "");
    const std::string remedy = "copy the shards of rank 0 (" + s.shards->source() +
                               ") to every node; bamdata verify compares them with their manifest";
    nlohmann::json shards = describe_data(*s.shards);
    shards["weight"] = s.weight;
    facts.push_back({name, shards.dump(), ExitCode::data, remedy});
    facts.push_back({name + ", a sample of its tokens", "SHA-256 " + sample(*s.shards),
                     ExitCode::data, remedy});
  }
  return facts;
}

}  // namespace bamtrain
