#include "checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/leftovers.h"
#include "checkpoint/manifest.h"
#include "core/abbreviate.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/input_file.h"
#include "core/json.h"
#include "core/word_sum.h"

namespace bamtrain {
namespace {

using Json = nlohmann::json;
namespace files = checkpoint_files;

constexpr int64_t kMaxState = int64_t{100} << 20;
constexpr const char* kPrefix = "checkpoint-";

/// The text of state.json. JSON has no NaN and infinity; the library writes null instead. Comparing
/// the parsed text with the input detects that before a run depends on it.
std::string state_text(const Json& given, int64_t step) {
  require(given.is_object() || given.is_null(), "a state that is a JSON object");
  Json state = given;
  state["format"] = kCheckpointFormat;
  state["step"] = step;
  std::string text;
  try {
    text = state.dump(2) + "\n";
  } catch (const Json::exception& e) {
    throw Error::fault(ExitCode::checkpoint, files::kState,
                       std::string("text that is not valid UTF-8: ") + e.what(),
                       "use names and paths in UTF-8");
  }
  require(Json::parse(text) == state, "a state without NaN or infinity");
  return text;
}

/// Marks the files as a PyTorch model for Hugging Face's readers.
const std::map<std::string, std::string>& metadata() {
  static const std::map<std::string, std::string> values = {{"format", "pt"}};
  return values;
}

/// What is left to write after the tensors, whose files are `written`.
void finish_files(const std::string& folder, const std::string& state, files::Digests written) {
  DurableFile file(folder + "/" + files::kState);
  file.write(state.data(), static_cast<int64_t>(state.size()));
  written[files::kState] = file.finish();
  files::write_manifest(folder, written);
  sync_folder(folder);
}

/// Gives the complete folder `temporary` its final name.
void publish(const std::string& out_dir, const std::string& temporary, const std::string& name) {
  const std::string folder = out_dir + "/" + name;
  const std::string replaced = out_dir + "/" + leftovers::kReplaced + name;
  const bool replaces = leftovers::exists(folder);
  if (replaces) rename_path(folder, replaced);
  try {
    rename_path(temporary, folder);
  } catch (...) {
    if (replaces) rename_path(replaced, folder);
    throw;
  }
  sync_folder(out_dir);
  if (replaces) remove_tree(replaced);
}

std::string temporary_folder(const std::string& out_dir, int64_t step) {
  return out_dir + "/" + leftovers::kTemporary + checkpoint_name(step);
}

/// Calls f, and abandons the checkpoint if it fails.
template <class F>
void or_abandon(const std::string& out_dir, int64_t step, F&& f) {
  try {
    f();
  } catch (...) {
    abandon_checkpoint(out_dir, step);
    throw;
  }
}

/// `sum`: its word_sum().
FileDigest read_back(const std::string& path, uint64_t* sum) {
  const InputFile file(path, ExitCode::io, "check the folder and its disk");
  Sha256 digest;
  *sum = 0;
  file.for_pieces([&](int64_t offset, const char* piece, int64_t n) {
    digest.update(piece, static_cast<size_t>(n));
    if (file.bytes() % 4 == 0) *sum += word_sum(offset, piece, n);
  });
  return {file.bytes(), digest.hex()};
}

void check_listed(const files::Digests& listed, const char* name, const std::string& folder) {
  if (listed.count(name)) return;
  throw Error::fault(ExitCode::checkpoint, folder + "/" + files::kManifest,
                     std::string("no entry for ") + name, kDamagedRemedy);
}

/// Refuses a missing folder, and a run's folder given instead of one of its checkpoints.
void refuse_other_folder(const std::string& folder) {
  std::error_code ignored;
  if (std::filesystem::status(folder, ignored).type() == std::filesystem::file_type::not_found) {
    throw Error::fault(ExitCode::checkpoint, folder, "no such folder", "check the name");
  }
  if (std::filesystem::is_regular_file(folder, ignored)) {
    throw Error(ExitCode::checkpoint, folder, "the folder of a checkpoint or a run", "a file",
                "name the folder");
  }
  if (!std::filesystem::is_directory(folder, ignored) ||
      std::filesystem::exists(folder + "/" + files::kManifest, ignored)) {
    return;
  }
  const std::optional<int64_t> newest = newest_step(folder);
  if (!newest && !std::filesystem::exists(folder + "/" + files::kState, ignored) &&
      !checkpoint_step(std::filesystem::path(folder).filename().string())) {
    throw Error(ExitCode::checkpoint, folder,
                "a checkpoint, or the folder of a run with checkpoints", "a folder with neither",
                "name a checkpoint-... folder, or a run's out_dir");
  }
  if (!newest) return;
  throw Error(ExitCode::checkpoint, folder, "a checkpoint folder", "a run's folder",
              "name one of its checkpoints: " +
                  (std::filesystem::path(folder) / checkpoint_name(*newest)).string());
}

/// A member of state.json: an integer in [0, 2^63).
int64_t number_in(const Json& state, const char* key, const std::string& path) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  const Json* found = state.is_object() && state.contains(key) ? &state[key] : nullptr;
  if (found && found->is_number_unsigned() && found->get<uint64_t>() <= kMax) {
    return found->get<int64_t>();
  }
  const std::string expected = fmt::format("an integer from 0 to {}", kMax);
  if (!found) throw missing(ExitCode::checkpoint, path + ": " + key, expected, kDamagedRemedy);
  throw Error(ExitCode::checkpoint, path + ": " + key, expected, abbreviate(found->dump()),
              kDamagedRemedy);
}

/// Reads state.json, already verified by the manifest. Throws Error (ExitCode::checkpoint) for a
/// newer format.
Json read_state(const std::string& folder) {
  const std::string path = folder + "/" + files::kState;
  Json state = parse_json(open_checkpoint_file(path).text(kMaxState),
                          {path, ExitCode::checkpoint, kDamagedRemedy});
  const int64_t format = number_in(state, "format", path);
  if (format > kCheckpointFormat) throw NewerFormat(path, format);
  return state;
}

}  // namespace

