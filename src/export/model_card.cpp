#include "export/model_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/json.h"
#include "record/run_data.h"

namespace bamtrain {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxPerplexity = int64_t{16} << 20;

/// "1,234,567".
std::string with_commas(int64_t n) {
  std::string s = std::to_string(n);
  for (size_t at = s.size(); at > 3; at -= 3) s.insert(at - 3, ",");
  return s;
}

double number_at(const Json& object, const char* key) {
  const Json v = object.value(key, Json());
  return v.is_number() ? v.get<double>() : NAN;
}

/// A plus-minus sign and a standard error; "" where there is none or it is unknown.
std::string error_text(double error, int decimals) {
  return std::isfinite(error) ? fmt::format(" \u00b1 {:.{}f}", error, decimals) : "";
}

/// The validation loss that the run wrote at this step. The file may be in the middle of a write: a
/// line that is not whole is not one of this step, which the checkpoint followed.
std::optional<Json> validation_line(const Checkpoint& checkpoint) {
  std::ifstream in(run_folder(checkpoint) + "/metrics.jsonl");
  for (std::string text; std::getline(in, text);) {
    if (text.find("validation_loss") == std::string::npos) continue;
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object() || line.value("step", Json()) != Json(checkpoint.step)) continue;
    const Json loss = line.value("validation_loss", Json());
    if (loss.is_number()) return line;
  }
  return std::nullopt;
}

/// perplexity.json where it is of this step and of these mechanisms; null otherwise.
Json perplexities(const Checkpoint& checkpoint, const Json& attention) {
  const std::string path = run_folder(checkpoint) + "/perplexity.json";
  const std::string remedy = "remove it, or evaluate again";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return nullptr;
  Json j = parse_json(InputFile(path, ExitCode::checkpoint, remedy).text(kMaxPerplexity),
                      {path, ExitCode::checkpoint, remedy});
  bool of_this = j.is_object() && j.value("step", Json()) == Json(checkpoint.step);
  for (const char* part : {"prior", "scale", "normalizer"}) {
    of_this = of_this && j.value(part, attention[part]) == attention[part];
  }
  return of_this ? j : Json(nullptr);
}

/// One protocol's table; empty where there are no such rows.
std::string perplexity_table(const Json& rows, const std::string& title) {
  if (!rows.is_array() || rows.empty()) return "";
  std::string text =
      fmt::format("\n{}\n\n| length | perplexity | loss | tokens |\n|--:|--:|--:|--:|\n", title);
  for (const Json& row : rows) {
    if (!row.is_object()) continue;
    text += fmt::format("| {:.0f} | {:.3f}{} | {:.4f}{} | {:.0f} |\n", number_at(row, "length"),
                        number_at(row, "perplexity"),
                        error_text(number_at(row, "perplexity_error"), 3), number_at(row, "loss"),
                        error_text(number_at(row, "loss_error"), 4), number_at(row, "tokens"));
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
        "\n`sentencepiece.model` is for the sentencepiece library. transformers has no tokenizer "
        "with its ids, since {}.\n",
        options.tokenizer->left_out);
  }
  return text;
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20; }, ' ');
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
                      c.name.empty() ? "A model" : one_line(c.name));
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
  if (const auto line = options.as_trained ? validation_line(checkpoint) : std::nullopt) {
    const double loss = number_at(*line, "validation_loss"), perplexity = std::exp(loss);
    const double error = number_at(*line, "validation_loss_error");
    row("validation loss", fmt::format("{:.4f}{} (perplexity {:.2f}{})", loss, error_text(error, 4),
                                       perplexity, error_text(perplexity * error, 2)));
  }

  row("tokenizer", options.tokenizer ? tokenizer_text(*options.tokenizer) : "none in this folder");
  row("licence of the weights",
      "unknown: it follows from the text that they were trained on, which this card does not know");

  if (const Json j = perplexities(checkpoint, Json(resolved["model"]["attention"])); !j.is_null()) {
    const std::string tables =
        perplexity_table(j.value("windows", Json()), "Windows of each length, all positions:") +
        perplexity_table(
            j.value("last", Json()),
            "The last " + j.value("last_tokens", Json()).dump() + " tokens of each window:");
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
