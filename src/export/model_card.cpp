#include "export/model_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/input_file.h"
#include "core/line_reader.h"
#include "core/markdown.h"
#include "core/with_commas.h"
#include "record/perplexity_result.h"
#include "record/run_data.h"

namespace bamtrain {
namespace {

/// A plus-minus sign and a standard error; "" if it is missing or unknown.
std::string error_text(const StandardError& error, int decimals) {
  return error && std::isfinite(*error) ? fmt::format(" \u00b1 {:.{}f}", *error, decimals) : "";
}

bool exists(const std::string& path) {
  std::error_code error;  // if this check fails, opening the file reports the reason
  return std::filesystem::exists(path, error) || error;
}

struct ValidationLoss {
  double loss = 0;
  StandardError error = std::nullopt;
};

/// The validation loss that the run wrote at this step. The file may be in the middle of a write,
/// but an incomplete line is not of this step, whose line precedes the checkpoint.
std::optional<ValidationLoss> validation_loss(const Checkpoint& checkpoint) {
  const std::string path = run_folder(checkpoint) + "/metrics.jsonl";
  if (!exists(path)) return std::nullopt;
  const InputFile file(path, ExitCode::io, "check the file and its permissions");
  LineReader lines(file);
  int64_t number = 0;
  for (std::string_view text; lines.next(&text);) {
    ++number;
    if (text.find("\"validation_loss\"") == std::string_view::npos) continue;
    const nlohmann::json value = parse_run_line(text, path, number);
    const JsonObject line(value, place_of_line(path, number));
    if (step_of(line) != checkpoint.step || !line.has("validation_loss")) continue;
    return ValidationLoss{line.number("validation_loss"),
                          standard_error(line, "validation_loss_error")};
  }
  return std::nullopt;
}

/// perplexity.json, if it is of this step and these mechanisms.
std::optional<PerplexityResult> perplexities(const Checkpoint& checkpoint,
                                             const nlohmann::json& attention) {
  const std::string path = run_folder(checkpoint) + "/perplexity.json";
  if (!exists(path)) return std::nullopt;
  const nlohmann::json j = perplexity_json(path);
  const PerplexityResult result = read_perplexity(j, path);
  bool of_this = result.step == checkpoint.step;
  for (const char* part : {"prior", "scale", "normalizer"}) {
    of_this = of_this && j.value(part, attention[part]) == attention[part];
  }
  return of_this ? std::optional(result) : std::nullopt;
}

/// The table of one protocol; empty if there are no rows.
std::string perplexity_table(const std::vector<LengthPerplexity>& rows, const std::string& title) {
  if (rows.empty()) return "";
  if (rows.size() > kMostLengthTicks) {
    return fmt::format(
        "\n{}\n\n{} lengths from {} to {}, which `perplexity.json` of the run has.\n", title,
        rows.size(), rows.front().length, rows.back().length);
  }
  std::string text =
      fmt::format("\n{}\n\n| length | perplexity | loss | tokens |\n|--:|--:|--:|--:|\n", title);
  for (const LengthPerplexity& row : rows) {
    text +=
        fmt::format("| {} | {:.3f}{} | {:.4f}{} | {} |\n", row.length, row.perplexity,
                    error_text(row.error, 3), row.loss, error_text(row.loss_error, 4), row.tokens);
  }
  return text;
}

std::string tokenizer_text(const CardTokenizer& t) {
  return fmt::format("{}, {} pieces: `{}`, SHA-256 `{}`", t.kind, with_commas(t.pieces), t.file,
                     t.sha256);
}

std::string use_text(const CardOptions& options) {
  const bool tokenizer = options.tokenizer && options.tokenizer->left_out.empty();
  const char* trust = options.own_code ? ", trust_remote_code=True" : "";
  std::string text = fmt::format(
      "```python\nfrom transformers import AutoModelForCausalLM{}\n\n"
      "model = AutoModelForCausalLM.from_pretrained(\"this folder\"{})\n",
      tokenizer ? ", AutoTokenizer" : "", trust);
  if (tokenizer) {
    text += fmt::format("tokenizer = AutoTokenizer.from_pretrained(\"this folder\"{})\n", trust);
  }
  text += "```\n";
  if (options.tokenizer && !tokenizer) {
    text += fmt::format(
        "\n`sentencepiece.model` is for the sentencepiece library. There is no tokenizer.json with "
        "its ids, since {}.\n",
        options.tokenizer->left_out);
  } else if (tokenizer) {
    text +=
        "\nAs in training, the text of a special token is encoded like any other text. The "
        "tokenizers library encodes it as the special token by default. To avoid that, set "
        "`tokenizer.encode_special_tokens = True` after "
        "`tokenizer = Tokenizer.from_file(\"tokenizer.json\")`.\n";
  }
  return text;
}

}  // namespace

std::string model_card(const Checkpoint& checkpoint, const RunConfig& c,
                       const nlohmann::ordered_json& resolved, const ParameterLayout& layout,
                       const CardOptions& options) {
  const int64_t tokens = checkpoint.state.value("tokens", int64_t{0});
  int64_t parameters = 0;
  for (const Parameter& p : layout.all()) parameters += p.size;

  std::string text =
      "---\nlibrary_name: transformers\nlicense: unknown\npipeline_tag: text-generation\ntags:\n"
      "- bamtrain\n---\n\n";
  text += fmt::format("# {}\n\nA decoder-only language model, trained by bamtrain.\n\n",
                      c.name.empty() ? "A model" : markdown_text(c.name));
  text += "| | |\n|---|---|\n";
  const auto row = [&text](const char* what, const std::string& value) {
    text += fmt::format("| {} | {} |\n", what, value);
  };
  row("parameters", with_commas(parameters));
  row("prior", c.model.attention.prior.names());
  row("logit scale", c.model.attention.scale.name());
  row("normalizer", c.model.attention.normalizer.name());
  row("training length", with_commas(c.data.sequence_length) + " tokens");
  row("steps", with_commas(checkpoint.step) + " of " + with_commas(c.train.steps));
  row("tokens", with_commas(tokens));
  if (const auto last = options.as_trained ? validation_loss(checkpoint) : std::nullopt) {
    const double perplexity = std::exp(last->loss);
    StandardError of_perplexity = last->error;
    if (of_perplexity) *of_perplexity *= perplexity;
    row("validation loss",
        fmt::format("{:.4f}{} (perplexity {:.2f}{})", last->loss, error_text(last->error, 4),
                    perplexity, error_text(of_perplexity, 2)));
  }

  row("tokenizer", options.tokenizer ? tokenizer_text(*options.tokenizer) : "not in this folder");
  row("licence of the weights",
      "unknown: it follows from the text that they were trained on, which this card does not know");

  if (const auto of = perplexities(checkpoint, nlohmann::json(resolved["model"]["attention"]))) {
    const std::string tables =
        perplexity_table(of->windows, "Windows of each length, all positions:") +
        perplexity_table(of->last,
                         fmt::format("The last {} tokens of each window:", of->last_tokens));
    if (!tables.empty()) text += "\n## Perplexity against length\n" + tables;
  }

  text += "\n## Use\n\n" + use_text(options);
  if (!options.own_code && c.model.attention.document_mask) {
    text +=
        "\nIn training attention stayed within documents, which this class does not know: give it "
        "one document per row.\n";
  }
  nlohmann::ordered_json shown = nlohmann::ordered_json::object();
  for (const char* part : {"model", "optimizer", "schedule", "train"}) shown[part] = resolved[part];
  return text + "\n## Configuration\n\n```json\n" + shown.dump(2) + "\n```\n";
}

}  // namespace bamtrain
