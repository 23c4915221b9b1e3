// Writes the logits of a checkpoint, for scripts/golden/llama_check.py and scripts/check_export.py:
//
//     write_logits CHECKPOINT T OUT.safetensors
//     write_logits CHECKPOINT TOKENS.safetensors OUT.safetensors [KEY=VALUE...]
//
// The output has `tokens` (B, T) I32 and `logits` (B, T, V) F32. The tokens are those of the given
// file, or two random rows of the vocabulary without the document start. KEY=VALUE is as in eval's
// --set.

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/reader.h"
#include "core/rng.h"
#include "model/model.h"
#include "ops/cpu/cpu.h"
#include "record/run_files.h"

using namespace bamtrain;

namespace {

struct Tokens {
  int64_t B, T;
  std::vector<int32_t> ids;
};

Tokens draw_tokens(int64_t T, const RunConfig& c) {
  Tokens t = {2, T, {}};
  const Rng rng(1, "tokens");
  const int64_t start = c.data.document_start.value_or(1);
  for (uint64_t i = 0; i < static_cast<uint64_t>(t.B * T); ++i) {
    const auto id = static_cast<int64_t>(rng.below(i, static_cast<uint64_t>(c.model.vocab - 1)));
    t.ids.push_back(static_cast<int32_t>(id >= start ? id + 1 : id));
  }
  return t;
}

Tokens read_tokens(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const SafetensorsFile::Entry* e = file.find("tokens");
  require(e && e->dtype == Dtype::i32 && e->shape.size() == 2, "tokens (B, T) I32");
  Tokens t = {e->shape[0], e->shape[1], {}};
  t.ids.resize(static_cast<size_t>(t.B * t.T));
  file.read(*e, t.ids.data());
  return t;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) {
    throw Error(ExitCode::usage, "arguments", "CHECKPOINT T-or-TOKENS OUT.safetensors",
                std::to_string(argc - 1) + " arguments", "see the top of the source");
  }
  const Checkpoint checkpoint = open_checkpoint(argv[1]);
  const RunConfig c = read_run_config_text(checkpoint.state.at("config").dump(), checkpoint.folder,
                                           {argv + 4, argv + argc}, ConfigUse::evaluation);
  const int64_t length = std::atoll(argv[2]);
  const Tokens tokens = length > 0 ? draw_tokens(length, c) : read_tokens(argv[2]);
  const auto backend = make_cpu_backend();
  Model model(c.model, c.data.sequence_length, *backend, Dtype::f32);
  Arena arena;
  Tensor master_weights, logits;
  arena.add("masters", &master_weights, Dtype::f32, {model.parameters().elements()});
  arena.add("logits", &logits, Dtype::f32, {tokens.B * tokens.T, c.model.vocab});
  model.plan(arena, tokens.B, tokens.T, ModelUse::evaluation);
  arena.commit();
  read_tensors(SafetensorsFile::open(checkpoint.model_file()),
               model_tensors(model.parameters(), master_weights));
  model.set_master_weights(master_weights);
  model.refresh();
  std::vector<int32_t> ids = tokens.ids;
  model.logits(ids.data(), tokens.B, tokens.T, c.data.document_start, logits);
  write_safetensors(argv[3],
                    {{"tokens", Dtype::i32, {tokens.B, tokens.T}, ids.data()},
                     {"logits", Dtype::f32, {tokens.B, tokens.T, c.model.vocab}, logits.data}},
                    {});
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "write_logits: {}\n", e.what());
  return 1;
}
