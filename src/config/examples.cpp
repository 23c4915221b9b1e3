#include "config/examples.h"

#include <map>

#include "core/options.h"

namespace bamtrain {

std::string minimal_config() {
  return R"({
  "config_version": )" +
         std::to_string(kConfigVersion) + R"(,
  "out_dir": "out/first",
  "model": {
    "vocab": 4096,
    "width": 128, "layers": 4, "heads": 4, "mlp": {"hidden": 256},
    "attention": {"prior": "bam", "scale": "ssmax"}
  },
  "data": {
    "train": "out/quickstart/data/train",
    "val": "out/quickstart/data/val",
    "sequence_length": 128
  },
  "train": {"steps": 300, "tokens_per_step": 4096, "micro_batch": 8},
  "eval": {"lengths": [128, 256, 512, 1024]}
}
)";
}

std::string config_example(const std::string& path) {
  static const std::map<std::string, std::string> examples = {
      {"", R"("name": "second seed", "seed": 2, "device": "cuda", "out_dir": "out/seed-2")"},
      {"model", R"("model": {"vocab": 4096, "width": 256, "layers": 8, "heads": 8, "kv_heads": 2,
          "mlp": {"hidden": 704}, "tied": true})"},
      {"model.mlp", R"("model": {"mlp": {"kind": "gelu", "hidden": 512}})"},
      {"model.norm", R"("model": {"norm": {"kind": "layernorm", "eps": 1e-5}})"},
      {"model.attention", R"("model": {"attention": {
  "prior": {"name": "bam"},
  "scale": {"name": "ssmax"},
  "normalizer": {"name": "entmax", "alpha": 1.5},
  "document_mask": true
}})"},
      {"init_from",
       R"("init_from": {"folder": "out/nope/checkpoint-00019251", "new": ["prior", "scale"]})"},
      {"data", R"("data": {
  "train": [{"path": "data/web", "weight": 3}, {"path": "data/books", "weight": 1}],
  "val": "data/val",
  "sequence_length": 128
})"},
      {"optimizer", R"("optimizer": {"lr": 2e-3, "lr_multipliers": {"prior": 10}})"},
      {"schedule",
       R"("schedule": {"name": "wsd", "warmup_steps": 20, "decay_steps": 60, "min_ratio": 0})"},
      {"train", R"("train": {"steps": 300, "tokens_per_step": 65536, "micro_batch": 32,
          "precision": "bf16", "recompute": "mlp"})"},
      {"checkpoint", R"("checkpoint": {"every": 100, "keep": 2})"},
      {"checkpoint.best",
       R"("checkpoint": {"best": {"metric": "validation/loss", "mode": "min"}},
"eval": {"every": 50})"},
      {"eval", R"("eval": {
  "every": 100,
  "tokens": 65536,
  "lengths": [128, 256, 512, 1024],
  "tasks": [{"task": "niah", "tasks": ["niah_single_1"], "lengths": [512, 1024]}]
})"},
      {"sample", R"("sample": {"every": 100, "prompts": ["The", ""], "temperature": 0.8})"},
      {"log", R"("log": {"every": 10, "tensorboard": true})"},
  };
  return examples.at(path);
}

}  // namespace bamtrain
