#include "run/agreement.h"

#include <nlohmann/json.hpp>

#include "core/input_file.h"
#include "core/json.h"
#include "record/run_files.h"

namespace bamtrain {

namespace {

constexpr const char* kOneCommand = "start every process with the same command and configuration";

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
    shards.erase("sample");
    shards["weight"] = s.weight;
    facts.push_back({name, shards.dump(), ExitCode::data, remedy});
    facts.push_back({name + ", a sample of its tokens", "SHA-256 " + s.shards->sample(),
                     ExitCode::data, remedy});
  }
  return facts;
}

}  // namespace bamtrain
