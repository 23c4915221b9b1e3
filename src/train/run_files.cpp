#include "train/run_files.h"

namespace bamtrain {

std::vector<NamedTensor> model_tensors(const ParameterLayout& layout, const Tensor& masters) {
  std::vector<NamedTensor> out;
  for (const Parameter& p : layout.all()) {
    out.push_back({p.name, masters.dtype, p.shape, masters.slice(0, p.offset, p.size).data});
  }
  return out;
}

std::vector<NamedTensor> optimizer_tensors(const ParameterLayout& layout, const Tensor& first,
                                           const Tensor& second) {
  std::vector<NamedTensor> out;
  for (const Parameter& p : layout.all()) {
    if (!p.trained) continue;
    out.push_back(
        {p.name + ".exp_avg", first.dtype, p.shape, first.slice(0, p.offset, p.size).data});
    out.push_back(
        {p.name + ".exp_avg_sq", second.dtype, p.shape, second.slice(0, p.offset, p.size).data});
  }
  return out;
}

nlohmann::json describe_data(const ShardSet& shards) {
  nlohmann::json j;
  j["fingerprint"] = shards.fingerprint();
  j["tokenizer_sha256"] = nullptr;
  if (shards.manifest()) j["tokenizer_sha256"] = shards.manifest()->tokenizer_sha256;
  return j;
}

void require_same_data(const nlohmann::json& before, const ShardSet& now, bool allow_other,
                       const std::string& where) {
  if (!before.is_object()) {
    throw Error(ExitCode::checkpoint, where + "/state.json: data", "an object", before.type_name(),
                "use another checkpoint");
  }
  const nlohmann::json current = describe_data(now);
  const auto tokenizer = before.value("tokenizer_sha256", nlohmann::json());
  if (!tokenizer.is_null() && !current["tokenizer_sha256"].is_null() &&
      tokenizer != current["tokenizer_sha256"]) {
    throw Error(ExitCode::data, now.source(),
                "shards of the tokenizer that " + where + " was trained with (sha256 " +
                    tokenizer.get<std::string>() + ")",
                "shards of another tokenizer (sha256 " +
                    current["tokenizer_sha256"].get<std::string>() + ")",
                "tokenize the text with the checkpoint's tokenizer");
  }
  const auto fingerprint = before.value("fingerprint", nlohmann::json());
  if (!allow_other && fingerprint != current["fingerprint"]) {
    throw Error(
        ExitCode::data, now.source(),
        "the shards that " + where + " was trained on (fingerprint " + fingerprint.dump() + ")",
        "other shards (fingerprint " + current["fingerprint"].dump() + ")",
        "point data.train at the same shards, or add \"data.train\" to "
        "checkpoint.allow_change to continue on others");
  }
}

}  // namespace bamtrain
