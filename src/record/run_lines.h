#pragma once
// What a line of metrics.jsonl and of samples.jsonl holds, for all who read them: a run that is
// resumed and the report refuse the same lines.

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

/// A standard error as a file has it. NaN: unknown, of a single document or sequence; none: the
/// file was written before there were any.
using StandardError = std::optional<double>;

/// The member `key` of a row. Error where it is below 0.
StandardError standard_error(const JsonObject& row, const char* key);

/// A line of metrics.jsonl. NaN: it does not say.
struct MetricsLine {
  int64_t step = 0;
  double tokens, loss, lr, grad_norm, tokens_per_second;
  double validation_loss, seconds, mfu;
  StandardError validation_loss_error = std::nullopt;
  double data_wait = std::numeric_limits<double>::quiet_NaN();  // ms
  // Of a task: shares of places and of whole sequences.
  double validation_accuracy = std::numeric_limits<double>::quiet_NaN();
  double validation_exact_match = std::numeric_limits<double>::quiet_NaN();
};

/// The values of mechanisms' parameters by name, as "parameters" of metrics.jsonl has them.
using MechanismValues = std::map<std::string, std::vector<double>>;

using HeadMeans = std::vector<std::vector<double>>;  // (layers, heads)

/// "attention" of metrics.jsonl.
struct AttentionRecord {
  int64_t windows = 0;
  HeadMeans entropy, nonzero_keys;
  HeadMeans nonzero_blocks;  // empty where an earlier program wrote the line
};

/// All that a line of metrics.jsonl says.
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

/// Where line `number` of the file at `path` is, and its remedy.
JsonPlace place_of_line(const std::string& path, int64_t number);

/// The text of a line, without its newline. Its last member, "crc", is the CRC-32C of what is
/// before it: of the bytes up to the comma.
std::string run_line(const nlohmann::ordered_json& line);

/// The object that the line holds, without its crc; those of earlier programs have none. Error
/// (ExitCode::io), see parse_json_line, and where the crc is not that of the line.
nlohmann::json parse_run_line(std::string_view line, const std::string& path, int64_t number);

// Error (ExitCode::io) at "FILE:LINE: KEY" for a member that is not there or is not what a run
// writes; a step is an integer from 0 to kMaxSteps.
int64_t step_of(const JsonObject& line);
/// Error at `where` unless `step` comes after `before`, or at it where `equal` ones may follow.
void require_later(int64_t step, int64_t before, bool equal, const JsonPlace& where);
Metrics metrics_of(const JsonObject& line);
Sample sample_of(const JsonObject& line);

}  // namespace bamtrain
