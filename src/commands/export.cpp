// bamtrain export: exports a checkpoint as a folder for Hugging Face's transformers.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands/command.h"
#include "commands/load_checkpoint.h"
#include "config/reader.h"
#include "core/option_value.h"
#include "core/unexpanded_path.h"
#include "core/utf8.h"
#include "export/huggingface_folder.h"
#include "model/causal_lm.h"
#include "ops/cpu/cpu.h"
#include "record/run_files.h"

namespace bamtrain {

namespace {

struct ExportArguments {
  std::string checkpoint, dtype = "fp32";
  std::optional<std::string> output;
  std::vector<std::string> overrides;
  HuggingfaceRequest request;

  ExportArguments() { request.max_shard_bytes = 5'000'000'000; }
};

int run_export(const ExportArguments& arguments) {
  if (arguments.output && arguments.output->empty()) {
    throw Error::fault(ExitCode::usage, "--output", "empty name", "name a folder");
  }
  if (arguments.output) require_expanded_path(*arguments.output, ExitCode::usage, "--output");
  const Checkpoint checkpoint = load_checkpoint(arguments.checkpoint);
  check_run_state(checkpoint);
  const RunConfig c = trained_config(checkpoint, arguments.overrides);
  check_causal_lm(c.model);
  const ParameterLayout layout(c.model, c.data.sequence_length);
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Arena arena;
  const Tensor master_weights = load_master_weights(checkpoint, layout, *backend, arena);
  HuggingfaceRequest request = arguments.request;
  request.output = arguments.output.value_or(checkpoint.folder + "-huggingface");
  request.as_trained = arguments.overrides.empty();
  request.rounded = arguments.dtype == "bf16";
  write_huggingface_folder(request, checkpoint, c, resolved_json(c), layout, master_weights);
  fmt::print("{}\n", printable(request.output));
  return 0;
}

}  // namespace

Command export_command(CLI::App& app) {
  const auto a = std::make_shared<ExportArguments>();
  CLI::App* options =
      app.add_subcommand("export", "write a folder for Hugging Face's transformers");
  constexpr const char* kModel = "Model";
  constexpr const char* kTokenizer = "Tokenizer";
  add_checkpoint(*options, a->checkpoint)->group(kModel);
  options
      ->add_option("--output", a->output,
                   "folder to write, empty or new; it appears complete or not at all (default: "
                   "CHECKPOINT-huggingface)")
      ->type_name("DIR")
      ->group(kModel);
  take_words(options->add_option("--dtype", a->dtype,
                                 "of the weights (default: fp32); parameters of priors, scales and "
                                 "normalizers stay fp32"),
             {"fp32", "bf16"})
      ->group(kModel);
  take_bytes(options->add_option("--max-shard-size", a->request.max_shard_bytes,
                                 "largest weights file, such as 500MB or 2GiB (default: 5GB)"))
      ->group(kModel);
  add_overrides(*options, a->overrides)->group(kModel);
  CLI::Option* tokenizer =
      options
          ->add_option("--tokenizer", a->request.tokenizer,
                       "tokenizer file to include (default: the one that made the shards, found "
                       "near them)")
          ->type_name("FILE")
          ->group(kTokenizer);
  CLI::Option* none = options->add_flag_callback(
      "--no-tokenizer", [a] { a->request.with_tokenizer = false; }, "include no tokenizer");
  none->excludes(tokenizer)->group(kTokenizer);
  options
      ->add_flag("--sentencepiece", a->request.sentencepiece,
                 "include the SentencePiece file itself, as sentencepiece.model, instead of a "
                 "tokenizer.json")
      ->excludes(none)
      ->group(kTokenizer);
  take_integers(options->add_option("--document-start", a->request.document_start,
                                    "BOS id that begins a document (default: the config's, or the "
                                    "manifest's)"),
                0, INT32_MAX)
      ->type_name("ID")
      ->group(kTokenizer);
  return {options, [a] { return run_export(*a); }};
}

}  // namespace bamtrain