NewerFormat::NewerFormat(const std::string& where, int64_t found)
    : Error(ExitCode::checkpoint, where,
            "format " + std::to_string(kCheckpointFormat) + " or older",
            "the newer format " + std::to_string(found),
            "use the version of bamtrain that wrote it, or a later one") {}

std::string checkpoint_name(int64_t step) { return fmt::format("{}{:08d}", kPrefix, step); }

std::optional<int64_t> checkpoint_step(const std::string& name) {
  const size_t prefix = std::string(kPrefix).size();
  int64_t step = 0;
  if (name.compare(0, prefix, kPrefix) != 0) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data() + prefix, name.data() + name.size(), step);
  if (error != std::errc() || step < 0 || checkpoint_name(step) != name) return std::nullopt;
  return step;
}

void save_checkpoint(const std::string& out_dir, int64_t step, const CheckpointContents& contents,
                     const Warn& warn) {
  require(step >= 0, "a step that is not negative");
  const std::string state = state_text(contents.state, step);
  const std::string temporary = temporary_folder(out_dir, step);
  remove_leftovers(out_dir, warn);
  or_abandon(out_dir, step, [&] {
    make_folder(temporary);
    const std::string path = temporary + "/";
    finish_files(
        temporary, state,
        {{files::kModel, write_safetensors(path + files::kModel, contents.model, metadata())},
         {files::kOptimizer,
          write_safetensors(path + files::kOptimizer, contents.optimizer, metadata())}});
    publish(out_dir, temporary, checkpoint_name(step));
  });
}

CheckpointSums begin_checkpoint(const std::string& out_dir, int64_t step,
                                const CheckpointContents& contents, const Warn& warn) {
  require(step >= 0, "a step that is not negative");
  const std::string temporary = temporary_folder(out_dir, step);
  remove_leftovers(out_dir, warn);
  CheckpointSums sums;
  or_abandon(out_dir, step, [&] {
    make_folder(temporary);
    sums.model = begin_safetensors(temporary + "/" + files::kModel, contents.model, metadata());
    sums.optimizer =
        begin_safetensors(temporary + "/" + files::kOptimizer, contents.optimizer, metadata());
  });
  return sums;
}

CheckpointSums write_part(const std::string& out_dir, int64_t step,
                          const CheckpointContents& contents,
                          const std::function<void(CheckpointPart&)>& write) {
  const std::string path = temporary_folder(out_dir, step) + "/";
  CheckpointPart part = {{path + files::kModel, contents.model, metadata()},
                         {path + files::kOptimizer, contents.optimizer, metadata()}};
  write(part);
  return {part.model.finish(), part.optimizer.finish()};
}

bool end_checkpoint(const std::string& out_dir, int64_t step, const CheckpointContents& contents,
                    const CheckpointSums& sums) {
  const std::string temporary = temporary_folder(out_dir, step);
  CheckpointSums found;
  or_abandon(out_dir, step, [&] {
    const std::string state = state_text(contents.state, step);
    const FileDigest model = read_back(temporary + "/" + files::kModel, &found.model);
    const FileDigest optimizer = read_back(temporary + "/" + files::kOptimizer, &found.optimizer);
    if (found != sums) return;
    finish_files(temporary, state, {{files::kModel, model}, {files::kOptimizer, optimizer}});
    publish(out_dir, temporary, checkpoint_name(step));
  });
  if (found != sums) abandon_checkpoint(out_dir, step);
  return found == sums;
}

void abandon_checkpoint(const std::string& out_dir, int64_t step) {
  try {
    remove_tree(temporary_folder(out_dir, step));
  } catch (const Error&) {
  }
}

Checkpoint open_checkpoint(const std::string& folder) {
  refuse_other_folder(folder);
  const files::Digests listed = files::verify_manifest(folder);
  check_listed(listed, files::kState, folder);
  Checkpoint result{folder, 0, read_state(folder)};
  check_listed(listed, files::kModel, folder);
  check_listed(listed, files::kOptimizer, folder);
  if (listed.size() != 3) {
    throw Error(ExitCode::checkpoint, folder + "/" + files::kManifest, "3 files",
                std::to_string(listed.size()), kDamagedRemedy);
  }
  result.step = number_in(result.state, "step", folder + "/" + files::kState);
  const auto named = checkpoint_step(std::filesystem::path(folder + "/").parent_path().filename());
  if (named && *named != result.step) {
    throw Error(ExitCode::checkpoint, folder, "the checkpoint of step " + std::to_string(*named),
                "step " + std::to_string(result.step), "rename the folder back");
  }
  return result;
}

Json verified_state(const std::string& folder) {
  files::verify_file(folder, files::kState);
  return read_state(folder);
}

}  // namespace bamtrain
