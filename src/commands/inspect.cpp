// bamtrain inspect: a checkpoint's attention to a prompt, as a page and as tensors.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "commands/beginning.h"
#include "commands/command.h"
#include "commands/load_checkpoint.h"
#include "core/checked.h"
#include "core/durable_file.h"
#include "core/option_value.h"
#include "core/text_file.h"
#include "core/utf8.h"
#include "eval/generate.h"
#include "inspect/inspection.h"
#include "inspect/inspection_file.h"
#include "inspect/page.h"
#include "ops/cpu/cpu.h"
#include "record/logs.h"
#include "record/run_data.h"
#include "record/run_files.h"
#include "record/run_text.h"
#include "report/axis.h"
#include "report/page.h"

namespace bamtrain {

namespace {

constexpr int64_t kMostPromptBytes = int64_t{1} << 20;
constexpr const char* kShorterPrompt = "shorten the prompt, or name fewer --layers";

struct InspectArguments {
  std::string checkpoint, tokenizer, prompt_file;
  std::optional<std::string> prompt, ids, layers;
  std::string output = "inspect";
  std::vector<std::string> overrides;
};

/// Parses "1,2,3": integers from 0 to below `end`, described by `what`. Throws Error
/// (ExitCode::usage) at `option`.
std::vector<int64_t> read_integers(const std::string& text, const std::string& option, int64_t end,
                                   const std::string& what) {
  std::vector<int64_t> out;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, comma - begin);
    int64_t x = -1;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), x);
    if (error != std::errc() || rest != word.data() + word.size() || x < 0 || x >= end) {
      throw Error(ExitCode::usage, option,
                  fmt::format("comma-separated integers from 0 to {}, {}", end - 1, what),
                  word.empty() ? "an empty entry" : word, "");
    }
    out.push_back(x);
    begin = comma + 1;
  }
  return out;
}

void require_prompt(const InspectArguments& arguments) {
  const int given = (arguments.prompt ? 1 : 0) + (arguments.prompt_file.empty() ? 0 : 1) +
                    (arguments.ids ? 1 : 0);
  if (given == 1) return;
  throw Error::fault(ExitCode::usage, "inspect",
                     given == 0 ? "missing prompt" : "more than one prompt",
                     "give one of --prompt, --prompt-file and --ids");
}

/// Refuses other files: a typo could replace a model, or anything else.
void require_replaceable_inspection(const std::string& page, const std::string& tensors) {
  constexpr int64_t kBeginning = 1024;
  const auto refuse = [](const std::string& path) {
    throw Error::fault(ExitCode::usage, "--output",
                       path + " exists and is not a file of bamtrain inspect",
                       "choose another name, or remove the file");
  };
  std::error_code error;
  if (std::filesystem::exists(tensors, error) && !is_inspection_file(tensors)) refuse(tensors);
  const std::string text = beginning_of(page, kBeginning);
  if (!text.empty() && !is_html_page(text, "inspect")) refuse(page);
}

/// The prompt's ids with their names, and the id that begins documents.
struct Tokens {
  std::vector<int32_t> ids;
  std::string text;  // as displayed
  std::vector<std::string> names;
  std::optional<int64_t> document_start;
};

Tokens ids_of(const InspectArguments& arguments, const RunConfig& c, const Checkpoint& checkpoint) {
  Tokens t;
  const std::string what = "ids of the model's vocabulary";
  for (const int64_t id : read_integers(*arguments.ids, "--ids", c.model.vocab, what)) {
    t.ids.push_back(static_cast<int32_t>(id));
    t.names.push_back((t.names.empty() ? "" : " ") + std::to_string(id));
    t.text += t.names.back();
  }
  if (c.model.attention.document_mask) {
    t.document_start = document_start(c, tokenizer_sha256(checkpoint));
  }
  return t;
}

