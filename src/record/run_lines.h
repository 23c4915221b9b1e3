#pragma once
// Parses lines of metrics.jsonl and samples.jsonl. Resuming and the report use the same parser, so
// they refuse the same lines.

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_object.h"

namespace bamtrain {

/// A standard error as a file has it. NaN: unknown, from a single document or sequence. Empty: the
/// file was written before there were standard errors.
using StandardError = std::optional<double>;

/// The member `key` of a row. Throws Error if it is below 0.
StandardError standard_error(const JsonObject& row, const char* key);

/// A line of metrics.jsonl. NaN: not in the line.
struct MetricsLine {
  int64_t step = 0;
  double tokens, loss, lr, grad_norm, tokens_per_second;
  double validation_loss, seconds, mfu;
  StandardError validation_loss_error = std::nullopt;
  double data_wait = std::numeric_limits<double>::quiet_NaN();  // ms
  // For tasks: shares of positions and of whole sequences.
  double validation_accuracy = std::numeric_limits<double>::quiet_NaN();
  double validation_exact_match = std::numeric_limits<double>::quiet_NaN();
};

/// The values of mechanism parameters by name, from "parameters" of metrics.jsonl.
using MechanismValues = std::map<std::string, std::vector<double>>;

using HeadMeans = std::vector<std::vector<double>>;  // (layers, heads)

/// "attention" of metrics.jsonl.
struct AttentionRecord {
  int64_t windows = 0;
  HeadMeans entropy, nonzero_keys;
  HeadMeans nonzero_blocks;  // empty in lines of earlier versions
};

/// All content of a line of metrics.jsonl.
struct Metrics {
  MetricsLine line;
  std::optional<AttentionRecord> attention;
  std::optional<MechanismValues> parameters;
};

/// A line of samples.jsonl.
struct Sample {
  int64_t step = 0;
  std::string prompt, text;
};

/// The place and remedy for errors in line `number` of the file at `path`.
JsonPlace place_of_line(const std::string& path, int64_t number);

/// The text of a line, without its newline. Its last member, "crc", is the CRC-32C of the bytes
/// before it, up to the comma.
std::string run_line(const nlohmann::ordered_json& line);

/// The object in the line, without its crc. Lines of earlier versions have no crc. Throws Error
/// (ExitCode::io), see parse_json_line, also if the crc does not match the line.
nlohmann::json parse_run_line(std::string_view line, const std::string& path, int64_t number);

// Throw Error (ExitCode::io) at "FILE:LINE: KEY" if a member is missing or is not what a run
// writes. A step is an integer from 0 to kMaxSteps.
int64_t step_of(const JsonObject& line);
/// Throws Error at `where` unless `step` > `before`, or `step` = `before` if `equal` allows it.
void require_later(int64_t step, int64_t before, bool equal, const JsonPlace& where);
Metrics metrics_of(const JsonObject& line);
Sample sample_of(const JsonObject& line);

}  // namespace bamtrain
