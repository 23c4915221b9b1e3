// Keys of a run configuration: init_from, data.

#include "config/key_table.h"
#include "config/sources.h"

namespace bamtrain {

using namespace key_table;

namespace {

Key tokenizer_of_weights() {
  return choice<bool>("init_from.tokenizer",
                      "whether the tokenizers of the folder's model and of data.train's shards "
                      "must agree, by SHA-256 where both record it; same: yes; any: no",
                      {{"same", false}, {"any", true}}, FIELD(init_from.any_tokenizer));
}

Key training_sources() {
  const std::string path = "data.train";
  Key k{path,
        "training data: token shards (a folder of *.bin, or a glob), a task, or a weighted list of "
        "these",
        sources_schema()};
  k.get = [](const RunConfig& c) { return sources_json(c.data.train); };
  k.set = [path](RunConfig& c, const json& v, const Origin& origin) {
    c.data.train = read_sources(v, path, origin, c.config_version);
  };
  return k;
}

Key validation_source() {
  const std::string path = "data.val";
  Key k{path,
        "validation data: token shards (a folder of *.bin, or a glob), or a task, which draws "
        "other sequences than for training; empty: no validation",
        validation_schema()};
  k.get = [](const RunConfig& c) { return validation_json(c.data); };
  k.set = [path](RunConfig& c, const json& v, const Origin& origin) {
    read_validation(v, path, origin, c.config_version, &c.data);
  };
  return k;
}

}  // namespace

std::vector<Key> data_keys() {
  return {
      resumable(key("init_from.folder",
                    "folder with the initial weights: model.safetensors, or shards with "
                    "model.safetensors.index.json, in F32, BF16 or F16. Checkpoints, bamtrain "
                    "export and Hugging Face Llamas have this form (docs/export.md). A resumed run "
                    "ignores it; empty: random initialization",
                    any_text(), FIELD(init_from.folder))),
      resumable(key("init_from.new",
                    "parameters that are missing from the folder and keep their own "
                    "initialization. Names: prior, mix (what mixes heads in prior, without its "
                    "base), scale, normalizer, or one of their parameters (theta_alpha)",
                    set_of(nonempty_text()), FIELD(init_from.absent))),
      resumable(key("init_from.optimizer",
                    "also load the optimizer state and step count. The folder must be a checkpoint "
                    "with the same optimizer name, betas and trained parameters",
                    boolean_value(), FIELD(init_from.optimizer))),
      resumable(key("init_from.model_type",
                    "architecture of a folder that has neither a config.json with model_type nor "
                    "a checkpoint's state.json; empty: the folder names it",
                    one_of({"", "llama", "gpt2"}), FIELD(init_from.model_type))),
      resumable(tokenizer_of_weights()),

      required(resumable(training_sources())),
      resumable(validation_source()),
      needed(trains_on_shards, key("data.sequence_length",
                                   "training sequence length T in tokens, with tasks the longest; "
                                   "required with shards; 0: the longest sequence of the tasks",
                                   integer_value(0, kMaxLength), FIELD(data.sequence_length))),
      key("data.document_start",
          "id of the token that starts a document; null: from the shards' manifest",
          or_null(integer_value(0, kMaxInt32)), FIELD(data.document_start)),
      key("data.shuffle", "shuffle the sequences again every epoch; false: file order",
          boolean_value(), FIELD(data.shuffle)),
      resumable(key(
          "data.verify",
          "during training, compare shards with the SHA-256 in their manifest, if they have one",
          boolean_value(), FIELD(data.verify))),
  };
}

}  // namespace bamtrain