Tokens prompt_tokens(const InspectArguments& arguments, const RunConfig& c,
                     const Checkpoint& checkpoint) {
  const bool given = arguments.prompt.has_value();
  const std::string where = given ? "--prompt" : arguments.prompt_file;
  const std::string text =
      given ? *arguments.prompt : open_text_file(where, "check the path").text(kMostPromptBytes);
  if (text.empty()) {
    throw Error::fault(ExitCode::usage, where, "empty text", "give some text, or --ids");
  }
  const Tokenizer tokenizer =
      open_tokenizer({"--tokenizer", arguments.tokenizer, tokenizer_sha256(checkpoint),
                      run_folder(checkpoint), ", or give --ids"},
                     c);
  Tokens t;
  t.document_start = document_start(c, tokenizer);
  t.ids = Prompt(tokenizer, t.document_start, text, where).ids;
  const bool begins = t.document_start && t.ids[0] == *t.document_start;
  t.text = (begins ? tokenizer.piece(t.ids[0]) : "") + replace_invalid_utf8(text);
  bool first = true;
  for (const int32_t id : t.ids) {
    const std::string bytes = replace_invalid_utf8(tokenizer.bytes(id, first));
    // A control token has no text, so it shows its name.
    t.names.push_back(bytes.empty() ? tokenizer.piece(id) : bytes);
    first = bytes.empty() && first;
  }
  return t;
}

std::vector<int64_t> layers_of(const InspectArguments& arguments, const ModelConfig& model) {
  std::vector<int64_t> layers;
  if (arguments.layers) {
    layers = read_integers(*arguments.layers, "--layers", model.layers, "layers of the model");
    const std::set<int64_t> each(layers.begin(), layers.end());
    return {each.begin(), each.end()};
  }
  for (int64_t l = 0; l < model.layers; ++l) layers.push_back(l);
  return layers;
}

/// Values in the form of metrics.jsonl.
MechanismValues mechanism_values(const ParameterLayout& layout, const Tensor& master_weights) {
  MechanismValues out;
  for (const Parameter& p : layout.all()) {
    if (!is_mechanism(p.group) || p.size > static_cast<int64_t>(kMostOfALine)) continue;
    const float* const values = master_weights.ptr<float>() + p.offset;
    out[p.name].assign(values, values + p.size);
  }
  return out;
}

void print_heads(const Inspection& found) {
  fmt::print("{:>5}{:>6}{:>10}{:>10}{:>10}{:>10}\n", "layer", "head", "entropy", "support",
             "centroid", "largest");
  for (const LayerView& view : found.layers) {
    for (int64_t h = 0; h < view.H; ++h) {
      const HeadSummary s = summary_of(view, h);
      fmt::print("{:>5}{:>6}{:>10.3f}{:>10.1f}{:>10.1f}{:>10.3f}\n", view.layer, h, s.entropy,
                 s.nonzero_keys, s.distance, s.largest);
    }
  }
}

/// Throws Error (ExitCode::nonfinite) if a loss of the prompt is not finite. The last token has no
/// target.
void require_numbers(const Inspection& found, const std::string& checkpoint) {
  for (size_t i = 0; i + 1 < found.losses.size(); ++i) {
    if (std::isfinite(found.losses[i])) continue;
    throw Error(ExitCode::nonfinite, checkpoint, "finite losses of the prompt",
                fmt::format("NaN or infinity at token {}", i),
                "the page and the tensors are written; try an earlier checkpoint");
  }
}

