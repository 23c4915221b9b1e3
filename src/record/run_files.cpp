#include "record/run_files.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/abbreviate.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/sha256.h"
#include "data/task_values.h"

namespace bamtrain {

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string s = "(";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + ")";
}

std::vector<NamedTensor> model_tensors(const ParameterLayout& layout,
                                       const Tensor& master_weights) {
  std::vector<NamedTensor> out;
  for (const Parameter& p : layout.all()) {
    out.push_back(
        {p.name, master_weights.dtype, p.shape, master_weights.slice(0, p.offset, p.size).data});
  }
  return out;
}

std::vector<NamedTensor> optimizer_tensors(const ParameterLayout& layout, const Tensor& first,
                                           const Tensor& second) {
  std::vector<NamedTensor> out;
  for (const Parameter& p : layout.all()) {
    if (!p.trained) continue;
    out.push_back(
        {p.name + kFirstMoment, first.dtype, p.shape, first.slice(0, p.offset, p.size).data});
    out.push_back(
        {p.name + kSecondMoment, second.dtype, p.shape, second.slice(0, p.offset, p.size).data});
  }
  return out;
}

void check_values(const Parameter& p, const float* values, const std::string& file,
                  const std::string& remedy) {
  const auto minimum = static_cast<float>(p.minimum), maximum = static_cast<float>(p.maximum);
  for (int64_t i = 0; i < p.size; ++i) {
    const float v = values[i];
    const bool finite = std::isfinite(v);
    if (finite && v >= minimum && v <= maximum) continue;
    std::string expected = "finite values";
    if (finite) {
      expected = std::isfinite(maximum) ? fmt::format("values from {} to {}", minimum, maximum)
                                        : fmt::format("values of at least {}", minimum);
    }
    throw Error(ExitCode::checkpoint, file + ": tensor \"" + p.name + "\"", expected,
                fmt::format("{} at element {}", v, i), remedy);
  }
}

nlohmann::json describe_data(const ShardSet& shards) {
  nlohmann::json j;
  j["fingerprint"] = shards.fingerprint();
  j["sample"] = shards.sample();
  j["tokenizer_sha256"] = nullptr;
  if (shards.manifest()) j["tokenizer_sha256"] = shards.manifest()->tokenizer_sha256;
  return j;
}

nlohmann::json describe_data(const std::vector<Source>& sources) {
  if (sources.size() == 1) return describe_data(*sources[0].shards);
  std::vector<double> weights;
  for (const Source& s : sources) weights.push_back(s.weight);
  const std::vector<double> shares = shares_of(weights);
  nlohmann::json list = nlohmann::json::array(), tokenizer;
  std::string text = "bamtrain mixture 1\n", samples;
  for (size_t i = 0; i < sources.size(); ++i) {
    nlohmann::json j = describe_data(*sources[i].shards);
    text += sources[i].shards->fingerprint() + " " + nlohmann::json(shares[i]).dump() + "\n";
    samples += sources[i].shards->sample() + "\n";
    if (tokenizer.is_null()) tokenizer = j["tokenizer_sha256"];
    j["path"] = sources[i].shards->source();
    j["weight"] = sources[i].weight;
    list.push_back(std::move(j));
  }
  return {{"fingerprint", sha256_hex(text)},
          {"sample", sha256_hex(samples)},
          {"tokenizer_sha256", tokenizer},
          {"sources", list}};
}

nlohmann::json describe_data(const Sequences& sequences) {
  const std::vector<Source>& shards = sequences.shard_sources();
  nlohmann::json data = shards.empty()
                            ? nlohmann::json{{"fingerprint", ""}, {"tokenizer_sha256", nullptr}}
                            : describe_data(shards);
  if (sequences.tasks().empty()) return data;
  nlohmann::json tasks = nlohmann::json::array();
  for (const TaskSource& t : sequences.tasks()) {
    const LengthRange lengths = t.task->lengths();
    nlohmann::json task = task_values(t.task->info(), t.task->options());
    task["length"] = {lengths.shortest, lengths.longest};
    task["weight"] = t.weight;
    tasks.push_back(std::move(task));
  }
  data["fingerprint"] = sha256_hex(data["fingerprint"].get<std::string>() + tasks.dump());
  data["tasks"] = std::move(tasks);
  return data;
}

