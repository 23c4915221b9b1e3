// bamdata: makes token shards from text, and inspects shards.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <exception>
#include <limits>
#include <new>
#include <string>
#include <thread>

#include "core/error.h"
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

constexpr const char* kTokenizeExamples = R"(
Examples:
  bamdata tokenize --tokenizer t.model --document blank-line --val-documents 100 \
    --output data book1.txt book2.txt.xz
  bamdata tokenize --tokenizer t.model --val-fraction 0.001 --output data fineweb/*.jsonl.zst
  bamdata tokenize --tokenizer tokenizer.json --output data fineweb/*.parquet
  bamdata tokenize --tokenizer t.model --part 3/8 --output data-3 fineweb/*.parquet
)";

constexpr const char* kExitCodes = R"(
Exit codes: 0 success, 2 bad command line, 4 bad data (text, tokenizer, shards, manifest),
6 a file or folder that cannot be read or written, 9 too little memory, too small a stack, no
thread, or no pyarrow, 1 a bug in bamdata. A signal ends it as it ends any program (130 after Ctrl-C).
)";

void add_input_options(CLI::App* app, InputOptions* options) {
  app->add_option("input", options->paths,
                  "Text files: .txt or .jsonl, plain or compressed by zstd (.zst), xz (.xz) or "
                  "gzip (.gz), or "
                  "parquet, "
                  "which takes Python's pyarrow; - is standard input. Read in this order")
      ->required();
  take_words(
      app->add_option("--format", options->format,
                      "What the inputs hold, instead of what their names say (needed for -)"),
      {"txt", "jsonl"});
  take_words(
      app->add_option_function<std::string>(
          "--document",
          [options](const std::string& name) { options->kind = document_kind_named(name); },
          "What a document of a text input is: a line; the whole file; a block between blank "
          "lines; "
          "a WikiText article (from a title \" = Title = \" between blank lines to the next). "
          "Required for text; JSON lines inputs are always jsonl: a field of each line's object"),
      document_kind_names());
  app->add_option("--field", options->field, "The field of JSON lines that holds the text")
      ->capture_default_str();
  take_words(
      app->add_option_function<std::string>(
          "--invalid-utf8",
          [options](const std::string& name) {
            options->invalid_utf8 = name == "replace" ? InvalidUtf8::replace
                                    : name == "skip"  ? InvalidUtf8::skip
                                                      : InvalidUtf8::error;
          },
          "A document that is not UTF-8: stop and name the place (error, the default); put U+FFFD "
          "for each bad part (replace); leave the document out and count it (skip)"),
      {"error", "replace", "skip"});
  take_integers(app->add_option("--max-document-bytes", options->max_document_bytes,
                                "A longer document (or line) is an error; it bounds the memory"),
                1, int64_t{1} << 40)
      ->capture_default_str();
}

void add_validation_options(CLI::App* app, ValidationShare* share, CLI::Option* shuffle) {
  CLI::Option* documents = take_integers(
      app->add_option("--val-documents", share->documents,
                      "So many documents for validation: those whose text's SHA-256 begins lowest"),
      1, int64_t{1} << 40);
  CLI::Option* fraction = take_numbers(
      app->add_option("--val-fraction", share->fraction,
                      "Each document goes to validation with this probability, by its text's "
                      "SHA-256: wherever it stands it goes to the same set"),
      "a number from 1e-9 to 0.999", [](double x) { return x >= 1e-9 && x <= 0.999; });
  CLI::Option* tokens = take_integers(
      app->add_option("--val-tokens", share->tokens,
                      "The first so many tokens, cut wherever they end, are the validation set"),
      1, int64_t{1} << 50);
  take_integers(app->add_option("--unused-tokens", share->unused,
                                "So many tokens behind --val-tokens are in neither set"),
                1, int64_t{1} << 50)
      ->needs(tokens);
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
    throw Error(ExitCode::usage, "--part", "N/OF, a part of so many, such as 3/8", text,
                "count parts from 1");
  }
  return part;
}

void add_tokenize(CLI::App* app, TokenizeOptions* options) {
  app->footer(kTokenizeExamples);
  add_input_options(app, &options->input);
  app->add_option("--tokenizer", options->tokenizer,
                  "A tokenizer's file with a BOS: a SentencePiece model, tokenizer.json or "
                  "tiktoken's ranks of a byte-level BPE, tekken.json")
      ->required();
  app->add_option("--output", options->output,
                  "The folder to make: train/*.bin and train/manifest.json, and val/ likewise. It "
                  "appears complete at the end or not at all; until then the work is in "
                  "NAME.partial, where the same command goes on after a kill or an error")
      ->required();
  CLI::Option* shuffle = take_integers(
      app->add_option("--shuffle", options->shuffle,
                      "Put training documents in a random order, of this seed, across all inputs; "
                      "takes as much room on the disk again meanwhile"),
      0, std::numeric_limits<int64_t>::max());
  add_validation_options(app, &options->validation, shuffle);
  app->add_option_function<std::string>(
         "--part", [options](const std::string& text) { options->part = part_named(text); },
         "One of several parts of the inputs, \"3/8\" the third of eight: whole files, in their "
         "order. Each is a call of its own, on any machine, into an output of its own; `bamdata "
         "join` makes one of them")
      ->type_name("N/OF");
  take_integers(app->add_option("--shard-tokens", options->shard_tokens,
                                "A shard is closed after the document that reaches this"),
                1, ShardFormat::kMaxTokens)
      ->capture_default_str();
  take_integers(
      app->add_option("--threads", options->threads,
                      "Threads that encode; the output does not depend on it (default: all cores)"),
      1, 1024);
  app->add_flag("--eos", options->eos, "End each document with EOS (it begins with BOS always)");
  app->add_flag("--overwrite", options->overwrite, "Replace a folder of shards at --output");
  app->callback([options] {
    if (options->validation.documents > 0 && !options->part.whole()) {
      throw Error(ExitCode::usage, "--val-documents", "all documents in one call",
                  "--part, which has some of them", "give --val-fraction");
    }
    require_expanded_path(options->output, ExitCode::usage, "--output");
    const TokenizeReport report = tokenize(*options, stderr);
    fmt::print("{}", describe(report, options->output));
  });
}

void add_join(CLI::App* app, JoinOptions* options) {
  app->footer(
      "\nShards are linked, or copied where they cannot be; the inputs may go afterwards. Parts "
      "of\n"
      "--part come in their order, other sets in the one given.\n");
  app->add_option("input", options->inputs, "Outputs of tokenize")->required();
  app->add_option("--output", options->output, "The folder to make")->required();
  app->add_flag("--overwrite", options->overwrite, "Replace a folder of shards at --output");
  app->callback([options] {
    require_expanded_path(options->output, ExitCode::usage, "--output");
    const JoinReport report = join(*options, stderr);
    fmt::print("{}", describe_set(options->output + "/train", report.train));
    if (report.val) fmt::print("{}", describe_set(options->output + "/val", *report.val));
  });
}

void add_train_tokenizer(CLI::App* app, TrainTokenizerOptions* options) {
  app->footer(
      "\nThe model is BPE with byte fallback, identity normalisation, single digits, a space put\n"
      "before each text, pieces of at most 16 characters; 0 <unk>, 1 <s> (BOS), 2 </s> (EOS).\n"
      "The same text and options give the same model.\n");
  add_input_options(app, &options->input);
  take_integers(app->add_option("--vocab", options->vocab,
                                "Number of ids, the 256 bytes and 3 signs included"),
                260, int64_t{1} << 24)
      ->capture_default_str();
  app->add_option_function<std::string>(
         "--kind",
         [](const std::string& kind) {
           if (kind == "sentencepiece") return;
           throw Error(ExitCode::usage, "--kind", "sentencepiece", kind,
                       kind == "bpe" || kind == "byte-level-bpe"
                           ? "train a byte-level BPE with Hugging Face's tokenizers (pip install "
                             "tokenizers), whose tokenizer.json bamdata takes"
                           : "leave it out");
         },
         "sentencepiece, the only one")
      ->type_name("KIND");
  app->add_option("--output", options->output, "The model file to write")->required();
  take_integers(app->add_option("--sample-bytes", options->sample_bytes,
                                "Train on lines drawn from all the text that fill so many bytes"),
                1, int64_t{1} << 40)
      ->capture_default_str();
  app->add_flag("--overwrite", options->overwrite, "Replace a file at --output");
  app->callback([options] {
    train_tokenizer(*options, stderr);
    fmt::print("{}: a vocabulary of {}\n", options->output, options->vocab);
  });
}

void add_inspect(CLI::App* app, InspectOptions* options) {
  app->add_option("path", options->path,
                  "A folder of shards, one shard, a pattern, or the output of tokenize")
      ->required();
  take_integers(
      app->add_option("--from", options->from, "The first token to show, counted over all shards"),
      0, int64_t{1} << 60);
  take_integers(app->add_option("--count", options->count, "How many tokens to show"), 0,
                int64_t{1} << 31);
  app->add_option("--tokenizer", options->tokenizer,
                  "Show them as text too, by this tokenizer's file");
  take_integers(app->add_option("--document-start", options->document_start,
                                "The id that begins a document, where no manifest says it"),
                0, (int64_t{1} << 31) - 1);
  app->add_flag("--json", options->json, "Print JSON");
  app->callback([options] { inspect(*options, stdout); });
}

struct VerifyOptions {
  std::string path, tokenizer;
};

void add_verify(CLI::App* app, VerifyOptions* options) {
  app->add_option("path", options->path, "A folder of shards, or the output of tokenize")
      ->required();
  app->add_option("--tokenizer", options->tokenizer,
                  "Also check that this tokenizer's file made them");
  app->callback([options] { verify(options->path, options->tokenizer, stdout); });
}

void add_synth(CLI::App* app, SynthOptions* options) {
  app->footer(list_of_tasks());
  app->add_option("task", options->task, "The task's name")->required();
  app->add_option("--set", options->settings, "An option of the task, KEY=VALUE")
      ->allow_extra_args(false);
  take_integers(app->add_option("--length", options->lengths,
                                "Shortest and longest source, \"32,64\" (default: the task's)"),
                1, int64_t{1} << 24)
      ->delimiter(',')
      ->expected(2);
  take_integers(app->add_option("--first", options->first, "The first sequence's number"), 0,
                Draws::kMaxIndex - 1);
  take_integers(app->add_option("--count", options->count, "How many sequences"), 0,
                int64_t{1} << 40)
      ->capture_default_str();
  take_integers(app->add_option("--seed", options->seed, "Of the training set"), 0,
                std::numeric_limits<int64_t>::max());
  app->add_flag("--json", options->json,
                "Print JSON lines: length, input, and targets with null where none is asked for");
  app->callback([options] { synth(*options, stdout); });
}

int run(int argc, char** argv) {
  CLI::App app("Makes token shards from text, and shows and checks them; shows tasks.", "bamdata");
  app.footer(kExitCodes);
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text());
  TokenizeOptions tokenize_options;
  tokenize_options.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  TrainTokenizerOptions train_options;
  JoinOptions join_options;
  InspectOptions inspect_options;
  VerifyOptions verify_options;
  SynthOptions synth_options;
  add_train_tokenizer(app.add_subcommand("train-tokenizer", "A SentencePiece model from text"),
                      &train_options);
  add_tokenize(app.add_subcommand("tokenize", "Text into token shards"), &tokenize_options);
  add_join(app.add_subcommand("join", "Several outputs of tokenize into one"), &join_options);
  add_inspect(app.add_subcommand("inspect", "Counts, document lengths and tokens of shards"),
              &inspect_options);
  add_verify(app.add_subcommand("verify", "Compare shards with their manifest"), &verify_options);
  add_synth(app.add_subcommand("synth", "Sequences of a task, as a model is trained on them"),
            &synth_options);
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
    report(e.kept ? "interrupted: the same command goes on from here"
                  : "interrupted, nothing was written",
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
