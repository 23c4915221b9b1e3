// The perplexity requests of bamtrain eval and of the end of a run.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "commands/eval.h"
#include "eval/paper_protocols.h"
#include "record/run_files.h"

namespace bamtrain {

namespace {

/// What the paper's protocol sets; the defaults without a protocol.
PaperProtocol protocol_of(const EvalArguments& a, const RunConfig& c) {
  if (a.protocol.empty()) return {};
  return paper_protocol(a.protocol, c.data.sequence_length, ascending(a.lengths),
                        !a.counts.empty());
}

[[noreturn]] void refuse_option(const std::string& option, const std::string& use,
                                PerplexityText text) {
  throw Error::fault(ExitCode::usage, option, use + ", not to --text " + name_of(text),
                     "remove one of the two");
}

/// Throws Error for options that do not apply to the kind of text.
void check_use(const EvalArguments& a, PerplexityText text, DocumentMarks marks) {
  if (text != PerplexityText::packed && a.document_marks) {
    refuse_option("--document-marks", "applies to packed text", text);
  }
  if (text == PerplexityText::short_documents) {
    const char* const windows = "applies to text that is cut into windows";
    if (!a.protocols.empty()) refuse_option("--protocols", windows, text);
    if (a.last_tokens > 0) refuse_option("--last-tokens", windows, text);
    if (a.bin > 0) refuse_option("--bin", windows, text);
    if (a.positions > 0) refuse_option("--positions", windows, text);
  }
  if (a.document_end && marks == DocumentMarks::keep) {
    throw Error::fault(ExitCode::usage, "--document-end",
                       "applies only where --document-marks drop removes BOS and EOS",
                       "remove it, or add --document-marks drop");
  }
}

int64_t document_start(const EvalArguments& a, const RunConfig& c, const ShardSet& shards) {
  std::optional<int64_t> start = a.document_start;
  if (!start) start = shards.document_start(c.data.document_start);
  if (start) return *start;
  throw Error(ExitCode::config, "data.document_start",
              "the BOS id that begins a document, to evaluate at lengths",
              "neither the key nor a manifest next to " + shards.source(),
              shards.document_start_remedy() +
                  ", or give --document-start to eval, or evaluate shards with a manifest");
}

/// The ids that begin and end documents. A manifest may say that no id ends them.
std::vector<int64_t> document_marks(const EvalArguments& a, const RunConfig& c,
                                    const ShardSet& shards) {
  std::vector<int64_t> out = {document_start(a, c, shards)};
  std::optional<int64_t> end = a.document_end;
  if (!end && !shards.manifest()) {
    throw Error(ExitCode::usage, "--document-end", "the EOS id that ends a document, to drop it",
                "neither this option nor a manifest next to " + shards.source(),
                "give it; without EOS, give the BOS id");
  }
  if (!end) end = shards.manifest()->eos;
  if (end && *end != out[0]) out.push_back(*end);
  for (const int64_t id : out) {
    if (id < shards.vocab()) continue;
    throw Error(ExitCode::usage, id == out[0] ? "--document-start" : "--document-end",
                "an id of the model's vocabulary, from 0 to " + std::to_string(shards.vocab() - 1),
                std::to_string(id), "");
  }
  return out;
}

}  // namespace

PerplexityRequest request_of(const EvalArguments& a, const RunConfig& c, const ShardSet& shards) {
  auto [request, drops_special_tokens] = protocol_of(a, c);
  if (a.text) request.text = *a.text;
  if (!a.lengths.empty()) request.lengths = ascending(a.lengths);
  if (!a.protocols.empty()) request.protocols = a.protocols;
  if (a.last_tokens > 0) request.last_tokens = a.last_tokens;
  if (a.bin > 0) request.bin = a.bin;
  if (!a.counts.empty()) request.counts = a.counts;
  request.max_tokens = a.max_tokens;
  request.positions = a.positions;
  const DocumentMarks marks =
      a.document_marks.value_or(drops_special_tokens ? DocumentMarks::drop : DocumentMarks::keep);
  check_use(a, request.text, marks);
  if (request.text != PerplexityText::packed) {
    request.document_start = document_start(a, c, shards);
  } else if (marks == DocumentMarks::drop) {
    request.dropped = document_marks(a, c, shards);
  }
  return request;
}

nlohmann::ordered_json protocol_settings(const EvalArguments& a, const RunConfig& c) {
  if (a.protocol.empty()) return nullptr;
  const auto [request, drops_special_tokens] = protocol_of(a, c);
  nlohmann::ordered_json out = {{"name", a.protocol}};
  if (!a.text) out["text"] = name_of(request.text);
  if (a.text.value_or(request.text) == PerplexityText::packed) {
    if (!a.document_marks) out["document_marks"] = drops_special_tokens ? "drop" : "keep";
    out["apart"] = request.apart;
  }
  if (a.lengths.empty()) out["lengths"] = request.lengths;
  if (a.protocols.empty()) out["protocols"] = request.protocols;
  if (a.bin == 0 && request.asks_for("bins")) out["bin"] = request.bin;
  if (a.last_tokens == 0 && request.asks_for("last")) {
    out["last_tokens"] = PerplexityRequest::kLastTokens;
  }
  if (a.counts.empty() && !request.counts.empty()) out["count"] = request.counts;
  return out;
}

std::optional<EvalArguments> final_evaluation(const RunConfig& c) {
  if (c.eval.lengths.empty() || c.data.val.empty()) return std::nullopt;
  EvalArguments eval;
  eval.lengths = c.eval.lengths;
  eval.protocols = {"windows", "last"};
  const int64_t longest = *std::max_element(eval.lengths.begin(), eval.lengths.end());
  if (longest > PerplexityRequest::kBin) eval.protocols.push_back("bins");
  eval.last_tokens = c.eval.last_tokens;
  eval.max_tokens = c.eval.length_tokens.value_or(c.eval.tokens);
  eval.output = c.out_dir + "/perplexity.json";
  if (c.log.tensorboard) eval.events = c.out_dir + "/tensorboard/perplexity";
  eval.device = c.device;
  return eval;
}

}  // namespace bamtrain