int run_inspect(const InspectArguments& arguments) {
  require_prompt(arguments);
  if (arguments.output.empty()) {
    throw Error::fault(ExitCode::usage, "--output", "empty name",
                       "give the prefix of the files' names");
  }
  const std::string page_path = arguments.output + ".html";
  const std::string tensors_path = arguments.output + ".safetensors";
  require_replaceable_inspection(page_path, tensors_path);
  const Checkpoint checkpoint = load_checkpoint(arguments.checkpoint);
  const RunConfig c = trained_config(checkpoint, arguments.overrides);
  check_inspectable(c.model);
  InspectionRequest request = {
      c.model, c.data.sequence_length, {}, {}, layers_of(arguments, c.model)};
  Tokens tokens =
      arguments.ids ? ids_of(arguments, c, checkpoint) : prompt_tokens(arguments, c, checkpoint);
  const auto T = std::ssize(tokens.ids);
  const std::string option = arguments.ids      ? "--ids"
                             : arguments.prompt ? "--prompt"
                                                : "--prompt-file";
  if (T > kMostInspected) {
    throw Error(ExitCode::usage, option, fmt::format("at most {} tokens", kMostInspected),
                std::to_string(T), "shorten it");
  }
  request.ids = std::move(tokens.ids);
  request.document_start = tokens.document_start;

  const ParameterLayout layout(c.model, c.data.sequence_length);
  int64_t bytes = 0;
  try {
    bytes = inspection_bytes(request);
  } catch (const Error& e) {  // a mechanism does not support a text of that length
    throw e.as(ExitCode::usage, option, "shorten it");
  }
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  check_memory(backend->memory(), layout, checked_add(bytes, 4 * kMostMapBytes, option),
               "memory of the model, its attention and the page (" + option + ")", kShorterPrompt);
  AtomicFile page(page_path);  // opened first, so that an unwritable path fails before the work
  Arena arena;
  const Tensor master_weights = load_master_weights(checkpoint, layout, *backend, arena);
  const Inspection found = inspect(request, master_weights);

  const NormalizerChoice& normalizer = c.model.attention.normalizer;
  InspectedModel model = {
      checkpoint.folder,
      {{"prior", c.model.attention.prior.names()},
       {"scale", c.model.attention.scale ? c.model.attention.scale.name() : "none"},
       {"normalizer", normalizer ? normalizer.name() : "softmax"},
       {"layers, heads, width",
        fmt::format("{}, {}, {}", c.model.layers, c.model.heads, c.model.width)},
       {"tokens of the prompt", std::to_string(T)},
       {"training length", std::to_string(c.data.sequence_length)},
       {"step", std::to_string(checkpoint.step)}},
      std::move(tokens.text),
      std::move(tokens.names),
      mechanism_values(layout, master_weights)};
  std::map<std::string, std::string> facts;
  for (const auto& [name, value] : model.facts) facts[name] = value;
  facts["checkpoint"] = replace_invalid_utf8(checkpoint.folder);
  write_inspection(tensors_path, request, found, facts);
  page.write(inspection_html(model, request, found));
  page.commit();
  print_heads(found);
  fmt::print("page {}\ntensors {}\n", printable(page_path), printable(tensors_path));
  require_numbers(found, checkpoint.folder);
  return 0;
}

}  // namespace

Command inspect_command(CLI::App& app) {
  const auto arguments = std::make_shared<InspectArguments>();
  CLI::App* options =
      app.add_subcommand("inspect", "show a checkpoint's attention to a prompt, by layer and head");
  options->footer(
      "Writes a page to read, OUTPUT.html, and its numbers, OUTPUT.safetensors. Runs\n"
      "on the CPU in fp32.\n");
  constexpr const char* kModel = "Model";
  constexpr const char* kPrompt = "Prompt (one of these)";
  add_checkpoint(*options, arguments->checkpoint)->group(kModel);
  add_tokenizer(*options, arguments->tokenizer)->group(kModel);
  add_overrides(*options, arguments->overrides)->group(kModel);
  // Functions, because an empty text is a valid value.
  options
      ->add_option_function<std::string>(
          "--prompt", [arguments](const std::string& text) { arguments->prompt = text; },
          fmt::format("text of at most {} tokens", kMostInspected))
      ->type_name("TEXT")
      ->group(kPrompt);
  options->add_option("--prompt-file", arguments->prompt_file, "the same from a file")
      ->type_name("FILE")
      ->group(kPrompt);
  options
      ->add_option_function<std::string>(
          "--ids", [arguments](const std::string& text) { arguments->ids = text; },
          "comma-separated token ids, for models without a tokenizer")
      ->type_name("ID,...")
      ->group(kPrompt);
  constexpr const char* kOutput = "Output";
  options
      ->add_option_function<std::string>(
          "--layers", [arguments](const std::string& text) { arguments->layers = text; },
          "comma-separated layers to show, from 0 (default: all)")
      ->type_name("N,...")
      ->group(kOutput);
  options
      ->add_option("--output", arguments->output, "prefix of the files' names (default: inspect)")
      ->type_name("NAME")
      ->group(kOutput);
  return {options, [arguments] { return run_inspect(*arguments); }};
}

}  // namespace bamtrain
