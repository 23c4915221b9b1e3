// Keys of a run configuration: init_from, data.

#include "config/key_table.h"
#include "config/sources.h"

namespace bamtrain {

using namespace key_table;

namespace {

Key tokenizer_of_weights() {
  return choice<bool>("init_from.tokenizer",
                      "of which tokenizer the folder's model is; same: that of the shards of "
                      "data.train, by SHA-256, where both tell theirs; any: of another too",
                      {{"same", false}, {"any", true}}, FIELD(init_from.any_tokenizer));
}

Key training_sources() {
  const std::string path = "data.train";
  Key k{path,
        "what is trained on: token shards, a folder of *.bin or a glob; a task; or a list of such "
        "with weights",
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
        "what is validated on: token shards, a folder of *.bin or a glob; or a task, whose "
        "sequences are others than those of data.train; empty: no validation",
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
                    "start from the weights in this folder: model.safetensors, or shards with "
                    "model.safetensors.index.json, as bamtrain export and Hugging Face's Llamas "
                    "have them (docs/export.md), in F32, BF16 or F16; a resumed run does not read "
                    "it; empty: initial values",
                    any_text(), FIELD(init_from.folder))),
      resumable(
          key("init_from.new",
              "parameters that the folder has not and that keep their initial values: prior, mix "
              "(of prior, what mixes heads beside its base), scale, normalizer, or names of "
              "parameters of those chosen (theta_alpha)",
              set_of(nonempty_text()), FIELD(init_from.absent))),
      resumable(key("init_from.optimizer",
                    "whether the folder is a checkpoint whose moments, and number of steps, the "
                    "optimizer goes on with: of the same name and betas, on the same trained "
                    "parameters",
                    boolean_value(), FIELD(init_from.optimizer))),
      resumable(key("init_from.model_type",
                    "whose names and computation a folder has that has neither a config.json with "
                    "a model_type nor the state.json of a checkpoint; empty: it has one",
                    one_of({"", "llama", "gpt2"}), FIELD(init_from.model_type))),
      resumable(tokenizer_of_weights()),

      required(resumable(training_sources())),
      resumable(validation_source()),
      needed(
          trains_on_shards,
          key("data.sequence_length",
              "tokens per training sequence T, of tasks at most; needed with shards; 0: the most "
              "that a task's sequences have",
              integer_value(0, kMaxLength), FIELD(data.sequence_length))),
      key("data.document_start", "token id that begins a document; null: from the shards' manifest",
          or_null(integer_value(0, kMaxInt32)), FIELD(data.document_start)),
      key("data.shuffle", "sequences permuted anew each epoch instead of in file order",
          boolean_value(), FIELD(data.shuffle)),
      resumable(
          key("data.verify",
              "shards that have a manifest are compared with its SHA-256 while the run trains",
              boolean_value(), FIELD(data.verify))),
  };
}

}  // namespace bamtrain
