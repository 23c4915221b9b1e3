#pragma once
// Changes to a folder of checkpoints that may fail or stop at any point.

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "folder.h"
#include "sample.h"

namespace bamtrain {

/// Warnings of the scenarios' saves and prunes.
inline std::vector<std::string> g_warnings;
inline void keep_warning(const std::string& warning) { g_warnings.push_back(warning); }

inline void save(const std::string& out_dir, int64_t step, int32_t tag) {
  Sample sample(tag);
  save_checkpoint(out_dir, step, sample.contents(), keep_warning);
}

/// The same by three processes, which write thirds of every tensor, none where one cannot. Returns
/// whether what they wrote was found again, after `between`.
inline bool save_together(
    const std::string& out_dir, int64_t step, int32_t tag,
    const std::function<void()>& between = [] {}) {
  Sample sample(tag);
  const CheckpointContents contents = sample.contents();
  CheckpointContents outline = contents;
  for (NamedTensor& t : outline.model) t.data = nullptr;
  for (NamedTensor& t : outline.optimizer) t.data = nullptr;
  CheckpointSums sums = begin_checkpoint(out_dir, step, outline, keep_warning);
  for (int64_t process = 0; process < 3; ++process) {
    const auto write = [process](SafetensorsPart& file, const std::vector<NamedTensor>& tensors) {
      for (const NamedTensor& t : tensors) {
        int64_t bytes = size_of(t.dtype);
        for (const int64_t n : t.shape) bytes *= n;
        const int64_t words = bytes / 4;
        const int64_t from = words * process / 3 * 4, to = words * (process + 1) / 3 * 4;
        if (from < to) file.write(t.name, from, static_cast<const char*>(t.data) + from, to - from);
      }
    };
    try {
      const CheckpointSums own = write_part(out_dir, step, outline, [&](CheckpointPart& part) {
        write(part.model, contents.model);
        write(part.optimizer, contents.optimizer);
      });
      sums.model += own.model;
      sums.optimizer += own.optimizer;
    } catch (const Error&) {
      abandon_checkpoint(out_dir, step);
      throw;
    }
  }
  between();
  return end_checkpoint(out_dir, step, outline, sums);
}

struct Scenario {
  std::string name;
  std::function<void(const std::string& out_dir)> prepare;
  std::function<void(const std::string& out_dir)> change;
  std::vector<std::optional<int32_t>> before;  // tags that the newest one may have
  int32_t after = 0;                           // its tag after the change
  std::vector<std::string> remaining;          // the folder's content after the change
  /// Renames (old name, new name) that `prepare` does not sync.
  std::vector<std::pair<std::string, std::string>> unsynced = {};

  bool before_or_after(const std::optional<int32_t>& tag) const {
    return tag == after || std::find(before.begin(), before.end(), tag) != before.end();
  }
};

inline std::vector<Scenario> scenarios() {
  const auto save_two = [](const std::string& out) { save(out, 2, 20); };
  return {{"the first save",
           [](const std::string&) {},
           save_two,
           {std::nullopt},
           20,
           {"checkpoint-00000002"}},
          {"a later save",
           [](const std::string& out) { save(out, 1, 10); },
           save_two,
           {10},
           20,
           {"checkpoint-00000001", "checkpoint-00000002"}},
          {"a save by three processes",
           [](const std::string& out) { save(out, 1, 10); },
           [](const std::string& out) { save_together(out, 2, 20); },
           {10},
           20,
           {"checkpoint-00000001", "checkpoint-00000002"}},
          {"a save of the same step",
           [](const std::string& out) {
             save(out, 1, 10);
             save(out, 2, 15);
           },
           save_two,
           {15},
           20,
           {"checkpoint-00000001", "checkpoint-00000002"}},
          {"a save after a process died in each way",
           [](const std::string& out) {
             save(out, 1, 10);
             save(out, 3, 30);
             std::filesystem::copy(out + "/checkpoint-00000001",
                                   out + "/.replaced-checkpoint-00000001");
             std::filesystem::rename(out + "/checkpoint-00000003",
                                     out + "/.replaced-checkpoint-00000003");
             std::filesystem::create_directory(out + "/.tmp-checkpoint-00000007");
             write_bytes(out + "/.tmp-checkpoint-00000007/model.safetensors", "half of");
           },
           [](const std::string& out) { save(out, 4, 40); },
           {30},
           40,
           {"checkpoint-00000001", "checkpoint-00000003", "checkpoint-00000004"}},
          {"a save after a process died having replaced a checkpoint",
           [](const std::string& out) {
             save(out, 2, 15);
             std::filesystem::rename(out + "/checkpoint-00000002", out + "/aside");
             save(out, 2, 20);
             std::filesystem::rename(out + "/aside", out + "/.replaced-checkpoint-00000002");
           },
           [](const std::string& out) { save(out, 4, 40); },
           {15, 20},
           40,
           {"checkpoint-00000002", "checkpoint-00000004"},
           {{"checkpoint-00000002", ".replaced-checkpoint-00000002"},
            {".tmp-checkpoint-00000002", "checkpoint-00000002"}}},
          {"pruning",
           [](const std::string& out) {
             for (int step = 1; step <= 5; ++step) save(out, step, step * 10);
           },
           [](const std::string& out) { prune_checkpoints(out, 2, 3, std::nullopt, keep_warning); },
           {50},
           50,
           {"checkpoint-00000003", "checkpoint-00000004", "checkpoint-00000005"}}};
}

/// The tag of the newest checkpoint, found without a warning; -1 if its parts do not match.
inline std::optional<int32_t> newest_tag(const std::string& out_dir) {
  const auto checkpoint = newest_checkpoint(out_dir, no_warning);
  if (!checkpoint) return std::nullopt;
  const int32_t tag = checkpoint->state.at("tag");
  return holds(*checkpoint, tag) ? tag : -1;
}

/// Opens every folder that is named as a checkpoint, not only the newest. Throws if one is invalid.
inline bool all_valid(const std::string& out_dir) {
  for (const std::string& name : names_in(out_dir)) {
    if (checkpoint_step(name)) open_checkpoint(out_dir + "/" + name);
  }
  return true;
}

}  // namespace bamtrain
