#pragma once
// bamtrain eval: evaluates a checkpoint. Measures perplexity or the scores of a task against
// length, or the likelihoods of texts.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/reader.h"
#include "data/shard_set.h"
#include "eval/perplexity.h"

namespace bamtrain {

/// For packed text: keep or drop the ids that begin and end documents.
enum class DocumentMarks { keep, drop };
inline const std::vector<std::pair<std::string, DocumentMarks>> kDocumentMarks = {
    {"keep", DocumentMarks::keep}, {"drop", DocumentMarks::drop}};

struct EvalArguments {
  std::string checkpoint, output;
  std::vector<std::string> data;       // a path, or several NAME=PATH; empty: data.val
  std::string events;                  // folder of event files; empty: not written
  std::vector<std::string> overrides;  // of the prior and the scale
  std::optional<DeviceKind> device;    // not set, here and below: as the checkpoint's run
  std::optional<Precision> precision;
  std::vector<int64_t> lengths;
  bool require_all_lengths = false;  // of perplexity: a length that no text has is an error
  std::string protocol;              // of a paper, or empty; the fields below override it
  std::optional<PerplexityText> text;
  std::vector<std::string> protocols;                               // empty: all
  int64_t last_tokens = 0, max_tokens = 0, bin = 0, positions = 0;  // 0: not set
  std::vector<int64_t> counts;
  std::optional<DocumentMarks> document_marks;
  std::optional<int64_t> document_start, document_end;
  std::string task;                        // its name; empty: perplexity
  std::vector<std::string> task_settings;  // its options, KEY=VALUE
  // Sequences of the task at each length (default 1,000), prompts of passkey and niah, or the first
  // N examples of a file (default all).
  std::optional<int64_t> samples;
  std::optional<uint64_t> seed;  // of these sequences (default 0)
  std::string prompts;           // file to write the prompts to instead of scoring; empty: score
};

/// Tasks whose examples are texts of a file, which have no length option.
inline const std::vector<std::string> kPromptTasks = {"choice", "cloze", "requests"};

/// Tasks whose prompts ask for something hidden in a text, in ids of the model's tokenizer.
inline const std::vector<std::string> kRetrievalTasks = {"passkey", "niah"};

/// The request that `arguments` make of `shards`; in perplexity_request.cpp. Throws Error
/// (ExitCode::usage) for options that do not apply to the kind of text, and as paper_protocol;
/// (ExitCode::config) if the text needs an id that nothing specifies.
PerplexityRequest request_of(const EvalArguments& arguments, const RunConfig& c,
                             const ShardSet& shards);

/// {"name": "bam", "text": "packed", ...}: what the paper's protocol sets and no option overrides;
/// null without a protocol. Errors as paper_protocol.
nlohmann::ordered_json protocol_settings(const EvalArguments& arguments, const RunConfig& c);

/// The evaluation at the end of a training run; nullopt if the config asks for none.
std::optional<EvalArguments> final_evaluation(const RunConfig& c);

/// Prints the result and writes it to the output of `arguments`. Returns the exit code.
int run_eval(const EvalArguments& arguments);

/// The same for perplexity; in eval_perplexity.cpp.
int run_eval_perplexity(const EvalArguments& arguments);

/// The same for a task; in eval_task.cpp. REQUIRES: arguments.task is set.
int run_eval_task(const EvalArguments& arguments);

/// The same for one of kPromptTasks; in eval_prompts.cpp. REQUIRES: arguments.task is one.
int run_eval_prompts(const EvalArguments& arguments);

/// The same for one of kRetrievalTasks; in eval_retrieval.cpp. Measures only what the result in
/// --output is missing. REQUIRES: arguments.task is one.
int run_eval_retrieval(const EvalArguments& arguments);

/// Throws Error (ExitCode::usage) if a length is 0.
void check_lengths(const EvalArguments& arguments);
/// The arguments, with the lengths that the run evaluates itself if they have none: eval.lengths,
/// or those of the task in eval.tasks, which are printed on standard error. Lengths of a paper's
/// protocol stay open. Throws Error (ExitCode::usage) if the run has none.
EvalArguments with_lengths(const EvalArguments& arguments, const RunConfig& c);
/// Sorted, without duplicates.
std::vector<int64_t> ascending(std::vector<int64_t> lengths);

/// The backend that `arguments` select, else that of the run. Errors as make_backend.
std::unique_ptr<Backend> eval_backend(const EvalArguments& arguments, const RunConfig& c);

}  // namespace bamtrain
