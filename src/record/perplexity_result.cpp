#include "record/perplexity_result.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/input_file.h"
#include "core/json_digest.h"

namespace bamtrain {

namespace {

using nlohmann::json;

constexpr const char* kOfResult = "evaluate again with bamtrain eval --output";
constexpr int64_t kMostResultBytes = int64_t{64} << 20;

/// The member `key` of a row. Empty if it is missing or null, since JSON has no infinity.
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
    // exp of a huge loss was written as null.
    const bool none = row.has("perplexity") && value["perplexity"].is_null();
    at.perplexity = none ? INFINITY : row.number("perplexity");
    if (!(at.perplexity > 0)) row.where().refuse("perplexities above 0", value.dump());
    out.push_back(at);
  }
  return out;
}

/// exp of the mean losses by position.
std::vector<LengthPerplexity> by_position(const JsonObject& result) {
  std::vector<LengthPerplexity> out;
  if (!result.has("positions")) return out;
  const JsonObject positions = result.object("positions");
  const int64_t to = positions.count("to"), step = positions.count("step");
  const json& losses = positions.list("loss");
  if (to < 1 || step < 1 || losses.empty() || losses.size() > kMostPositionMeans ||
      (to - 1) / step + 1 != std::ssize(losses)) {
    positions.where().refuse("a loss for each step of positions, 4096 at most",
                             std::to_string(losses.size()) + " losses");
  }
  for (const json& loss : losses) {
    LengthPerplexity at;
    at.from = std::ssize(out) * step;
    at.length = std::min(to, at.from + step);
    if (!loss.is_null() && !loss.is_number()) positions.where().refuse("losses", loss.dump());
    at.loss = loss.is_null() ? NAN : loss.get<double>();
    at.perplexity = loss.is_null() ? INFINITY : std::exp(at.loss);
    if (!(at.perplexity > 0)) positions.where().refuse("losses", loss.dump());
    out.push_back(at);
  }
  return out;
}

}  // namespace

json perplexity_json(const std::string& path) {
  const InputFile file(path, ExitCode::io, kOfResult);
  return parse_digested_json(file.text(kMostResultBytes), {path, ExitCode::io, kOfResult});
}

PerplexityResult read_perplexity(const json& value, const std::string& where) {
  const JsonObject result(value, {where, ExitCode::io, kOfResult});
  if (result.has("sets")) {
    result.where().refuse("the result of one data set", "those of several, under \"sets\"");
  }
  PerplexityResult out;
  out.step = step_of(result);
  out.training_length = result.count("training_length");
  out.data_fingerprint = result.text("data_fingerprint");
  if (result.has("documents")) out.documents = result.count("documents");
  out.windows = by_length(result, "windows", "length");
  out.last = by_length(result, "last", "length");
  out.bins = by_length(result, "bins", "to");
  out.short_documents = by_length(result, "short", "length");
  out.positions = by_position(result);
  out.packed = result.has("text") && result.text("text") == "packed";
  if (!out.last.empty()) out.last_tokens = result.count("last_tokens");
  return out;
}

}  // namespace bamtrain
