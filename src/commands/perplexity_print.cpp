#include "commands/perplexity_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/clustered_mean.h"
#include "core/holm.h"
#include "core/join.h"
#include "core/paired_difference.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

/// " ± 0.0123" for the error under `key`; "" if it is unknown.
std::string error_text(const ordered_json& row, const char* key, int decimals) {
  if (row[key].is_null()) return "";
  return plus_minus(row[key].get<double>(), decimals);
}

bool is_packed(const ordered_json& result) { return result["text"] == "packed"; }

/// The longest length of the rows.
int64_t longest_of(const ordered_json& result) {
  for (const char* protocol : {"windows", "last", "short"}) {
    if (result.contains(protocol)) return result[protocol].back()["length"].get<int64_t>();
  }
  return result["bins"].back()["to"].get<int64_t>();
}

/// "  difference +1.230 ± 0.080 *" of a row; "" without a difference.
std::string difference_of(const ordered_json& row) {
  if (!row.contains("difference")) return "";
  const ordered_json& d = row["difference"];
  const auto number = [&](const char* key) {
    const bool finite = d[key].is_number() && std::isfinite(d[key].get<double>());
    return finite ? std::optional(d[key].get<double>()) : std::nullopt;
  };
  const std::optional<double> value = number("perplexity"), p = number("p_holm");
  if (!value) return "";
  const bool significant = p && *p < kSignificance;
  return "  difference " + difference_text(*value, number("perplexity_error")) +
         (significant ? " *" : "");
}

/// Explains the differences between lengths, or why there are none.
void explain_differences(const ordered_json& result) {
  const auto length = result["training_length"].get<int64_t>();
  int64_t rows = 0, differences = 0;
  bool trained = false;
  for (const char* protocol : {"windows", "last"}) {
    if (!result.contains(protocol) || result[protocol].size() < 2) continue;
    for (const auto& row : result[protocol]) {
      const bool of_trained = row["length"] == length;
      trained |= of_trained;
      rows += !of_trained;
      differences += row.contains("difference");
    }
  }
  if (rows == 0) return;
  if (!trained) {
    fmt::print("no differences between lengths: --lengths lacks the training length, {}\n", length);
    return;
  }
  if (differences > 0) {
    fmt::print(
        "difference: from the perplexity at the training length, {}, on the same targets, paired "
        "by {}; *: p < {} (two-sided t-test, Holm's correction over the lengths)\n",
        length, is_packed(result) ? "stretch" : "document", kSignificance);
  }
  if (differences < rows) {
    fmt::print("lengths without a difference score other targets: they are not comparable\n");
  }
}

/// Explains what the printed errors include and what they do not.
void explain_errors(bool known, bool unknown, bool packed) {
  if (known) {
    fmt::print("±: standard error over {}; seed variance not included\n",
               packed ? "stretches" : "documents");
  }
  if (unknown) {
    fmt::print("no ±: one {}, so the standard error is unknown\n", packed ? "stretch" : "document");
  }
}

std::string heading(const ordered_json& result, const std::string& protocol) {
  if (protocol == "windows") return "perplexity over windows of each length, all positions";
  if (protocol == "short") return "perplexity of whole documents, by their length";
  return fmt::format("perplexity of the last {} tokens of each window",
                     result["last_tokens"].get<int64_t>());
}

/// "12 documents".
std::string clusters_text(const ordered_json& row) {
  const bool stretches = row.contains("stretches");
  const auto n = row[stretches ? "stretches" : "documents"].get<int64_t>();
  if (stretches) return fmt::format("{} {}", n, n == 1 ? "stretch" : "stretches");
  return fmt::format("{} {}", n, n == 1 ? "document" : "documents");
}

void print_perplexity_row(const ordered_json& row, const std::string& place) {
  const std::string bits =
      row.contains("bits_per_byte")
          ? fmt::format(", {:.4f} bits per byte", row["bits_per_byte"].get<double>())
          : "";
  fmt::print("  {}  perplexity {:>9.3f}{}  loss {:.4f}{}  ({} tokens, {}{}){}\n", place,
             row["perplexity"].get<double>(), error_text(row, "perplexity_error", 3),
             row["loss"].get<double>(), error_text(row, "loss_error", 4),
             row["tokens"].get<int64_t>(), clusters_text(row), bits, difference_of(row));
}

/// "a, b" for a list, else the text of the value.
std::string value_text(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::vector<std::string> words;
  for (const auto& v : value) words.push_back(value_text(v));
  return join(words, ",");
}

}  // namespace

void print_perplexities(const ordered_json& result) {
  bool known = false, unknown = false;
  const auto note = [&](const ordered_json& row) {
    (row["loss_error"].is_null() ? unknown : known) = true;
  };
  if (is_packed(result)) {
    fmt::print("packed text of {} tokens\n", result["tokens"].get<int64_t>());
  } else {
    const auto longest = longest_of(result);
    fmt::print("{} of {} documents, each of {}\n", result["documents"].get<int64_t>(),
               result["all_documents"].get<int64_t>(),
               result["text"] == "short" ? fmt::format("2 to {} tokens", longest)
                                         : fmt::format("more than {} tokens", longest));
  }
  for (const char* protocol : {"windows", "last", "short"}) {
    if (!result.contains(protocol)) continue;
    fmt::print("{}\n", heading(result, protocol));
    for (const auto& row : result[protocol]) {
      print_perplexity_row(row,
                           row.contains("from")
                               ? fmt::format("{:>7} to {:>7} tokens", row["from"].get<int64_t>(),
                                             row["length"].get<int64_t>())
                               : fmt::format("length {:>7}", row["length"].get<int64_t>()));
      note(row);
    }
  }
  if (result.contains("bins")) {
    fmt::print("perplexity by position in one long window\n");
    for (const auto& row : result["bins"]) {
      fmt::print("  {:>7} to {:>7}  perplexity {:>9.3f}{}\n", row["from"].get<int64_t>(),
                 row["to"].get<int64_t>(), row["perplexity"].get<double>(),
                 error_text(row, "perplexity_error", 3));
      note(row);
    }
  }
  explain_errors(known, unknown, is_packed(result));
  explain_differences(result);
}

void print_protocol(const ordered_json& settings) {
  std::string text;
  for (const auto& [key, value] : settings.items()) {
    if (key == "name" || key == "apart") continue;
    std::string option = key;
    std::replace(option.begin(), option.end(), '_', '-');
    text += fmt::format(" --{} {}", option, value_text(value));
  }
  fmt::print("protocol {}:{}{}\n", settings["name"].get<std::string>(), text,
             settings.value("apart", false) ? ", windows that do not overlap" : "");
}

}  // namespace bamtrain
