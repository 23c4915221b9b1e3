// Lists checkpoints, finds the newest one, and removes old ones.

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "checkpoint/checkpoint.h"
#include "checkpoint/leftovers.h"
#include "core/durable_file.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/input_file.h"
#include "core/json.h"

namespace bamtrain {
namespace {

/// The names in `folder`, sorted. Throws Error (ExitCode::io) if it cannot be listed.
std::vector<std::string> names_in(const std::string& folder) {
  std::error_code failure;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator it(folder, failure), end; !failure && it != end;
       it.increment(failure)) {
    names.push_back(it->path().filename().string());
  }
  if (failure) {
    throw system_error(ExitCode::io, folder, "list the folder", failure.value(), "check the path");
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool begins_with(const std::string& name, const std::string& prefix) {
  return name.compare(0, prefix.size(), prefix) == 0;
}

struct Candidate {
  int64_t step = 0;
  bool replaced = false;  // set aside by a save of the same step that did not finish
  std::string name;
};

/// Newest first; for equal steps, the one set aside comes last.
std::vector<Candidate> candidates_in(const std::string& out_dir) {
  const std::string aside = leftovers::kReplaced;
  std::vector<Candidate> found;
  for (const std::string& name : names_in(out_dir)) {
    const bool replaced = begins_with(name, aside);
    const auto step = checkpoint_step(replaced ? name.substr(aside.size()) : name);
    if (step) found.push_back({*step, replaced, name});
  }
  std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    return a.step != b.step ? a.step > b.step : a.replaced < b.replaced;
  });
  return found;
}

void warn_of_old(const Error& e, const Warn& warn) {
  warn(std::string("cannot remove old checkpoints before the next save: ") + e.what());
}

void remove_or_warn(const std::string& path, const Warn& warn) {
  try {
    remove_tree(path);
  } catch (const Error& e) {
    warn_of_old(e, warn);
  }
}

}  // namespace

std::optional<int64_t> newest_step(const std::string& folder) {
  std::optional<int64_t> newest;
  for (const std::string& name : names_in(folder)) {
    const std::optional<int64_t> step = checkpoint_step(name);
    if (step && (!newest || *step > *newest)) newest = step;
  }
  return newest;
}

std::optional<UnverifiedState> newest_state(const std::string& folder, const std::string& remedy) {
  constexpr int64_t kMostBytes = int64_t{100} << 20;
  const std::optional<int64_t> newest = newest_step(folder);
  if (!newest) return std::nullopt;
  const std::string path = folder + "/" + checkpoint_name(*newest) + "/state.json";
  const InputFile file(path, ExitCode::checkpoint, remedy);
  return UnverifiedState{path,
                         parse_json(file.text(kMostBytes), {path, ExitCode::checkpoint, remedy})};
}

bool has_checkpoint(const std::string& out_dir, int64_t step) {
  const std::vector<std::string> names = names_in(out_dir);
  return std::find(names.begin(), names.end(), checkpoint_name(step)) != names.end();
}

std::optional<std::string> checkpoint_before(const std::string& out_dir, int64_t step) {
  for (const Candidate& candidate : candidates_in(out_dir)) {
    if (candidate.step < step && !candidate.replaced) return candidate.name;
  }
  return std::nullopt;
}

std::optional<Checkpoint> newest_checkpoint(const std::string& out_dir, const Warn& warn) {
  if (!leftovers::exists(out_dir)) return std::nullopt;
  const std::vector<Candidate> candidates = candidates_in(out_dir);
  for (const Candidate& candidate : candidates) {
    try {
      return open_checkpoint(out_dir + "/" + candidate.name);
    } catch (const NewerFormat&) {
      throw;
    } catch (const Error& e) {
      if (e.code() == ExitCode::io) throw;
      warn("checkpoint " + candidate.name + " is damaged, skipping it: " + e.what());
    }
  }
  if (candidates.empty()) return std::nullopt;
  throw Error(ExitCode::checkpoint, out_dir, "a valid checkpoint",
              std::to_string(candidates.size()) + ", all damaged, the newest " + candidates[0].name,
              "restore one from a copy, or start a new run in another out_dir");
}

void remove_leftovers(const std::string& out_dir, const Warn& warn) {
  const std::string aside = leftovers::kReplaced;
  for (const std::string& name : names_in(out_dir)) {
    const std::string path = out_dir + "/" + name;
    if (name == leftovers::kTrial ||
        begins_with(name, leftovers::kTemporary + std::string("checkpoint-"))) {
      remove_or_warn(path, warn);
    } else if (begins_with(name, aside) && checkpoint_step(name.substr(aside.size()))) {
      const std::string successor = out_dir + "/" + name.substr(aside.size());
      const bool arrived = leftovers::exists(successor);
      if (!arrived) rename_path(path, successor);
      sync_folder(out_dir);  // the successor must be durable before the other copy is removed
      if (arrived) remove_or_warn(path, warn);
    }
  }
}

void prune_checkpoints(const std::string& out_dir, int64_t keep, int64_t keep_every,
                       std::optional<int64_t> best, const Warn& warn,
                       std::optional<int64_t> read_back) {
  require(keep >= 1 && keep_every >= 0, "at least one checkpoint to keep");
  try {
    remove_leftovers(out_dir, warn);
    const std::vector<Candidate> all = candidates_in(out_dir);
    std::vector<Candidate> unwanted;
    for (size_t i = static_cast<size_t>(keep); i < all.size(); ++i) {
      const bool kept = (keep_every != 0 && all[i].step % keep_every == 0) || all[i].step == best;
      if (!kept) unwanted.push_back(all[i]);
    }
    if (unwanted.empty()) return;

    std::optional<int64_t> valid = all[0].step;
    if (valid != read_back) {
      const std::optional<Checkpoint> found = newest_checkpoint(out_dir, warn);
      valid = found ? std::optional(found->step) : std::nullopt;
    }
    std::erase_if(unwanted, [&](const Candidate& c) { return valid == c.step; });
    // Renamed first, so that a partly removed folder is never taken for a damaged checkpoint.
    const std::string doomed = out_dir + "/" + leftovers::kTemporary;
    for (const Candidate& c : unwanted) rename_path(out_dir + "/" + c.name, doomed + c.name);
    if (!unwanted.empty()) sync_folder(out_dir);
    for (const Candidate& c : unwanted) remove_or_warn(doomed + c.name, warn);
  } catch (const Error& e) {
    if (e.code() != ExitCode::io) throw;
    warn_of_old(e, warn);
  }
}

}  // namespace bamtrain
