#include "record/run_lines.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/crc32c.h"
#include "core/json.h"
#include "train/train_config.h"

namespace bamtrain {

namespace {

using nlohmann::json;

constexpr std::string_view kCrcMember = ",\"crc\":";

/// The end of the line that begins with `before`.
std::string crc_member(std::string_view before) {
  return std::string(kCrcMember) + std::to_string(crc32c(before)) + "}";
}

MechanismValues mechanism_values(const JsonObject& parameters) {
  MechanismValues out;
  for (const auto& [name, values] : parameters.value().items()) {
    out[name] = json_numbers(values, parameters.where() / name);
  }
  return out;
}

HeadMeans by_layer(const JsonObject& attention, const char* key) {
  HeadMeans out;
  for (const json& heads : attention.list(key)) {
    out.push_back(json_numbers(heads, attention.where() / key));
  }
  return out;
}

AttentionRecord attention_record(const JsonObject& attention) {
  AttentionRecord record = {attention.count("windows"),
                            by_layer(attention, "entropy"),
                            by_layer(attention, "support"),
                            {}};
  if (!attention.has("live_tiles")) return record;  // written by an earlier version
  record.nonzero_blocks = by_layer(attention, "live_tiles");
  for (const std::vector<double>& heads : record.nonzero_blocks) {
    for (double share : heads) {
      if (share >= 0 && share <= 1) continue;
      (attention.where() / "live_tiles").refuse("shares from 0 to 1", json(share).dump());
    }
  }
  return record;
}

}  // namespace

StandardError standard_error(const JsonObject& row, const char* key) {
  if (!row.has(key)) return std::nullopt;
  if (row.value()[key].is_null()) return NAN;
  const double error = row.number(key);
  if (error < 0) (row.where() / key).refuse("0 or more", row.value()[key].dump());
  return error;
}

JsonPlace place_of_line(const std::string& path, int64_t number) {
  return {path + ":" + std::to_string(number), ExitCode::io,
          "restore the file from a copy, or remove the line"};
}

std::string run_line(const nlohmann::ordered_json& line) {
  std::string text = line.dump();
  text.pop_back();  // the closing brace
  return text + crc_member(text);
}

json parse_run_line(std::string_view line, const std::string& path, int64_t number) {
  const JsonPlace place = place_of_line(path, number);
  json value = parse_json_line(line, {path, ExitCode::io, place.remedy, number});
  const auto crc = value.find("crc");
  if (crc == value.end()) return value;
  const std::string_view before = line.substr(0, line.rfind(kCrcMember));
  const std::string right = crc_member(before);
  if (line.substr(before.size()) != right) {
    place.refuse("a line that ends with " + right, std::string(line.substr(before.size())));
  }
  value.erase(crc);
  return value;
}

int64_t step_of(const JsonObject& line) { return line.count("step", kMaxSteps); }

void require_later(int64_t step, int64_t before, bool equal, const JsonPlace& where) {
  if (step > before || (equal && step == before)) return;
  where.refuse((equal ? "step " + std::to_string(before) + " or one after it"
                      : "a step after " + std::to_string(before)),
               std::to_string(step));
}

Metrics metrics_of(const JsonObject& line) {
  Metrics out;
  out.line = {step_of(line),
              line.number("tokens"),
              line.number("loss"),
              line.number("lr"),
              line.number("grad_norm"),
              line.number("tokens_per_second"),
              line.number_or_none("validation_loss"),
              line.number_or_none("seconds"),
              line.number_or_none("matrix_rate_share"),
              standard_error(line, "validation_loss_error"),
              line.number_or_none("data_wait"),
              line.number_or_none("validation_accuracy"),
              line.number_or_none("validation_exact_match")};
  if (line.has("attention")) out.attention = attention_record(line.object("attention"));
  if (line.has("parameters")) out.parameters = mechanism_values(line.object("parameters"));
  return out;
}

Sample sample_of(const JsonObject& line) {
  return {step_of(line), line.text("prompt"), line.text("text")};
}

}  // namespace bamtrain
