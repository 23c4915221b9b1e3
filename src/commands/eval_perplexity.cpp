// bamtrain eval: perplexity against length, on one or several data sets.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands/eval.h"
#include "commands/eval_result.h"
#include "commands/load_checkpoint.h"
#include "commands/perplexity_print.h"
#include "config/schema.h"
#include "core/durable_file.h"
#include "core/json_digest.h"
#include "core/print_message.h"
#include "core/utf8.h"
#include "eval/perplexity.h"
#include "model/causal_lm.h"
#include "record/event_file.h"
#include "record/run_data.h"
#include "record/run_files.h"
#include "record/run_text.h"
#include "report/report.h"

namespace bamtrain {

namespace {

using nlohmann::ordered_json;

/// A data set to evaluate on. `name`: "" if it is the only one and unnamed.
struct EvaluatedSet {
  std::string name, source;
  std::optional<ShardSet> shards = std::nullopt;
  PerplexityRequest request = {};
  std::string no_bytes = {};  // why there are no bits per byte; "": there are
};

/// Splits "NAME=PATH"; NAME is "" if the text before the first = is not a valid name.
EvaluatedSet set_of(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const bool named = equals != std::string::npos && !name.empty() &&
                     std::all_of(name.begin(), name.end(), [](unsigned char c) {
                       return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                     });
  return named ? EvaluatedSet{name, text.substr(equals + 1)} : EvaluatedSet{"", text};
}

std::vector<EvaluatedSet> sets_of(const EvalArguments& arguments, const RunConfig& c) {
  std::vector<EvaluatedSet> out;
  for (const std::string& text : arguments.data) out.push_back(set_of(text));
  if (out.empty()) out.push_back({"", c.data.val});
  if (out[0].source.empty()) {
    throw Error::fault(ExitCode::usage, "--data",
                       "no data: the checkpoint's config has no shards in data.val",
                       c.data.train.has_tasks() ? "give a folder or glob of shards, or --task"
                                                : "give a folder or glob of shards");
  }
  for (size_t i = 0; out.size() > 1 && i < out.size(); ++i) {
    const auto same = std::find_if(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const EvaluatedSet& s) { return s.name == out[i].name; });
    if (!out[i].name.empty() && same == out.begin() + static_cast<std::ptrdiff_t>(i)) continue;
    throw Error(ExitCode::usage, "--data", "NAME=PATH with a unique name for each of several",
                arguments.data[i], "use letters, digits, -, _ and . in names");
  }
  return out;
}

/// Throws Error (ExitCode::nonfinite) naming the first loss that is not finite.
void require_finite_perplexity(const std::string& checkpoint, const ordered_json& result) {
  for (const char* protocol : {"windows", "last", "bins", "short"}) {
    if (!result.contains(protocol)) continue;
    for (const auto& row : result[protocol]) {
      const auto loss = row["loss"].get<double>();
      if (std::isfinite(loss)) continue;
      const bool bin = !row.contains("length");
      throw Error(ExitCode::nonfinite, checkpoint, "finite losses",
                  fmt::format("{} {} {} ({})", std::isnan(loss) ? "NaN" : "infinity",
                              bin ? "from position" : "at length",
                              row[bin ? "from" : "length"].get<int64_t>(), protocol),
                  "try --precision fp32, then an earlier checkpoint");
    }
  }
}

/// The number of text bytes of each id, by the tokenizer that made `shards`. Empty, with the reason
/// in `why_none`, if the tokenizer is unknown or found neither in the run's folder nor near them.
std::vector<int64_t> token_bytes(const ShardSet& shards, const RunConfig& config,
                                 const std::string& run_folder, std::string* why_none) {
  if (!shards.manifest()) {
    *why_none = "no manifest next to " + shards.source() + " names the tokenizer";
    return {};
  }
  RunConfig near = config;
  near.data.val = shards.source();
  std::vector<int64_t> out;
  try {
    const Tokenizer tokenizer =
        open_tokenizer({"tokenizer", "", shards.manifest()->tokenizer_sha256, run_folder}, near);
    for (int32_t id = 0; id < tokenizer.vocab(); ++id) {
      out.push_back(static_cast<int64_t>(tokenizer.bytes(id, false).size()));
    }
  } catch (const Error& e) {
    if (e.code() != ExitCode::data) throw;
    *why_none = e.as(e.code(), "tokenizer", "put its file next to the shards").what();
  }
  return out;
}

/// Writes a TensorBoard run whose steps are lengths, replacing the folder's content.
void write_events(const std::string& folder, const ordered_json& result) {
  EventFile events(folder, 0);
  for (const char* protocol : {"windows", "last"}) {
    const std::string tag = std::string("perplexity/") + protocol;
    for (const auto& row : result[protocol]) {
      const Scalar scalar = {tag, row["perplexity"].get<float>()};
      events.write_scalars(row["length"].get<int64_t>(), {&scalar, 1});
    }
  }
  events.sync();
}

void print_result(const ordered_json& result, const EvaluatedSet& set) {
  if (!set.name.empty()) {
    fmt::print("{}: {}\n", set.name, printable(result["data"].get<std::string>()));
  }
  print_perplexities(result);
  if (!set.no_bytes.empty()) fmt::print("no bits per byte: {}\n", printable(set.no_bytes));
  const auto written = nlohmann::json::parse(result.dump());
  fmt::print("{}", perplexity_plot(read_perplexity(written, "the result")));
}

/// Removes requested lengths that the text does not have from the request, with a warning. Keeps
/// those of a paper's protocol, and one if none would remain; later checks refuse these.
void leave_out_absent_lengths(const EvalArguments& arguments, EvaluatedSet* set) {
  if (arguments.require_all_lengths || arguments.lengths.empty()) return;
  PerplexityRequest request = set->request;
  const std::string left_out = leave_out_lengths(*set->shards, &request);
  if (left_out.empty()) return;
  if (request.lengths.empty()) {
    PerplexityRequest& kept = set->request;
    kept.lengths = {kept.lengths.front()};  // the error names the shortest
    if (!kept.counts.empty()) kept.counts = {kept.counts.front()};
    return;
  }
  set->request = std::move(request);
  print_message(stderr,
                "warning: --lengths " + left_out + " (--require-all-lengths makes this an error)");
}

/// Warns that the number of documents at a length depends on the other requested lengths.
void warn_of_fewer_documents(const EvaluatedSet& set, const DocumentCounts& counts) {
  if (counts.of_longest == counts.of_shortest) return;
  const std::vector<int64_t>& lengths = set.request.lengths;
  print_message(
      stderr,
      fmt::format("warning: all lengths are measured on documents of {} with more than {} tokens, "
                  "the longest length. There are {}; length {} alone would use {}. Compare only "
                  "numbers with the same longest length",
                  set.shards->source(), lengths.back(), counts.of_longest, lengths.front(),
                  counts.of_shortest));
}

/// Opens the sets and checks their requests, so that everything invalid is refused before the model
/// reads any text.
void open_sets(const EvalArguments& arguments, const Checkpoint& checkpoint, const RunConfig& c,
               std::vector<EvaluatedSet>* sets) {
  for (EvaluatedSet& set : *sets) {
    set.shards = ShardSet::open(set.source, c.model.vocab);
    require_same_data(checkpoint.state.value("data", nlohmann::json()), describe_data(*set.shards),
                      set.shards->source(), true, checkpoint.folder);
    set.request = request_of(arguments, c, *set.shards);
    leave_out_absent_lengths(arguments, &set);
    warn_of_fewer_documents(set, check_perplexity_request(*set.shards, set.request));
    set.request.token_bytes = token_bytes(*set.shards, c, run_folder(checkpoint), &set.no_bytes);
  }
}

/// Returns the result. Prints it set by set, so that hours of work survive a failed output file.
ordered_json evaluate(const EvalArguments& given) {
  const Checkpoint checkpoint = load_checkpoint(given.checkpoint);
  const RunConfig c = trained_config(checkpoint, given.overrides);
  const EvalArguments arguments = with_lengths(given, c);
  check_causal_lm(c.model);
  const Precision precision = arguments.precision.value_or(c.train.precision);
  const std::unique_ptr<Backend> backend = eval_backend(arguments, c);
  std::vector<EvaluatedSet> sets = sets_of(arguments, c);
  const bool named = !sets[0].name.empty();
  open_sets(arguments, checkpoint, c, &sets);
  const ordered_json protocol = protocol_settings(arguments, c);
  if (!protocol.is_null()) print_protocol(protocol);

  const ParameterLayout layout(c.model, c.data.sequence_length);
  const Dtype activations = activation_dtype(precision);
  int64_t bytes = 0;
  for (const EvaluatedSet& set : sets) {
    const ScoredModel model = {c.model, c.data.sequence_length, *backend, activations, {}};
    bytes = std::max(bytes, perplexity_bytes(model, set.request.lengths));
  }
  check_memory(backend->memory(), layout, bytes, "memory of the model and its windows (--lengths)",
               "leave the longest out");
  Arena arena;
  const Tensor master_weights = load_master_weights(checkpoint, layout, *backend, arena);

  const ProgressLine line;
  const ordered_json attention = resolved_json(c)["model"]["attention"];
  const auto head = [&](const EvaluatedSet* set) {
    ordered_json out = {{"checkpoint", replace_invalid_utf8(checkpoint.folder)},
                        {"name", c.name},
                        {"step", checkpoint.step}};
    if (set != nullptr) {
      out["data"] = set->source;
      out["data_fingerprint"] = set->shards->fingerprint();
    }
    out.update({{"prior", attention["prior"]},
                {"scale", attention["scale"]},
                {"normalizer", attention["normalizer"]},
                {"precision", computed_in(precision)},
                {"training_length", c.data.sequence_length}});
    if (!protocol.is_null()) out["protocol"] = protocol;
    return out;
  };
  ordered_json all = head(nullptr);
  for (const EvaluatedSet& set : sets) {
    const ordered_json of_set = perplexity_against_length(
        c.model, c.data.sequence_length, *backend, activations, master_weights, *set.shards,
        set.request, [&](const std::string& pass, int64_t length, double share) {
          line.show(fmt::format("{}{}{} at {}", set.name, named ? ": " : "", pass, length), share);
        });
    line.clear();
    ordered_json result = head(&set);
    result.update(of_set);
    print_result(result, set);
    if (!named) return result;
    ordered_json& entry = all["sets"][set.name];
    entry = {{"data", set.source}, {"data_fingerprint", set.shards->fingerprint()}};
    entry.update(of_set);
  }
  return all;
}

}  // namespace

int run_eval_perplexity(const EvalArguments& arguments) {
  check_lengths(arguments);
  check_output(arguments.output);
  // Opened first, so that an unwritable path fails before the work and not after it.
  std::optional<AtomicFile> output;
  if (!arguments.output.empty()) output.emplace(arguments.output);
  const ordered_json result = evaluate(arguments);
  if (output) {
    output->write(digested_json(result));
    output->commit();
  }
  if (!arguments.events.empty()) write_events(arguments.events, result);
  const std::string checkpoint = result["checkpoint"];
  if (result.contains("sets")) {
    for (const auto& set : result["sets"].items()) {
      require_finite_perplexity(checkpoint, set.value());
    }
  } else {
    require_finite_perplexity(checkpoint, result);
  }
  return 0;
}

}  // namespace bamtrain
