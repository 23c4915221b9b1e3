#include "train/training_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "data/file_task.h"
#include "prompts/passkey_task.h"

namespace bamtrain {

namespace {

/// Whether both consist of the same files, by whatever paths.
bool same_files(const ShardSet& a, const ShardSet& b) {
  if (a.size() != b.size()) return false;
  std::error_code ignored;
  for (int64_t i = 0; i < a.size(); ++i) {
    if (!std::filesystem::equivalent(a.shard(i).path(), b.shard(i).path(), ignored)) return false;
  }
  return true;
}

/// Null if `data` has only tasks.
std::unique_ptr<Loader> open_loader(const DataSources& data, const RunConfig& c, bool shuffle) {
  if (!data.has_shards()) return nullptr;
  std::vector<Source> sources;
  std::vector<size_t> entries;  // index in the list, by source
  for (size_t entry = 0; entry < data.list.size(); ++entry) {
    const DataSource& s = data.list[entry];
    if (s.task) continue;
    const auto shards = std::make_shared<const ShardSet>(ShardSet::open(s.path, c.model.vocab));
    for (size_t i = 0; i < sources.size(); ++i) {
      if (!same_files(*shards, *sources[i].shards)) continue;
      throw Error(ExitCode::config, fmt::format("data.train[{}].path", entry),
                  fmt::format("shards other than those of data.train[{}]", entries[i]),
                  fmt::format("\"{}\", the files of \"{}\"", s.path, data.list[entries[i]].path),
                  "give them once, with the sum of the weights");
    }
    sources.push_back({shards, s.weight});
    entries.push_back(entry);
  }
  return std::make_unique<Loader>(std::move(sources), c.data.sequence_length, c.seed, shuffle);
}

/// `where`: the key in the config.
std::unique_ptr<Task> open_task(const TaskChoice& choice, const RunConfig& c,
                                const std::string& set, const std::string& where) {
  if (choice.info->of_file) {
    auto task =
        FileTask::open(choice.options.text("path"), choice.options.text("tokenizer"), c.model.vocab,
                       c.model.outputs(), c.data.sequence_length, c.seed, set);
    if (!c.model.attention.causal) task->require_own_places(choice.options.text("path"));
    return task;
  }
  if (choice.info->of_tokenizer) {
    try {
      return PasskeyTask::open(choice.options, choice.lengths, c.model.vocab, c.seed, set);
    } catch (const Error& e) {
      const std::string& key = e.where();
      if (!key.starts_with("{")) throw;
      throw e.at(where + "." + key.substr(1, key.size() - 2));
    }
  }
  return std::make_unique<Task>(*choice.info, choice.options, choice.lengths, c.seed, set);
}

std::vector<TaskSource> open_tasks(const RunConfig& c) {
  std::vector<TaskSource> tasks;
  const std::vector<DataSource>& all = c.data.train.list;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].task) continue;
    const std::string where = all.size() == 1 ? "data.train" : fmt::format("data.train[{}]", i);
    // Several sources with the same task draw different sequences.
    const auto before = std::count_if(
        all.begin(), all.begin() + static_cast<int64_t>(i),
        [&](const DataSource& s) { return s.task && s.task->info == all[i].task->info; });
    const std::string set = before == 0 ? "train" : fmt::format("train.{}", before);
    tasks.push_back({open_task(*all[i].task, c, set, where), all[i].weight});
  }
  return tasks;
}

}  // namespace

std::unique_ptr<Sequences> open_training_data(const RunConfig& c) {
  const int64_t of_step = c.train.tokens_per_step / c.data.sequence_length;
  return std::make_unique<Sequences>(open_loader(c.data.train, c, c.data.shuffle), open_tasks(c),
                                     c.data.sequence_length, std::max<int64_t>(1, of_step));
}

std::vector<std::string> missing_document_starts(const std::vector<Source>& sources,
                                                 int64_t document_start) {
  std::vector<std::string> out;
  for (const Source& s : sources) {
    const ShardSet& shards = *s.shards;
    if (shards.count(document_start, kSearchedTokens) > 0) continue;
    const bool all = shards.tokens() <= kSearchedTokens;
    out.push_back(
        fmt::format("no document start (id {}, data.document_start) in the {}{} tokens of {}: "
                    "attention and positions never restart there",
                    document_start, all ? "" : "first ", all ? shards.tokens() : kSearchedTokens,
                    shards.source()));
  }
  return out;
}

std::unique_ptr<Sequences> open_validation_data(const RunConfig& c) {
  if (!c.data.validates()) return nullptr;
  const std::optional<TaskChoice>& task = c.data.val_task;
  std::vector<TaskSource> tasks;
  if (task) tasks.push_back({open_task(*task, c, "val", "data.val"), 1});
  return std::make_unique<Sequences>(task ? nullptr : open_loader(c.data.val, c, false),
                                     std::move(tasks), c.data.sequence_length, c.train.micro_batch);
}

}  // namespace bamtrain
