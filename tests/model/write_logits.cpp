// Logits of a checkpoint on fixed tokens, for scripts/golden/llama_check.py:
//
//   write_logits CHECKPOINT T OUT.safetensors
//
// writes `tokens` (2, T) I32, drawn from the vocabulary without the document start, and `logits`
// (2, T, V) F32.

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/reader.h"
#include "core/rng.h"
#include "model/model.h"
#include "ops/cpu/cpu.h"
#include "train/run_files.h"

using namespace bamtrain;

int main(int argc, char** argv) try {
  if (argc != 4) {
    throw Error(ExitCode::usage, "arguments", "CHECKPOINT T OUT.safetensors",
                std::to_string(argc - 1) + " arguments", "see the top of the source");
  }
  constexpr int64_t B = 2;
  const int64_t T = std::atoll(argv[2]);
  const Checkpoint checkpoint = open_checkpoint(argv[1]);
  const RunConfig c =
      read_run_config_text(checkpoint.state.at("config").dump(), checkpoint.folder, {});
  const auto backend = make_cpu_backend();
  Model model(c.model, c.data.sequence_length, *backend, Dtype::f32);
  Arena arena;
  Tensor masters, logits;
  arena.add("masters", &masters, Dtype::f32, {model.parameters().elements()});
  arena.add("logits", &logits, Dtype::f32, {B * T, c.model.vocab});
  model.plan(arena, B, T, ModelUse::evaluation);
  arena.commit();
  read_tensors(SafetensorsFile::open(checkpoint.model_file()),
               model_tensors(model.parameters(), masters));
  model.set_masters(masters);
  model.refresh();
  const Rng rng(1, "tokens");
  const int64_t start = c.data.document_start.value_or(1);
  std::vector<int32_t> tokens(static_cast<size_t>(B * T));
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto id = static_cast<int64_t>(rng.below(i, static_cast<uint64_t>(c.model.vocab - 1)));
    tokens[i] = static_cast<int32_t>(id >= start ? id + 1 : id);
  }
  model.logits(tokens.data(), B, T, std::nullopt, logits);
  write_safetensors(argv[3],
                    {{"tokens", Dtype::i32, {B, T}, tokens.data()},
                     {"logits", Dtype::f32, {B, T, c.model.vocab}, logits.data}},
                    {});
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "write_logits: {}\n", e.what());
  return 1;
}
