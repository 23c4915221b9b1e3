#include "commands/generate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands/backend.h"
#include "commands/command.h"
#include "commands/load_checkpoint.h"
#include "core/faults.h"
#include "core/option_value.h"
#include "core/standard_output.h"
#include "core/text_file.h"
#include "core/utf8.h"
#include "record/run_data.h"
#include "record/run_files.h"
#include "record/run_text.h"

namespace bamtrain {

namespace {

constexpr int64_t kMostInputBytes = int64_t{1} << 26;
constexpr const char* kShorterText = "lower it, or shorten the prompt";

void check_stops(const std::vector<std::string>& stops) {
  for (const std::string& stop : stops) {
    if (!stop.empty() && first_invalid_utf8(stop) == std::string_view::npos) continue;
    throw Error::fault(ExitCode::usage, "--stop", stop.empty() ? "empty text" : "not valid UTF-8",
                       "give text in UTF-8");
  }
}

std::string read_standard_input() {
  std::string text;
  char buffer[1 << 16];
  for (size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) {
    text.append(buffer, n);
    if (static_cast<int64_t>(text.size()) <= kMostInputBytes) continue;
    throw Error::fault(ExitCode::data, "standard input",
                       fmt::format("more than {} bytes", kMostInputBytes), "give less text");
  }
  if (std::ferror(stdin)) {
    throw system_error(ExitCode::io, "standard input", "read", errno,
                       "give --prompt or --prompt-file");
  }
  return text;
}

/// The prompt, and its name in messages.
std::pair<std::string, std::string> read_prompt(const GenerateArguments& arguments) {
  if (arguments.prompt) return {*arguments.prompt, "--prompt"};
  const std::string& path = arguments.prompt_file;
  if (path == "-") return {read_standard_input(), "standard input"};
  return {open_text_file(path, "check the path").text(kMostInputBytes), path};
}

/// Of sample n, from 0. The first has the seed of the command, so that it is the same without the
/// others. Seeds have 63 bits, as --seed takes them.
uint64_t seed_of_sample(uint64_t seed, int64_t n) {
  return n == 0 ? seed : Rng(seed, "generate.samples").bits(static_cast<uint64_t>(n)) >> 1;
}

void print_now(const std::string& text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    throw standard_output_error(errno);
  }
  flush_standard_output();
}

}  // namespace

int run_generate(const GenerateArguments& arguments) {
  check_stops(arguments.limits.stops);
  if (arguments.samples > 1 && arguments.limits.sampling.temperature == 0) {
    throw Error::fault(ExitCode::usage, "--samples",
                       "greedy decoding (--temperature 0) writes the same text each time",
                       "give a temperature above 0, or --samples 1");
  }
  const auto [text, where] = read_prompt(arguments);
  const Checkpoint checkpoint = load_checkpoint(arguments.checkpoint);
  const RunConfig c = trained_config(checkpoint, arguments.overrides);
  check_incremental_decoding(c.model);
  const Tokenizer tokenizer = open_tokenizer(
      {"--tokenizer", arguments.tokenizer, tokenizer_sha256(checkpoint), run_folder(checkpoint)},
      c);
  const std::optional<int64_t> start = document_start(c, tokenizer);
  const Prompt prompt(tokenizer, start, text, where);

  Precision precision = arguments.precision.value_or(c.train.precision);
  // A run trained in tf32 generates in fp32, unless tf32 is requested.
  if (!arguments.precision && precision == Precision::tf32) precision = Precision::f32;
  const std::unique_ptr<Backend> backend = make_backend(arguments.device, precision, 0);
  std::optional<IncrementalDecoder> model;
  try {
    model.emplace(c.model, c.data.sequence_length, *backend, activation_dtype(precision), start,
                  prompt.longest(arguments.limits));
  } catch (const Error& e) {  // a mechanism does not support texts of that length
    throw e.as(ExitCode::usage, "--max-tokens", kShorterText);
  }
  const ParameterLayout layout(c.model, c.data.sequence_length);
  check_memory(backend->memory(), layout, model->planned_bytes(),
               "memory of the model and its KV cache (--max-tokens)", kShorterText);
  Arena arena;
  const Tensor master_weights = load_master_weights(checkpoint, layout, *backend, arena);
  model->commit(master_weights);
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  const auto show = [terminal](const std::string& part) {
    print_now(terminal ? replace_controls(part) : part);
  };
  const bool several = arguments.samples > 1;
  for (int64_t n = 0; n < arguments.samples; ++n) {
    const uint64_t seed = seed_of_sample(arguments.seed, n);
    if (several) {
      print_now(fmt::format("{}=== sample {} of {}, --seed {} ===\n", n > 0 ? "\n" : "", n + 1,
                            arguments.samples, seed));
    }
    if (arguments.echo.value_or(terminal)) show(text);
    generate(*model, tokenizer, start, prompt, arguments.limits, Rng(seed, "generate"), show);
    if (terminal || several) print_now("\n");
  }
  return 0;
}