namespace {

constexpr const char* kRemedy = "use another checkpoint, or restore this one from a copy";

/// The required type of a member of state.json.
struct Expected {
  const char* phrase;
  bool (*holds)(const nlohmann::json&);
};

constexpr Expected kObject = {"an object", [](const nlohmann::json& v) { return v.is_object(); }};
constexpr Expected kObjectOrNull = {
    "an object or null", [](const nlohmann::json& v) { return v.is_object() || v.is_null(); }};
constexpr Expected kText = {"a string", [](const nlohmann::json& v) { return v.is_string(); }};
constexpr Expected kTextOrNull = {
    "a string or null", [](const nlohmann::json& v) { return v.is_string() || v.is_null(); }};
constexpr Expected kTruth = {"true or false",
                             [](const nlohmann::json& v) { return v.is_boolean(); }};
constexpr Expected kNumber = {"a number", [](const nlohmann::json& v) { return v.is_number(); }};
constexpr Expected kCount = {"an integer from 0 to 9223372036854775807",
                             [](const nlohmann::json& v) {
                               return v.is_number_unsigned() && v.get<uint64_t>() <= INT64_MAX;
                             }};

/// The member `path` ("data.windows") of the state in `folder`; `object` is its parent.
const nlohmann::json& member(const nlohmann::json& object, std::string_view path,
                             const Expected& expected, const std::string& folder) {
  const auto it = object.find(std::string(path.substr(path.rfind('.') + 1)));
  if (it != object.end() && expected.holds(*it)) return *it;
  const std::string where = folder + "/state.json: " + std::string(path);
  if (it == object.end()) throw missing(ExitCode::checkpoint, where, expected.phrase, kRemedy);
  throw Error(ExitCode::checkpoint, where, expected.phrase, abbreviate(it->dump()), kRemedy);
}

/// Checks the members of `data` that identify a data set.
void check_data(const nlohmann::json& data, const std::string& folder) {
  member(data, "data.fingerprint", kText, folder);
  if (data.contains("sample")) member(data, "data.sample", kText, folder);
  member(data, "data.tokenizer_sha256", kTextOrNull, folder);
}

}  // namespace

void check_run_state(const Checkpoint& checkpoint) {
  const nlohmann::json& state = checkpoint.state;
  const std::string& folder = checkpoint.folder;
  if (checkpoint.step > kMaxSteps) {
    throw Error(ExitCode::checkpoint, folder + "/state.json: step",
                "an integer from 0 to " + std::to_string(kMaxSteps),
                std::to_string(checkpoint.step), kRemedy);
  }
  member(state, "config", kObject, folder);
  member(state, "tokens", kCount, folder);
  const nlohmann::json& data = member(state, "data", kObject, folder);
  check_data(data, folder);
  member(data, "data.windows", kCount, folder);
  if (state.contains(kStartedFrom)) member(state, kStartedFrom, kText, folder);
  if (!state.contains("best")) return;
  const nlohmann::json& best = member(state, "best", kObject, folder);
  member(best, "best.metric", kText, folder);
  member(best, "best.mode", kText, folder);
  member(best, "best.step", kCount, folder);
  member(best, "best.value", kNumber, folder);
  member(best, "best.of", kObject, folder);
  member(best, "best.validation", kObjectOrNull, folder);
  if (best.contains("at_stop")) member(best, "best.at_stop", kTruth, folder);
}

std::string tokenizer_sha256(const Checkpoint& checkpoint) {
  const nlohmann::json& data = member(checkpoint.state, "data", kObject, checkpoint.folder);
  check_data(data, checkpoint.folder);
  const nlohmann::json& sha256 = data["tokenizer_sha256"];
  return sha256.is_null() ? "" : sha256.get<std::string>();
}

void require_same_data(const nlohmann::json& before, const nlohmann::json& current,
                       const std::string& source, bool allow_other, const std::string& where) {
  member({{"data", before}}, "data", kObject, where);
  check_data(before, where);
  const nlohmann::json& tokenizer = before["tokenizer_sha256"];
  if (!tokenizer.is_null() && !current["tokenizer_sha256"].is_null() &&
      tokenizer != current["tokenizer_sha256"]) {
    throw Error(
        ExitCode::data, source,
        "shards of the tokenizer of " + where + " (sha256 " + tokenizer.get<std::string>() + ")",
        "shards of another tokenizer (sha256 " + current["tokenizer_sha256"].get<std::string>() +
            ")",
        "tokenize the text with the checkpoint's tokenizer");
  }
  const nlohmann::json& fingerprint = before["fingerprint"];
  if (!allow_other && fingerprint != current["fingerprint"]) {
    throw Error(
        ExitCode::data, source,
        "the shards and tasks of " + where + " (fingerprint " + fingerprint.dump() + ")",
        "others, or other weights (fingerprint " + current["fingerprint"].dump() + ")",
        "set data.train back, or add \"data.train\" to checkpoint.allow_change to continue on "
        "other data");
  }
  const nlohmann::json sample = before.value("sample", nlohmann::json());
  if (!allow_other && !sample.is_null() && sample != current["sample"]) {
    throw Error(ExitCode::data, source,
                "the tokens of " + where + " (sample " + sample.dump() + ")",
                "shards with the same names and sizes but other tokens (sample " +
                    current["sample"].dump() + ")",
                "restore the shards (`bamdata verify` lists those that differ from their "
                "manifest), or add \"data.train\" to checkpoint.allow_change to continue on these");
  }
}

std::string compared_data(const nlohmann::json& before, const nlohmann::json& now) {
  const bool sampled = before.contains("sample");
  if (!now.contains("sample")) return "";  // tasks alone
  if (before["fingerprint"] != now["fingerprint"]) return "";
  if (sampled && before["sample"] != now["sample"]) return "";
  return sampled
             ? "shards match the checkpoint (names, sizes, headers, sampled tokens); bamdata "
               "verify compares all tokens"
             : "shards match the checkpoint (names, sizes, headers; it has no sample of tokens); "
               "bamdata verify compares all tokens";
}

}  // namespace bamtrain
