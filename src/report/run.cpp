#include "report/run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/abbreviate.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/json.h"
#include "core/line_reader.h"

namespace bamtrain {

namespace {

using nlohmann::json;

constexpr const char* kOfLine = "restore the file from a copy, or remove the line";
constexpr const char* kOfResult = "evaluate again with bamtrain eval --output";
constexpr int64_t kMostResultBytes = int64_t{64} << 20;  // of perplexity.json

/// A place in a file, and what to do about it where it is damaged.
struct Place {
  Place(const std::string& where, const char* what_to_do = kOfLine)
      : text(where), remedy(what_to_do) {}
  Place operator/(const std::string& part) const { return {text + ": " + part, remedy}; }

  std::string text;
  const char* remedy;
};

[[noreturn]] void refuse(const Place& where, const std::string& expected,
                         const std::string& found) {
  throw Error(ExitCode::io, where.text, expected, abbreviate(found), where.remedy);
}

/// The member `key` of `object`, of a type that `holds`.
const json& member(const json& object, const char* key, bool (json::*holds)() const noexcept,
                   const char* type, const Place& where) {
  const auto it = object.find(key);
  if (it == object.end() || !((*it).*holds)()) {
    refuse(where / key, type, it == object.end() ? "no such member" : it->dump());
  }
  return *it;
}

double number(const json& object, const char* key, const Place& where) {
  return member(object, key, &json::is_number, "a number", where);
}

double number_or_none(const json& object, const char* key, const Place& where) {
  return object.contains(key) ? number(object, key, where) : NAN;
}

StandardError standard_error(const json& object, const char* key, const Place& where) {
  if (!object.contains(key)) return std::nullopt;
  if (object[key].is_null()) return NAN;
  const double error = number(object, key, where);
  if (error < 0) refuse(where / key, "0 or more", object[key].dump());
  return error;
}

std::string text(const json& object, const char* key, const Place& where) {
  return member(object, key, &json::is_string, "a string", where);
}

int64_t count(const json& object, const char* key, const Place& where) {
  const json& value =
      member(object, key, &json::is_number_unsigned, "an integer, 0 or more", where);
  const uint64_t n = value;
  if (n > INT64_MAX) refuse(where / key, "an integer below 2^63", value.dump());
  return static_cast<int64_t>(n);
}

MetricsLine metrics_line(const json& line, const Place& where) {
  return {count(line, "step", where),
          number(line, "tokens", where),
          number(line, "loss", where),
          number(line, "lr", where),
          number(line, "grad_norm", where),
          number(line, "tokens_per_second", where),
          number_or_none(line, "validation_loss", where),
          number_or_none(line, "seconds", where),
          number_or_none(line, "matrix_rate_share", where),
          standard_error(line, "validation_loss_error", where)};
}

std::vector<double> numbers(const json& values, const Place& where) {
  const bool all = values.is_array() && std::all_of(values.begin(), values.end(),
                                                    [](const json& v) { return v.is_number(); });
  if (!all) refuse(where, "a list of numbers", values.dump());
  return values;
}

MechanismValues mechanism_values(const json& parameters, const Place& where) {
  MechanismValues out;
  for (const auto& [name, values] : parameters.items()) {
    out[name] = numbers(values, where / "parameters" / name);
  }
  return out;
}

AttentionRecord attention_record(const json& attention, const Place& where) {
  const auto by_layer = [&](const char* key) {
    HeadMeans out;
    for (const json& heads : member(attention, key, &json::is_array, "a list of layers", where)) {
      out.push_back(numbers(heads, where / key));
    }
    return out;
  };
  AttentionRecord record = {
      count(attention, "windows", where), by_layer("entropy"), by_layer("support"), {}};
  if (!attention.contains("live_tiles")) return record;  // of an earlier program
  record.live_tiles = by_layer("live_tiles");
  for (const std::vector<double>& heads : record.live_tiles) {
    for (double share : heads) {
      if (!(share >= 0 && share <= 1)) {
        refuse(where / "live_tiles", "shares from 0 to 1", json(share).dump());
      }
    }
  }
  return record;
}

std::vector<LengthPerplexity> by_length(const json& result, const char* protocol, const char* key,
                                        const Place& where) {
  std::vector<LengthPerplexity> out;
  if (!result.contains(protocol)) return out;
  for (const json& row : member(result, protocol, &json::is_array, "a list", where)) {
    const Place place = where / protocol;
    if (!row.is_object()) refuse(place, "objects", row.dump());
    const LengthPerplexity at = {count(row, key, place), 0,
                                 standard_error(row, "perplexity_error", place)};
    if (at.length <= (out.empty() ? 0 : out.back().length)) {
      refuse(place, "ascending lengths from 1", std::to_string(at.length));
    }
    out.push_back(at);
    // JSON has no infinity: exp of a loss beyond all bounds was written as null.
    const bool none = row.contains("perplexity") && row["perplexity"].is_null();
    out.back().perplexity = none ? INFINITY : number(row, "perplexity", place);
    if (!(out.back().perplexity > 0)) refuse(place, "perplexities above 0", row.dump());
  }
  return out;
}

/// Whether there is such a file; one in a folder that cannot be searched shows when it is opened.
bool present(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) || error;
}

}  // namespace

