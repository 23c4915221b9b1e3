#include "record/perplexity_result.h"

#include <nlohmann/json.hpp>

#include "core/input_file.h"
#include "core/json.h"

namespace bamtrain {

namespace {

using nlohmann::json;

constexpr const char* kOfResult = "evaluate again with bamtrain eval --output";
constexpr int64_t kMostResultBytes = int64_t{64} << 20;

/// The member `key` of a row; none where there is none, or where it is null: JSON has no infinity.
std::optional<double> number_in(const JsonObject& row, const char* key) {
  if (!row.has(key) || row.value()[key].is_null()) return std::nullopt;
  return row.number(key);
}

std::vector<LengthPerplexity> by_length(const JsonObject& result, const char* protocol,
                                        const char* key) {
  std::vector<LengthPerplexity> out;
  if (!result.has(protocol)) return out;
  for (const json& value : result.list(protocol)) {
    const JsonObject row(value, result.where() / protocol);
    LengthPerplexity at;
    at.length = row.count(key);
    at.error = standard_error(row, "perplexity_error");
    if (row.has("from")) at.from = row.count("from");
    at.bits_per_byte = number_in(row, "bits_per_byte");
    at.loss = number_in(row, "loss").value_or(NAN);
    at.loss_error = standard_error(row, "loss_error");
    if (row.has("tokens")) at.tokens = row.count("tokens");
    if (at.length <= (out.empty() ? 0 : out.back().length)) {
      row.where().refuse("ascending lengths from 1", std::to_string(at.length));
    }
    // exp of a loss beyond all bounds was written as null.
    const bool none = row.has("perplexity") && value["perplexity"].is_null();
    at.perplexity = none ? INFINITY : row.number("perplexity");
    if (!(at.perplexity > 0)) row.where().refuse("perplexities above 0", value.dump());
    out.push_back(at);
  }
  return out;
}

}  // namespace

json perplexity_json(const std::string& path) {
  const InputFile file(path, ExitCode::io, kOfResult);
  return parse_json(file.text(kMostResultBytes), {path, ExitCode::io, kOfResult});
}

PerplexityResult read_perplexity(const json& value, const std::string& where) {
  const JsonObject result(value, {where, ExitCode::io, kOfResult});
  PerplexityResult out;
  out.step = step_of(result);
  out.training_length = result.count("training_length");
  out.data_fingerprint = result.text("data_fingerprint");
  out.windows = by_length(result, "windows", "length");
  out.last = by_length(result, "last", "length");
  out.bins = by_length(result, "bins", "to");
  if (!out.last.empty()) out.last_tokens = result.count("last_tokens");
  return out;
}

}  // namespace bamtrain
