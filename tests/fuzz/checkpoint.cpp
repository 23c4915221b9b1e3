// A checkpoint with valid files except for its state ("s", then state.json) or its manifest ("m",
// then manifest.json).

#include "checkpoint/checkpoint.h"

#include <nlohmann/json.hpp>

#include "checkpoint/manifest.h"
#include "config/changes.h"
#include "config/reader.h"
#include "core/sha256.h"
#include "record/run_files.h"
#include "target.h"

using namespace bamtrain;
using namespace bamtrain::fuzz;
namespace files = checkpoint_files;

namespace {

constexpr const char* kConfig = R"({"config_version": 2, "out_dir": "out", "seed": 1,
  "model": {"vocab": 8, "width": 8, "layers": 1, "heads": 1, "mlp": {"hidden": 8},
            "attention": {"prior": "bam", "scale": "none"}},
  "data": {"train": "train", "sequence_length": 8},
  "optimizer": {"lr": 0.1}, "train": {"steps": 4, "tokens_per_step": 8, "micro_batch": 1}})";

constexpr const char* kState = R"({"format": 1, "step": 2})";

/// The manifest as the program writes it, but without writing every file to the disk.
std::string manifest_of(const std::string& state) {
  nlohmann::json list;
  const auto add = [&](const char* name, const std::string& bytes) {
    list["files"][name] = {{"bytes", bytes.size()}, {"sha256", sha256_hex(bytes)}};
  };
  add(files::kModel, "");
  add(files::kOptimizer, "");
  add(files::kState, state);
  return list.dump(2) + "\n";
}

/// Reads everything that a resumed run and a reader of its checkpoint take from the state.
void use(const Checkpoint& checkpoint) {
  static const nlohmann::json now =
      resolved_json(read_run_config_text(kConfig, "config", {}, ConfigUse::training));
  accepts([&] { tokenizer_sha256(checkpoint); });
  if (!accepts([&] { check_run_state(checkpoint); })) return;
  const nlohmann::json& config = checkpoint.state["config"];
  const nlohmann::json data = {{"fingerprint", "f"}, {"tokenizer_sha256", "t"}};
  accepts([&] { require_same_data(checkpoint.state["data"], data, "train", false, "checkpoint"); });
  accepts([&] { keys_refused_on_resume(config, now, {"model.norm"}); });
  accepts([&] { read_run_config_text(config.dump(), "state", {}, ConfigUse::evaluation); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  const Input in(data, size);
  const std::string state = in.kind == 's' ? in.rest : kState;
  folder.write(files::kModel, "");
  folder.write(files::kOptimizer, "");
  folder.write(files::kState, state);
  folder.write(files::kManifest, in.kind == 's' ? manifest_of(state) : in.rest);
  accepts([&] { use(open_checkpoint(folder.path())); });
  return 0;
}
