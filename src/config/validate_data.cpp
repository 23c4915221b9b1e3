#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/config_checks.h"
#include "core/abbreviate.h"

namespace bamtrain {

namespace {

class DataChecks : ConfigChecks {
 public:
  using ConfigChecks::ConfigChecks;

  void check() const {
    sizes();
    sources();
    document_start();
  }

 private:
  /// Sizes that shards do not specify must be given; the tasks of a run must fit its model.
  void sizes() const {
    const auto open = [this](const char* key) {
      refuse(key,
             "at least 1: only synthetic tasks in data.train set it, not shards, example files or "
             "tokenizers",
             "0", std::string("set it, or give --set ") + key + "=...");
    };
    if (c_.model.vocab == 0) open("model.vocab");
    if (c_.data.sequence_length == 0) open("data.sequence_length");
    for (const DataSource& s : c_.data.train.list) {
      if (s.task) {
        task(*s.task, "data.train");
      } else {
        next_tokens(abbreviate(s.path), "data.train");
      }
    }
    if (c_.data.val_task) {
      task(*c_.data.val_task, "data.val");
    } else if (c_.data.validates()) {
      next_tokens("shards", "data.val");
    }
    if (c_.model.classes != 0) classes();
  }

  /// For a head whose classes are not ids: nothing may confuse the two.
  void classes() const {
    const std::string other = text(c_.model.classes) + ", and model.vocab is " +
                              text(c_.model.vocab) + ": classes are not token ids";
    if (c_.data.train.has_shards()) {
      refuse("model.classes", "0 with shards in data.train, whose targets are token ids", other,
             "remove it");
    }
    if (!c_.data.val.empty()) {
      refuse("data.val", "a task, or unset, with model.classes",
             "shards, whose targets are token ids", "change it, or remove model.classes");
    }
    if (c_.model.tied) {
      refuse("model.tied", "false with model.classes = " + other, "true",
             "set it to false: a head of its own has a row for each class");
    }
    if (!c_.sample.prompts.empty()) {
      refuse("sample.prompts", "an empty list with model.classes = " + other,
             text(std::ssize(c_.sample.prompts)) + " prompts", "remove them");
    }
  }

  using ConfigChecks::task;

  void task(const TaskChoice& choice, const std::string& key) const {
    const TaskInfo& info = *choice.info;
    task(info, key);
    if (info.of_file) return;
    const int64_t most = info.most_inputs(choice.lengths.longest);
    if (c_.data.sequence_length < most) {
      refuse("data.sequence_length",
             "at least " + text(most) + ", the most inputs of \"" + info.name +
                 "\" with sources of up to " + text(choice.lengths.longest),
             text(c_.data.sequence_length), "raise it, or shorten the length of " + key);
    }
  }

  void sources() const {
    const std::vector<DataSource>& all = c_.data.train.list;
    double largest = 0, of_shards = 0;
    for (const DataSource& s : all) {
      largest = std::max(largest, s.weight);
      if (!s.task) of_shards += s.weight;
    }
    if (!std::isfinite(of_shards)) {
      refuse("data.train", "shard weights with a sum below 1.8e308", "an infinite sum",
             "divide all weights by the same number");
    }
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string entry = "data.train[" + std::to_string(i) + "]";
      if (all[i].weight / largest < kSmallestWeight) {
        refuse(entry + ".weight", "at least 1e-12 of the largest weight",
               nlohmann::json(all[i].weight).dump(), "raise it, or remove the source");
      }
      // Tasks alternate with all shards together.
      if (all[i].task && all[i].weight / of_shards < kSmallestWeight) {
        refuse(entry + ".weight", "at least 1e-12 of the sum of the shards' weights",
               nlohmann::json(all[i].weight).dump(), "raise it, or remove the source");
      }
      for (size_t j = 0; j < i; ++j) {
        if (all[i].task || all[j].task || all[j].path != all[i].path) continue;
        refuse(entry + ".path", "a source other than data.train[" + std::to_string(j) + "]",
               "\"" + abbreviate(all[i].path) + "\" again",
               "give it once, with the sum of the weights");
      }
    }
  }

  void document_start() const {
    const auto& start = c_.data.document_start;
    if (start && *start >= c_.model.vocab) {
      refuse("data.document_start",
             "a token id below model.vocab = " + text(c_.model.vocab) + ", or null", text(*start),
             "give the BOS id that begins a document, or raise model.vocab");
    }
  }
};

}  // namespace

void check_data(const RunConfig& config, const Origin& origin, ConfigUse use) {
  DataChecks(config, origin, use).check();
}

}  // namespace bamtrain
