#pragma once
// bamtrain eval, of a checkpoint: perplexity, or the scores of a task, against length; or the
// likelihoods that it gives to texts.

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

/// Of packed text, the ids that begin and end documents.
enum class DocumentMarks { keep, drop };
inline const std::vector<std::pair<std::string, DocumentMarks>> kDocumentMarks = {
    {"keep", DocumentMarks::keep}, {"drop", DocumentMarks::drop}};

struct EvalArguments {
  std::string checkpoint, output;
  std::vector<std::string> data;       // a path, or several NAME=PATH; empty: data.val
  std::string events;                  // folder of event files; empty: none
  std::vector<std::string> overrides;  // of the prior and the scale
  std::optional<DeviceKind> device;    // none, here and below: as the checkpoint's run
  std::optional<Precision> precision;
  std::vector<int64_t> lengths;
  bool require_all_lengths = false;  // of perplexity: one that no text has is an error
  std::string protocol;              // of a paper; empty: none. What follows replaces what it sets
  std::optional<PerplexityText> text;
  std::vector<std::string> protocols;                               // empty: all
  int64_t last_tokens = 0, max_tokens = 0, bin = 0, positions = 0;  // 0: not given
  std::vector<int64_t> counts;
  std::optional<DocumentMarks> document_marks;
  std::optional<int64_t> document_start, document_end;
  std::string task;                        // its name; empty: perplexity
  std::vector<std::string> task_settings;  // of its options, KEY=VALUE
  // Sequences of the task at each length (1,000), prompts of passkey and niah, or the first
  // examples of a file (all).
  std::optional<int64_t> samples;
  std::optional<uint64_t> seed;  // of these sequences (0)
  std::string prompts;           // file for the prompts, in place of their scores; empty: none
};

/// Tasks whose examples are texts of a file, which are of no length of their own.
inline const std::vector<std::string> kPromptTasks = {"choice", "cloze", "requests"};

/// Tasks whose prompts ask for what stands somewhere in a text, in ids of the model's tokenizer.
inline const std::vector<std::string> kRetrievalTasks = {"passkey", "niah"};

/// What `arguments` ask of `shards`, in perplexity_request.cpp. Error (ExitCode::usage) for options
/// that the text has no use for, and as paper_protocol; (ExitCode::config) where the text needs an
/// id that nothing names.
PerplexityRequest request_of(const EvalArguments& arguments, const RunConfig& c,
                             const ShardSet& shards);

/// {"name": "bam", "text": "packed", ...}: what the paper's protocol sets and no option replaces;
/// null where none is named. Errors as paper_protocol.
nlohmann::ordered_json protocol_settings(const EvalArguments& arguments, const RunConfig& c);

/// The evaluation that ends a training run; none where the config asks for none.
std::optional<EvalArguments> final_evaluation(const RunConfig& c);

/// Prints the result and writes it where `arguments` say. Returns the exit code.
int run_eval(const EvalArguments& arguments);

/// The same of perplexity, in eval_perplexity.cpp.
int run_eval_perplexity(const EvalArguments& arguments);

/// The same of a task, in eval_task.cpp. REQUIRES: one is named.
int run_eval_task(const EvalArguments& arguments);

/// The same of one of kPromptTasks, in eval_prompts.cpp. REQUIRES: one is named.
int run_eval_prompts(const EvalArguments& arguments);

/// The same of one of kRetrievalTasks, in eval_retrieval.cpp: what the result in --output has not
/// is measured. REQUIRES: one is named.
int run_eval_retrieval(const EvalArguments& arguments);

/// Error (ExitCode::usage): no lengths, or one of 0.
void require_lengths(const EvalArguments& arguments);
/// Ascending, each once.
std::vector<int64_t> ascending(std::vector<int64_t> lengths);
/// The same. Error (ExitCode::usage) where there are none.
std::vector<int64_t> sorted_lengths(const std::vector<int64_t>& lengths);

/// The backend that `arguments` ask for, or else the run. Errors as make_backend.
std::unique_ptr<Backend> eval_backend(const EvalArguments& arguments, const RunConfig& c);

}  // namespace bamtrain
