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

std::vector<Fact> machinery_facts(const std::map<std::string, std::string>& libraries,
                                  const std::string& isa) {
  std::vector<Fact> facts;
  for (const auto& [name, version] : libraries) {
    facts.push_back({name, version, ExitCode::distributed,
                     "install the same version on every node, or start the run on nodes that have "
                     "it"});
  }
  if (isa.empty()) return facts;
  facts.push_back(
      {"oneDNN's instruction set", isa, ExitCode::distributed,
       "set ONEDNN_MAX_CPU_ISA on every node to the older of these (mpirun of Open MPI: "
       "-x ONEDNN_MAX_CPU_ISA=AVX2), or start the run on nodes of one kind"});
  return facts;
}

std::vector<Fact> config_facts(const nlohmann::json& resolved) {
  std::vector<Fact> facts;
  for (const auto& [path, value] : leaves_of(resolved)) {
    // Only the paths of shards. Leaves of tasks have longer paths or are in a list.
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
