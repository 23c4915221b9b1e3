#include "record/perplexity_result.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/abbreviate.h"
#include "core/input_file.h"
#include "core/json_digest.h"

namespace bamtrain {

namespace {

using nlohmann::json;

constexpr const char* kOfResult = "evaluate again with bamtrain eval --output";
constexpr int64_t kMostResultBytes = int64_t{64} << 20;
constexpr int64_t kMostOfADocument = int64_t{1} << 36;  // so that no sum of counts overflows

/// The member `key` of a row. Empty if it is missing or null, since JSON has no infinity.
std::optional<double> number_in(const JsonObject& row, const char* key) {
  if (!row.has(key) || row.value()[key].is_null()) return std::nullopt;
  return row.number(key);
}

/// The numbers of a text "32 64 32", which must be finite.
template <class Number>
std::vector<Number> numbers_in(const std::string& text, const JsonPlace& where) {
  std::vector<Number> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    Number value = 0;
    const auto [after, error] = std::from_chars(at, end, value);
    const bool ended = after == end || *after == ' ';
    if (error != std::errc() || !ended || !std::isfinite(static_cast<double>(value))) {
      where.refuse("numbers separated by spaces", abbreviate(text));
    }
    out.push_back(value);
    at = after == end ? end : after + 1;
  }
  return out;
}

/// Counts of a row's targets by document, by the digest of the targets.
using TargetCounts = std::map<std::string, std::vector<int64_t>>;

TargetCounts target_counts(const JsonObject& result) {
  TargetCounts out;
  if (!result.has("target_counts")) return out;
  const JsonObject all = result.object("target_counts");
  for (const auto& [targets, text] : all.value().items()) {
    const JsonPlace place = all.where() / targets;
    out[targets] = numbers_in<int64_t>(all.text(targets.c_str()), place);
    for (const int64_t count : out[targets]) {
      if (count >= 1 && count <= kMostOfADocument) continue;
      place.refuse("counts from 1 to 2^36", std::to_string(count));
    }
  }
  return out;
}

/// Reads what pairs the row with others: "targets" and "sums".
void read_targets(const JsonObject& row, const TargetCounts& all, LengthPerplexity* at) {
  if (!row.has("targets")) return;
  at->targets = row.text("targets");
  const auto counts = all.find(at->targets);
  if (counts == all.end()) {
    (row.where() / "targets").refuse("targets of target_counts", abbreviate(at->targets));
  }
  const JsonPlace place = row.where() / "sums";
  const auto sums = numbers_in<double>(row.text("sums"), place);
  if (sums.size() != counts->second.size() || sums.empty()) {
    place.refuse("a sum for each of " + std::to_string(counts->second.size()) + " counts",
                 std::to_string(sums.size()));
  }
  for (size_t c = 0; c < sums.size(); ++c) {
    at->clusters.push_back({sums[c], counts->second[c]});
  }
}

std::vector<LengthPerplexity> by_length(const JsonObject& result, const char* protocol,
                                        const char* key, const TargetCounts& counts) {
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
    read_targets(row, counts, &at);
    out.push_back(std::move(at));
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

bool have_same_targets(const LengthPerplexity& a, const LengthPerplexity& b) {
  return !a.targets.empty() && a.targets == b.targets &&
         std::equal(a.clusters.begin(), a.clusters.end(), b.clusters.begin(), b.clusters.end(),
                    [](const Cluster& x, const Cluster& y) { return x.count == y.count; });
}

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
  const TargetCounts counts = target_counts(result);
  out.windows = by_length(result, "windows", "length", counts);
  out.last = by_length(result, "last", "length", counts);
  out.bins = by_length(result, "bins", "to", counts);
  out.short_documents = by_length(result, "short", "length", counts);
  out.positions = by_position(result);
  out.packed = result.has("text") && result.text("text") == "packed";
  if (!out.last.empty()) out.last_tokens = result.count("last_tokens");
  return out;
}

}  // namespace bamtrain
