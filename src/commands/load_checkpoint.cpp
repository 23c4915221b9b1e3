#include "commands/load_checkpoint.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/changes.h"
#include "config/schema.h"
#include "core/checked.h"
#include "core/faults.h"
#include "core/json.h"
#include "core/print_message.h"
#include "ops/host_copy.h"
#include "record/named_checkpoint.h"
#include "record/run_data.h"
#include "record/run_files.h"

namespace bamtrain {

namespace {

/// "NAME of shape (4, 16)".
std::string describe(const Parameter* p) {
  return p ? p->name + " of shape " + shape_text(p->shape) : "no such parameter";
}

/// Throws Error (ExitCode::config) naming the first parameter that only one of the layouts has.
void require_same_parameters(const ParameterLayout& before, const std::string& priors_before,
                             const ParameterLayout& now, const std::string& priors_now) {
  const auto require_same = [&](const Parameter* was, const Parameter* is) {
    if (was && is && was->shape == is->shape) return;
    throw Error(ExitCode::config, "model.attention.prior",
                "a prior with the parameters of " + priors_before +
                    ", which the checkpoint was trained with (" + describe(was) + ")",
                priors_now + " with " + describe(is), "choose another, or remove --set");
  };
  for (const Parameter& p : before.all()) require_same(&p, now.find(p.name));
  for (const Parameter& p : now.all()) require_same(before.find(p.name), &p);
}

}  // namespace

RunConfig stored_config(const nlohmann::json& state, const std::string& file,
                        const std::string& remedy) {
  const std::string where = file + ": config";
  if (!state.is_object() || !state.contains("config")) {
    throw missing(ExitCode::checkpoint, where, "the run's config", remedy);
  }
  try {
    return read_run_config_text(state["config"].dump(), where, {}, ConfigUse::evaluation);
  } catch (const Error& e) {  // no user wrote this config
    if (e.code() != ExitCode::config) throw;
    throw e.as(ExitCode::checkpoint, e.where(), remedy);
  }
}

RunConfig trained_config(const Checkpoint& checkpoint, const std::vector<std::string>& overrides) {
  const std::string state = checkpoint.folder + "/state.json";
  const RunConfig trained = stored_config(checkpoint.state, state, "use another checkpoint");
  RunConfig c = read_run_config_text(checkpoint.state["config"].dump(), state + ": config",
                                     overrides, ConfigUse::evaluation);
  // Evaluation may replace these if neither the new one nor the trained one has parameters.
  struct Replaceable {
    const char *path, *plural;
    ParameterGroup group;
    std::string before, now;
    std::string key = {};  // the first that differs; empty if none differs
  } replaceable[] = {
      {"model.attention.scale", "scales", ParameterGroup::scale,
       trained.model.attention.scale.name(), c.model.attention.scale.name()},
      {"model.attention.normalizer", "normalizers", ParameterGroup::normalizer,
       trained.model.attention.normalizer.name(), c.model.attention.normalizer.name()}};
  const nlohmann::json values_before = resolved_json(trained), values_now = resolved_json(c);
  const std::vector<std::string> changed = changed_keys(values_before, values_now);
  for (const std::string& key : changed) {
    if (lies_in(key, "model.attention.prior")) continue;
    bool known = false;
    for (Replaceable& r : replaceable) {
      if (!lies_in(key, r.path)) continue;
      if (r.key.empty()) r.key = key;
      known = true;
    }
    if (known) continue;
    throw Error::fault(ExitCode::usage, "--set",
                       "evaluation cannot change " + key +
                           ", only model.attention.prior, model.attention.scale and "
                           "model.attention.normalizer",
                       "remove it");
  }
  const ParameterLayout before(trained.model, trained.data.sequence_length);
  // Names first: the state determines a model's memory and time, whether it is right or wrong.
  check_tensors(SafetensorsFile::open(checkpoint.model_file()),
                model_tensors(before, Tensor(nullptr, Dtype::f32, {before.elements()})));
  const ParameterLayout now(c.model, c.data.sequence_length);
  for (const Replaceable& r : replaceable) {
    if (r.key.empty() || before.count({r.group}) + now.count({r.group}) == 0) continue;
    const std::string expected =
        std::string(r.plural) + " without parameters: evaluation cannot replace others";
    if (r.before != r.now) {
      throw Error(ExitCode::config, r.path, expected, r.before + " in training, " + r.now + " now",
                  std::string("remove --set ") + r.path);
    }
    throw Error(ExitCode::config, r.key, expected,
                r.before + " with " + text_at(values_before, r.key) + " in training, " +
                    text_at(values_now, r.key) + " now",
                "remove --set " + r.key);
  }
  require_same_parameters(before, trained.model.attention.prior.names(), now,
                          c.model.attention.prior.names());
  for (const std::string& key : changed) {
    print_message(stderr, fmt::format("changed since training: {}: {} -> {}", key,
                                      text_at(values_before, key), text_at(values_now, key)));
  }
  for (const MovedPath& path : find_run_data(&c, run_folder(checkpoint))) {
    print_message(stderr, fmt::format("found next to the run: {}: {} -> {}", path.key, path.before,
                                      path.now));
  }
  return c;
}

CLI::Option* add_checkpoint(CLI::App& command, std::string& folder) {
  return command
      .add_option("RUN,--checkpoint", folder,
                  "folder of a run (its best checkpoint with checkpoint.best, else its newest), or "
                  "of a checkpoint")
      ->type_name("DIR")
      ->required();
}

Checkpoint load_checkpoint(const std::string& folder) {
  return open_named_checkpoint(folder,
                               [](const std::string& text) { print_message(stderr, text); });
}

CLI::Option* add_tokenizer(CLI::App& command, std::string& file) {
  return command
      .add_option("--tokenizer", file,
                  "tokenizer file (default: the one that made the shards, in the run's folder)")
      ->type_name("FILE");
}

CLI::Option* add_overrides(CLI::App& command, std::vector<std::string>& overrides) {
  return command
      .add_option("--set", overrides,
                  "change model.attention.prior to one with the same parameters, or "
                  "model.attention.scale or normalizer to one without parameters; repeatable")
      ->type_name("KEY=VALUE ...")
      ->take_all()
      ->allow_extra_args(false);  // core/list_arguments.h repeats the option
}

void check_memory(const MemorySource& memory, const ParameterLayout& layout, int64_t beside,
                  const std::string& where, const std::string& remedy) {
  const int64_t weights = layout.elements() * static_cast<int64_t>(size_of(Dtype::f32));
  const int64_t planned = checked_add(beside, weights, where);
  try {
    memory.check_fits(planned);
  } catch (const Error& e) {
    throw e.as(ExitCode::device, where, remedy);
  }
  constexpr int64_t kMuch = int64_t{256} << 20;
  if (planned >= kMuch) print_message(stderr, fmt::format("{}: {} MiB", where, planned >> 20));
}

Tensor load_master_weights(const Checkpoint& checkpoint, const ParameterLayout& layout,
                           Backend& backend, Arena& arena) {
  Tensor master_weights;
  arena.add("weights.masters", &master_weights, Dtype::f32, {layout.elements()});
  arena.commit(backend.memory());
  HostCopy host(backend, master_weights, HostCopy::Contents::undefined);
  read_tensors(SafetensorsFile::open(checkpoint.model_file()),
               model_tensors(layout, host.tensor()));
  for (const Parameter& p : layout.all()) {
    // Another prior may allow a smaller range than the trained one.
    check_values(p, host.tensor().slice(0, p.offset, p.size).ptr<float>(), checkpoint.model_file(),
                 p.group == ParameterGroup::prior
                     ? "remove --set model.attention.prior, or use another checkpoint"
                     : "use another checkpoint");
  }
  host.upload();
  return master_weights;
}

}  // namespace bamtrain