void JsonLines::read(const std::function<void(const json&, const std::string&)>& line) {
  if (!present(path_)) return;
  const InputFile file(path_, ExitCode::io, "check the file's permissions");
  LineReader lines(file, bytes_);
  for (std::string_view text; lines.next(&text);) {
    const std::string where = path_ + ":" + std::to_string(lines_ + 1);
    const json value = json::parse(text, nullptr, false);
    if (!value.is_object()) refuse(where, "a JSON object", std::string(text));
    line(value, where);
    ++lines_;
    bytes_ = lines.offset();
  }
}

PerplexityResult read_perplexity(const json& result, const std::string& file) {
  const Place where(file, kOfResult);
  if (!result.is_object()) refuse(where, "a JSON object", result.dump());
  PerplexityResult out;
  out.step = count(result, "step", where);
  out.training_length = count(result, "training_length", where);
  out.data_fingerprint = text(result, "data_fingerprint", where);
  out.windows = by_length(result, "windows", "length", where);
  out.last = by_length(result, "last", "length", where);
  out.bins = by_length(result, "bins", "to", where);
  if (!out.last.empty()) out.last_tokens = count(result, "last_tokens", where);
  return out;
}

RunReader::RunReader(const std::string& folder)
    : folder_(folder), metrics_(folder + "/metrics.jsonl"), samples_(folder + "/samples.jsonl") {
  if (present(metrics_.path())) return;
  throw Error(ExitCode::io, folder, "the folder of a run (its out_dir), which holds metrics.jsonl",
              present(folder) ? "none in it" : "no such folder",
              "name the out_dir of a training run");
}

const RunRecord& RunReader::update() {
  metrics_.read([&](const json& line, const std::string& where) {
    const MetricsLine m = metrics_line(line, where);
    if (!record_.metrics.empty() && m.step <= record_.metrics.back().step) {
      refuse(where, "a step after " + std::to_string(record_.metrics.back().step),
             std::to_string(m.step));
    }
    record_.metrics.push_back(m);
    if (line.contains("attention")) {
      record_.attention =
          attention_record(member(line, "attention", &json::is_object, "an object", where),
                           Place(where) / "attention");
    }
    if (!line.contains("parameters")) return;
    record_.parameters =
        mechanism_values(member(line, "parameters", &json::is_object, "an object", where), where);
    record_.parameters_step = m.step;
  });
  samples_.read([&](const json& line, const std::string& where) {
    const Sample s = {count(line, "step", where), text(line, "prompt", where),
                      text(line, "text", where)};
    if (!record_.samples.empty() && record_.samples.back().step != s.step) record_.samples.clear();
    record_.samples.push_back(s);
  });
  const std::string result = folder_ + "/perplexity.json";
  record_.perplexity.reset();
  if (present(result)) {
    const InputFile file(result, ExitCode::io, kOfResult);
    record_.perplexity = read_perplexity(
        parse_json(file.text(kMostResultBytes), {result, ExitCode::io, kOfResult}), result);
  }
  return record_;
}

}  // namespace bamtrain
