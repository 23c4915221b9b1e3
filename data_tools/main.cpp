// bamdata: makes token shards from text, and inspects shards.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/completion.h"
#include "core/error.h"
#include "core/help_format.h"
#include "core/manual_page.h"
#include "core/memory_limit.h"
#include "core/option_value.h"
#include "core/stack.h"
#include "core/standard_output.h"
#include "core/unexpanded_path.h"
#include "core/usage_error.h"
#include "core/version.h"
#include "data/shard.h"
#include "data_tools/inspect.h"
#include "data_tools/interrupt.h"
#include "data_tools/join.h"
#include "data_tools/shard_folders.h"
#include "data_tools/synth.h"
#include "data_tools/tokenize.h"
#include "data_tools/train_tokenizer.h"
#include "data_tools/verify.h"

namespace bamtrain {
namespace {

constexpr const char* kTokenizeExamples = R"(Examples:
  bamdata tokenize --tokenizer t.model --document blank-line \
    --val-documents 100 --output data book1.txt book2.txt.xz
  bamdata tokenize --tokenizer t.model --val-fraction 0.001 --output data \
    fineweb/*.jsonl.zst
  bamdata tokenize --tokenizer tokenizer.json --output data fineweb/*.parquet
  bamdata tokenize --tokenizer t.model --part 3/8 --output data-3 \
    fineweb/*.parquet
)";

constexpr const char* kExitCodes = R"(Exit codes:
  0  success
  1  a bug in bamdata
  2  bad command line
  4  bad data (text, tokenizer, shards, manifest)
  6  a file or folder that cannot be read or written
  9  too little memory or stack, no thread, or no pyarrow
A signal ends it as it ends any program (130 after Ctrl-C).
)";

constexpr const char* kSeeAlso =
    "# See also\n\n`bamtrain`(1), which trains on the shards; `bamtrain help data` and `bamtrain "
    "help "
    "formats`.\n";

constexpr const char* kInput = "Input";
constexpr const char* kOutput = "Output";
constexpr const char* kValidation = "Validation set (one of these)";

void add_input_options(CLI::App* app, InputOptions* options) {
  app->add_option("input", options->paths,
                  "files in this order: .txt or .jsonl, plain or compressed with zstd (.zst), xz "
                  "(.xz) or gzip (.gz), or .parquet (needs Python's pyarrow); -: standard input")
      ->required();
  take_words(app->add_option("--format", options->format,
                             "format of the inputs, instead of their names' (needed for -)"),
             {"txt", "jsonl"})
      ->group(kInput);
  take_words(
      app->add_option_function<std::string>(
          "--document",
          [options](const std::string& name) { options->kind = document_kind_named(name); },
          "what a document of a text file is: a line; the whole file; a block between blank lines; "
          "a WikiText article, which begins with a title \" = Title = \" between blank lines. "
          "Required for text; in JSON lines it is a field of each line's object"),
      document_kind_names())
      ->group(kInput);
  app->add_option("--field", options->field, "field of JSON lines, or column, that has the text")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(kInput);
  take_words(
      app->add_option_function<std::string>(
          "--invalid-utf8",
          [options](const std::string& name) {
            options->invalid_utf8 = name == "replace" ? InvalidUtf8::replace
                                    : name == "skip"  ? InvalidUtf8::skip
                                                      : InvalidUtf8::error;
          },
          "documents that are not valid UTF-8: fail and name the place (error, the default), put "
          "U+FFFD for each bad part, or skip and count them"),
      {"error", "replace", "skip"})
      ->group(kInput);
  take_integers(app->add_option("--max-document-bytes", options->max_document_bytes,
                                "a longer document (or line) is an error; bounds the memory"),
                1, int64_t{1} << 40)
      ->capture_default_str()
      ->group(kInput);
}

void add_validation_options(CLI::App* app, ValidationShare* share, CLI::Option* shuffle) {
  CLI::Option* documents =
      take_integers(app->add_option("--val-documents", share->documents,
                                    "hold out the N documents with the lowest SHA-256"),
                    1, int64_t{1} << 40)
          ->group(kValidation);
  CLI::Option* fraction =
      take_numbers(
          app->add_option("--val-fraction", share->fraction,
                          "hold out a document if its SHA-256 falls in the lowest X of the "
                          "range: the same text always goes to the same set"),
          "a number from 1e-9 to 0.999", [](double x) { return x >= 1e-9 && x <= 0.999; })
          ->group(kValidation);
  CLI::Option* tokens =
      take_integers(app->add_option("--val-tokens", share->tokens,
                                    "hold out the first N tokens, cut wherever they end"),
                    1, int64_t{1} << 50)
          ->group(kValidation);
  take_integers(app->add_option("--unused-tokens", share->unused,
                                "leave the next N tokens after --val-tokens out of both sets"),
                1, int64_t{1} << 50)
      ->needs(tokens)
      ->group(kValidation);
  documents->excludes(fraction)->excludes(tokens);
  fraction->excludes(tokens);
  tokens->excludes(shuffle);
}

/// "3/8".
InputPart part_named(const std::string& text) {
  constexpr int64_t kMost = 1 << 20;
  InputPart part;
  const char* const end = text.data() + text.size();
  const auto number = std::from_chars(text.data(), end, part.number);
  const bool slash = number.ec == std::errc() && number.ptr != end && *number.ptr == '/';
  const auto of = slash ? std::from_chars(number.ptr + 1, end, part.of) : number;
  if (!slash || of.ec != std::errc() || of.ptr != end || part.number < 1 || part.number > part.of ||
      part.of > kMost) {
    throw Error(ExitCode::usage, "--part", "N/OF, part N of OF parts, such as 3/8", text,
                "count parts from 1");
  }
  return part;
}

void add_tokenize(CLI::App* app, TokenizeOptions* options) {
  app->footer(kTokenizeExamples);
  add_input_options(app, &options->input);
  app->add_option("--tokenizer", options->tokenizer,
                  "tokenizer file with BOS: a SentencePiece model, a tokenizer.json, tiktoken's "
                  "ranks or a tekken.json")
      ->type_name("FILE")
      ->required()
      ->group(kOutput);
  app->add_option("--output", options->output,
                  "folder to make, with train/*.bin, train/manifest.json, the tokenizer's file and "
                  "val/ likewise. It appears complete or not at all; progress is in DIR.partial, "
                  "from which the same "
                  "command resumes")
      ->type_name("DIR")
      ->required()
      ->group(kOutput);
  app->add_flag("--overwrite", options->overwrite, "replace a folder of shards at --output")
      ->group(kOutput);
  app->add_flag("--eos", options->eos, "end each document with EOS (it always begins with BOS)")
      ->group(kOutput);
  CLI::Option* shuffle =
      take_integers(app->add_option("--shuffle", options->shuffle,
                                    "shuffle the training documents of all inputs with this seed; "
                                    "needs as much disk space again"),
                    0, std::numeric_limits<int64_t>::max())
          ->type_name("SEED")
          ->group(kOutput);
  take_integers(app->add_option("--shard-tokens", options->shard_tokens,
                                "close a shard after the document that reaches N tokens"),
                1, ShardFormat::kMaxTokens)
      ->capture_default_str()
      ->group(kOutput);
  app->add_option_function<std::string>(
         "--part", [options](const std::string& text) { options->part = part_named(text); },
         "tokenize one part of the inputs, such as 3/8: whole files, in order. Each part is a "
         "call of its own with its own output; bamdata join joins them")
      ->type_name("N/OF")
      ->group(kOutput);
  take_integers(
      app->add_option("--threads", options->threads,
                      "encoding threads; the output does not depend on it (default: all cores)"),
      1, 1024)
      ->group(kOutput);
  add_validation_options(app, &options->validation, shuffle);
  app->callback([options] {
    if (options->validation.documents > 0 && !options->part.whole()) {
      throw Error::fault(ExitCode::usage, "--val-documents",
                         "cannot be combined with --part: it needs all documents in one call",
                         "give --val-fraction");
    }
    require_expanded_path(options->output, ExitCode::usage, "--output");
    const TokenizeReport report = tokenize(*options, stderr);
    fmt::print("{}", describe(report, options->output));
  });
}

void add_join(CLI::App* app, JoinOptions* options) {
  app->footer(
      "Shards are hard-linked, or copied if they cannot be; the inputs may be removed\n"
      "afterwards. Parts are joined in their order, other sets in the order given.\n");
  app->add_option("input", options->inputs, "outputs of bamdata tokenize")->required();
  app->add_option("--output", options->output, "folder to make")->type_name("DIR")->required();
  app->add_flag("--overwrite", options->overwrite, "replace a folder of shards at --output");
  app->callback([options] {
    require_expanded_path(options->output, ExitCode::usage, "--output");
    const JoinReport report = join(*options, stderr);
    fmt::print("{}", describe_set(options->output + "/train", report.train));
    if (report.val) fmt::print("{}", describe_set(options->output + "/val", *report.val));
  });
}

void add_train_tokenizer(CLI::App* app, TrainTokenizerOptions* options) {
  app->footer(
      "The model is BPE with byte fallback, identity normalization, single digits, a\n"
      "dummy prefix space and pieces of at most 16 characters; 0 is <unk>, 1 <s> (BOS),\n"
      "2 </s> (EOS). The same text and options give the same model.\n");
  add_input_options(app, &options->input);
  app->add_option("--output", options->output, "model file to write")
      ->type_name("FILE")
      ->required()
      ->group(kOutput);
  app->add_flag("--overwrite", options->overwrite, "replace a file at --output")->group(kOutput);
  take_integers(app->add_option("--vocab", options->vocab,
                                "vocabulary size, with 256 bytes and 3 special tokens"),
                260, int64_t{1} << 24)
      ->capture_default_str()
      ->group(kOutput);
  app->add_option_function<std::string>(
         "--kind",
         [](const std::string& kind) {
           if (kind == "sentencepiece") return;
           throw Error(ExitCode::usage, "--kind", "sentencepiece", kind,
                       kind == "bpe" || kind == "byte-level-bpe"
                           ? "train a byte-level BPE with Hugging Face's tokenizers (pip install "
                             "tokenizers): bamdata reads its tokenizer.json"
                           : "leave it out");
         },
         "sentencepiece, the only one")
      ->type_name("KIND")
      ->group(kOutput);
  take_integers(app->add_option("--sample-bytes", options->sample_bytes,
                                "train on N bytes of lines sampled from all the text"),
                1, int64_t{1} << 40)
      ->capture_default_str()
      ->group(kOutput);
  app->callback([options] {
    train_tokenizer(*options, stderr);
    fmt::print("{}: vocabulary of {}\n", options->output, options->vocab);
  });
}

void add_inspect(CLI::App* app, InspectOptions* options) {
  app->add_option("path", options->path,
                  "folder of shards, one shard, a pattern, or an output of bamdata tokenize")
      ->required();
  take_integers(
      app->add_option("--from", options->from, "first token to show, counted over all shards"), 0,
      int64_t{1} << 60);
  take_integers(app->add_option("--count", options->count, "number of tokens to show"), 0,
                int64_t{1} << 31);
  app->add_option("--tokenizer", options->tokenizer,
                  "tokenizer file, to show them as text too (default: the one next to the shards)")
      ->type_name("FILE");
  take_integers(app->add_option("--document-start", options->document_start,
                                "BOS id that begins a document, for shards without a manifest"),
                0, (int64_t{1} << 31) - 1)
      ->type_name("ID");
  app->add_flag("--json", options->json, "print JSON");
  app->callback([options] { inspect(*options, stdout); });
}

struct VerifyOptions {
  std::string path, tokenizer;
};

void add_verify(CLI::App* app, VerifyOptions* options) {
  app->add_option("path", options->path, "folder of shards, or an output of bamdata tokenize")
      ->required();
  app->add_option("--tokenizer", options->tokenizer,
                  "also check that this tokenizer file made them")
      ->type_name("FILE");
  app->callback([options] { verify(options->path, options->tokenizer, stdout); });
}

void add_synth(CLI::App* app, SynthOptions* options) {
  app->footer(list_of_tasks());
  app->add_option("task", options->task, "name of the task")->required();
  app->add_option("--set", options->settings, "an option of the task; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  take_integers(app->add_option("--length", options->lengths,
                                "shortest and longest source, such as 32,64 (default: the task's)"),
                1, int64_t{1} << 24)
      ->delimiter(',')
      ->expected(2)
      ->type_name("N,N");
  take_integers(app->add_option("--first", options->first, "number of the first sequence"), 0,
                Draws::kMaxIndex - 1);
  take_integers(app->add_option("--count", options->count, "number of sequences"), 0,
                int64_t{1} << 40)
      ->capture_default_str();
  take_integers(app->add_option("--seed", options->seed, "seed of the training set"), 0,
                std::numeric_limits<int64_t>::max());
  app->add_flag("--json", options->json,
                "print JSON lines: length, input, and targets with null for no target");
  app->callback([options] { synth(*options, stdout); });
}

std::optional<std::vector<Candidate>> completed_tasks(const CLI::Option& option,
                                                      const std::vector<std::string>&,
                                                      const std::string&) {
  if (option.get_name() != "task") return std::nullopt;
  std::vector<Candidate> out;
  for (const TaskInfo* task : shown_tasks()) out.push_back({task->name, task->description});
  return out;
}

int run(int argc, char** argv) {
  CLI::App app("make, inspect and verify token shards; show the sequences of tasks", "bamdata");
  set_help_format(app);
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text(), "print the version");
  TokenizeOptions tokenize_options;
  tokenize_options.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  TrainTokenizerOptions train_options;
  JoinOptions join_options;
  InspectOptions inspect_options;
  VerifyOptions verify_options;
  SynthOptions synth_options;
  add_train_tokenizer(app.add_subcommand("train-tokenizer", "train a SentencePiece model on text"),
                      &train_options);
  add_tokenize(app.add_subcommand("tokenize", "tokenize text into shards"), &tokenize_options);
  add_join(app.add_subcommand("join", "join several outputs of tokenize"), &join_options);
  add_inspect(app.add_subcommand("inspect", "show counts, document lengths and tokens of shards"),
              &inspect_options);
  add_verify(app.add_subcommand("verify", "compare shards with their manifest"), &verify_options);
  add_synth(app.add_subcommand("synth", "print training sequences of a task"), &synth_options);
  app.footer(kExitCodes);  // not of the commands, which would inherit it
  if (print_completions(app, argc, argv, completed_tasks) ||
      print_manual(app, argc, argv, version(), kSeeAlso)) {
    return 0;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    throw usage_error("bamdata", app, e);
  }
  return static_cast<int>(ExitCode::ok);
}

}  // namespace
}  // namespace bamtrain

int main(int argc, char** argv) {
  bamtrain::require_stack();
  using bamtrain::ExitCode;
  // Exceeding the file size limit (ulimit -f) then is a failed write, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  if (!bamtrain::open_standard_descriptors()) return 1;
  const auto report = [](const std::string& text, ExitCode code) {
    std::fflush(stdout);  // keep the order of output
    std::fputs(("bamdata: " + text + "\n").c_str(), stderr);
    return static_cast<int>(code);
  };
  try {
    const int code = bamtrain::run(argc, argv);
    if (code == 0) bamtrain::flush_standard_output();
    return code;
  } catch (const bamtrain::Error& e) {
    return report(e.what(), e.code());
  } catch (const bamtrain::Interrupted& e) {
    report(
        e.kept ? "interrupted; run the same command to resume" : "interrupted; nothing was written",
        ExitCode::ok);
    std::signal(e.signal, SIG_DFL);
    std::raise(e.signal);
  } catch (const std::bad_alloc&) {
    const bamtrain::Error e = bamtrain::out_of_memory("--max-document-bytes or --threads");
    return report(e.what(), e.code());
  } catch (const std::exception& e) {
    // {fmt} throws its own exception if writing to standard output fails.
    if (bamtrain::standard_output_failed()) {
      return report(bamtrain::standard_output_error(0).what(), ExitCode::io);
    }
    report(fmt::format("internal error: {}; this is a bug, please report it", e.what()),
           ExitCode::internal);
  }
  return static_cast<int>(ExitCode::internal);
}
