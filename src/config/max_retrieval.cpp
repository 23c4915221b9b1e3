#include "config/max_retrieval.h"

#include <string>

#include "config/keys.h"
#include "core/error.h"

namespace bamtrain {

namespace {

constexpr const char* kWith = " with model.kind max_retrieval";

constexpr const char* kWithoutUse[] = {"model.head_dim",
                                       "model.norm.kind",
                                       "model.norm.eps",
                                       "model.norm_position",
                                       "model.embed_scale",
                                       "model.tied",
                                       "model.bias",
                                       "model.attention.prior",
                                       "model.attention.window",
                                       "model.attention.document_mask",
                                       "model.attention.causal",
                                       "init_from.folder",
                                       "data.document_start",
                                       "train.precision",
                                       "train.recompute",
                                       "sample.prompts"};

std::string reason(const std::string& path) {
  if (path == "model.attention.prior") return ": its items are a set";
  if (path == "train.precision") {
    return ": priorities have 24 bits, and bf16 or TF32 matmuls keep 8 or 11 of them";
  }
  return "";
}

}  // namespace

void check_max_retrieval(const RunConfig& c, const Origin& origin) {
  const RunConfig defaults = default_run_config(c.config_version);
  const auto value = [](const std::string& path, const RunConfig& of) {
    return find_key(path)->get(of).dump();
  };
  const auto refuse = [&](const std::string& path, const std::string& expected,
                          const std::string& found, const std::string& remedy) {
    throw Error(ExitCode::config, origin.at(path), expected, found, remedy);
  };
  for (const std::string path : kWithoutUse) {
    const std::string only = value(path, defaults), found = value(path, c);
    if (found != only) refuse(path, only + kWith + reason(path), found, "remove it");
  }
  for (const std::string path : {"model.layers", "model.heads", "model.kv_heads"}) {
    if (value(path, c) == "1") continue;
    refuse(path, std::string("1") + kWith + ", which is one attention of one head", value(path, c),
           "set it to 1");
  }
  if (is_gated(c.model.mlp.kind)) {
    refuse("model.mlp.kind",
           std::string("gelu, gelu_erf or relu") + kWith + ": its networks are not gated",
           value("model.mlp.kind", c), "set it to \"gelu_erf\"");
  }
  const NormalizerChoice& normalizer = c.model.attention.normalizer;
  if (!traits_of(normalizer.info().kind).own_key) {
    refuse("model.attention.normalizer",
           std::string("one") + kWith + " that attends to a row's own key, the last item's",
           "\"" + normalizer.name() + "\", which does not", "choose another");
  }
  if (normalizer.options.has("of") && normalizer.options.text("of") == "sequence") {
    refuse("model.attention.normalizer.of",
           std::string("\"row\"") + kWith + ": a sequence's query and padding are not items",
           "\"sequence\"", "remove it");
  }
}

}  // namespace bamtrain