Command generate_command(CLI::App& app) {
  const auto arguments = std::make_shared<GenerateArguments>();
  CLI::App* options = app.add_subcommand("generate", "generate text from a prompt");
  options->footer(
      "Prints the continuation in UTF-8. It ends after --max-tokens, before --stop,\n"
      "or where the model ends the document.\n");
  constexpr const char* kModel = "Model and prompt";
  constexpr const char* kSampling = "Sampling";
  constexpr const char* kOutput = "Output";
  add_checkpoint(*options, arguments->checkpoint)->group(kModel);
  // A function, because an empty text is a valid value.
  CLI::Option* prompt =
      options
          ->add_option_function<std::string>(
              "--prompt", [arguments](const std::string& text) { arguments->prompt = text; },
              "text to continue; empty: start a document")
          ->type_name("TEXT")
          ->group(kModel);
  options
      ->add_option("--prompt-file", arguments->prompt_file,
                   "the same from a file, its last newline included; -: standard input (the "
                   "default without --prompt)")
      ->type_name("FILE")
      ->excludes(prompt)
      ->group(kModel);
  add_tokenizer(*options, arguments->tokenizer)->group(kModel);
  add_overrides(*options, arguments->overrides)->group(kModel);
  take_names<Precision>(
      options->add_option("--precision", arguments->precision,
                          "precision of the model (default: as in training, with fp32 for tf32)"),
      {{"fp32", Precision::f32}, {"bf16", Precision::bf16}})
      ->group(kModel);
  take_names(options->add_option("--device", arguments->device,
                                 "device of the model (default: auto, a GPU if there is one)"),
             kDeviceNames)
      ->group(kModel);
  take_integers(options->add_option("--max-tokens", arguments->limits.max_tokens,
                                    "tokens to generate (default: 256)"),
                1, GenerationLimits::kMostTokens)
      ->group(kSampling);
  options->add_option("--stop", arguments->limits.stops, "text to stop before; repeatable")
      ->type_name("TEXT")
      ->take_all()
      ->allow_extra_args(false)  // [END] is not a list
      ->group(kSampling);
  Sampling& s = arguments->limits.sampling;
  take_numbers(options->add_option("--temperature", s.temperature,
                                   "logits are divided by it (default: 0.8); 0: greedy decoding"),
               "0 (greedy decoding) or a number above 0", [](double x) { return x >= 0; })
      ->group(kSampling);
  take_integers(options->add_option("--top-k", s.top_k,
                                    "sample from the N most likely tokens; 0: all (default: 50)"),
                0, INT32_MAX)
      ->group(kSampling);
  take_numbers(options->add_option("--top-p", s.top_p,
                                   "then from the smallest set of most likely tokens with this "
                                   "probability (default: 1)"),
               "a number above 0, 1 at most", [](double x) { return x > 0 && x <= 1; })
      ->group(kSampling);
  take_numbers(options->add_option("--min-p", s.min_p,
                                   "then from tokens with at least this fraction of the highest "
                                   "probability (default: 0)"),
               "a number from 0 to 1", [](double x) { return x >= 0 && x <= 1; })
      ->group(kSampling);
  take_integers(options->add_option("--seed", arguments->seed, "random seed (default: 0)"), 0,
                INT64_MAX)
      ->group(kSampling);
  take_integers(options->add_option("--samples", arguments->samples,
                                    "continuations to write, each below a line with the --seed "
                                    "that writes it alone (default: 1)"),
                1, GenerationLimits::kMostTokens)
      ->group(kOutput);
  options
      ->add_flag_function(
          "--echo,!--no-echo", [arguments](int64_t sign) { arguments->echo = sign > 0; },
          "print the prompt first (default: on a terminal)")
      ->group(kOutput);
  return {options, [arguments] { return run_generate(*arguments); }};
}

}  // namespace bamtrain
