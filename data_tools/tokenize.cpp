#include "data_tools/tokenize.h"

#include <fmt/format.h>

#include <deque>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/print_message.h"
#include "data_tools/encoder_pool.h"
#include "data_tools/interrupt.h"
#include "data_tools/progress.h"
#include "data_tools/shard_folders.h"
#include "data_tools/tokenize_output.h"
#include "data_tools/tokenize_settings.h"
#include "export/tokenizer_json.h"

namespace bamtrain {
namespace {

constexpr int64_t kBatchBytes = int64_t{1} << 18;
constexpr size_t kBatchDocuments = 1024;
constexpr int64_t kBytesUnderWay = int64_t{1} << 26;  // text between reader and writer

Tokenizer open_tokenizer(const TokenizeOptions& options) {
  const std::string name = std::filesystem::path(options.tokenizer).filename().string();
  if (const std::string fault = tokenizer_name_fault(name); !fault.empty()) {
    throw Error::fault(ExitCode::usage, "--tokenizer",
                       options.tokenizer + " cannot be copied next to the shards: " + fault,
                       "rename the file, or link it under another name");
  }
  Tokenizer tokenizer = Tokenizer::open(options.tokenizer);
  if (tokenizer.bos() < 0 || (options.eos && tokenizer.eos() < 0)) {
    throw Error::fault(ExitCode::data, options.tokenizer,
                       tokenizer.bos() < 0 ? "the tokenizer has no BOS, with which documents begin"
                                           : "the tokenizer has no EOS, which --eos needs",
                       "use another tokenizer");
  }
  if (options.eos && tokenizer.eos() == tokenizer.bos()) {
    throw Error::fault(
        ExitCode::usage, "--eos",
        "the tokenizer has " + tokenizer.piece(tokenizer.bos()) + " for both BOS and EOS",
        "leave --eos out: each document begins with it");
  }
  return tokenizer;
}

/// Warns about a problem that would otherwise appear hours later, when a trained model is exported.
void tell_of_export(const Tokenizer& tokenizer, const std::string& path, std::FILE* log) {
  if (tokenizer.sentencepiece() == nullptr) return;
  const std::string left_out = tokenizer_json(tokenizer, false).left_out;
  if (left_out.empty()) return;
  print_message(
      log,
      fmt::format("warning: {}: no tokenizer.json can represent it, since {}. Models trained on "
                  "these shards need bamtrain export --sentencepiece or --no-tokenizer, and "
                  "AutoTokenizer cannot read their tokenizer",
                  path, left_out));
}

/// Reads batches, keeps the threads busy, and passes on their results in text order.
class Pipeline {
 public:
  Pipeline(const TokenizeOptions& options, const Tokenizer& tokenizer, Inputs* inputs,
           TokenizeOutput* output, std::FILE* log)
      : inputs_(*inputs),
        output_(*output),
        most_batches_(2 * static_cast<size_t>(options.threads)),
        reached_(output->begun()),
        seconds_before_(reached_.seconds),
        file_(reached_.position.input),
        warnings_before_(reached_.warnings),
        progress_(log, inputs->total_bytes(),
                  {inputs->taken(), reached_.text_bytes, output->documents(), output->tokens()}),
        pool_(tokenizer,
              {options.input.field, options.input.invalid_utf8, options.eos,
               options.validation.drawn()},
              options.threads) {}

  TokenizeJournal run() {
    RawDocument document;
    while (next(&document)) add(std::move(document));
    submit();
    drain(0, 0);
    note_progress(inputs_.position(), inputs_.taken());
    return reached_;
  }

 private:
  struct UnderWay {
    std::future<EncodedBatch> result;
    int64_t bytes = 0;
    int64_t taken = 0;  // bytes of the input files up to the end of the batch
    Inputs::Position end;
  };

  bool next(RawDocument* document) {
    try {
      return inputs_.next(document);
    } catch (const Error&) {
      submit();  // earlier documents may have an earlier error
      drain(0, 0);
      throw;
    }
  }

  void add(RawDocument document) {
    const auto bytes = static_cast<int64_t>(document.text.size());
    const bool other = batch_.path != inputs_.path() || batch_.kind != inputs_.kind();
    if (other || batch_.bytes + bytes > kBatchBytes || batch_.documents.size() >= kBatchDocuments) {
      submit();
      batch_.path = inputs_.path();
      batch_.kind = inputs_.kind();
    }
    batch_.bytes += bytes;
    batch_.documents.push_back(std::move(document));
    taken_ = inputs_.taken();
    end_ = inputs_.position();
  }

  void submit() {
    if (batch_.documents.empty()) return;
    check_interrupt();
    drain(most_batches_ - 1, kBytesUnderWay);
    const int64_t bytes = batch_.bytes;
    bytes_under_way_ += bytes;
    under_way_.push_back({pool_.submit(std::exchange(batch_, {})), bytes, taken_, end_});
  }

  /// Passes on the oldest results until at most `batches` batches and `bytes` bytes are in flight.
  void drain(size_t batches, int64_t bytes) {
    while (!under_way_.empty() && (under_way_.size() > batches || bytes_under_way_ > bytes)) {
      UnderWay oldest = std::move(under_way_.front());
      under_way_.pop_front();
      write(oldest.result.get());
      check_interrupt();
      bytes_under_way_ -= oldest.bytes;
      reached_.text_bytes += oldest.bytes;
      require_mostly_utf8(reached_.counts, reached_.text_bytes);
      note_progress(oldest.end, oldest.taken);
      output_.checkpoint(reached_);
    }
  }

  void write(const EncodedBatch& encoded) {
    std::span<const int32_t> rest = encoded.tokens;
    for (size_t i = 0; i < encoded.lengths.size(); ++i) {
      const auto length = static_cast<size_t>(encoded.lengths[i]);
      output_.add(rest.first(length), encoded.draws.empty() ? 0 : encoded.draws[i]);
      rest = rest.subspan(length);
    }
    reached_.counts.add(encoded.counts);
  }

  void note_progress(const Inputs::Position& position, int64_t taken) {
    reached_.position = position;
    reached_.seconds = seconds_before_ + progress_.seconds();
    reached_.warnings = warnings_before_;
    const auto& warnings = inputs_.warnings();
    reached_.warnings.insert(reached_.warnings.end(), warnings.begin(), warnings.end());
    progress_.update({taken, reached_.text_bytes, output_.documents(), output_.tokens()});
    if (position.input != file_) {
      progress_.print_files_done(static_cast<int64_t>(position.input),
                                 static_cast<int64_t>(inputs_.options().paths.size()),
                                 inputs_.options().paths[position.input - 1]);
      file_ = position.input;
    }
  }

  Inputs& inputs_;
  TokenizeOutput& output_;
  size_t most_batches_;
  TokenizeJournal reached_;  // progress of what was passed on
  double seconds_before_;
  size_t file_;  // last file reported
  std::vector<std::string> warnings_before_;
  InputProgress progress_;
  Batch batch_;  // being filled
  std::deque<UnderWay> under_way_;
  int64_t bytes_under_way_ = 0, taken_ = 0;
  Inputs::Position end_;  // end of batch_
  EncoderPool pool_;      // last: its threads end first
};

}  // namespace

TokenizeReport tokenize(const TokenizeOptions& options, std::FILE* log) {
  require(options.threads >= 1, "at least one thread");
  const Tokenizer tokenizer = open_tokenizer(options);
  tell_of_export(tokenizer, options.tokenizer, log);
  InputOptions input = options.input;
  // One process decodes texts as fast as about thirty threads encode them.
  constexpr int kThreadsOfOne = 16;
  input.parquet_processes = 1 + (options.threads - 1) / kThreadsOfOne;
  if (!options.part.whole()) input.paths = inputs_of_part(input.paths, options.part);
  Inputs inputs(input);
  nlohmann::ordered_json settings = settings_of(options, tokenizer);
  settings["--part"] = fmt::format("{}/{}", options.part.number, options.part.of);
  const bool resumable = add_inputs(input.paths, &settings);
  const InterruptGuard guard;
  std::optional<TokenizeOutput> output;
  TokenizeOutput::remove_leftover(options.output);
  try {
    output.emplace(options, tokenizer, std::move(settings), resumable, log);
    TokenizeJournal reached = output->begun();
    if (!output->read()) {
      inputs.skip_to(reached.position);
      reached = Pipeline(options, tokenizer, &inputs, &*output, log).run();
    }
    for (const std::string& warning : reached.warnings) print_message(log, "warning: " + warning);
    return output->finish(reached);
  } catch (Interrupted& interrupted) {
    interrupted.kept = output && output->kept();
    throw;
  } catch (const Error&) {
    if (output && output->kept()) {
      print_message(log, "progress saved in " + PartialFolder::place_of(options.output) +
                             "; run the same command to resume");
    }
    throw;
  }
}

std::string describe(const TokenizeReport& report, const std::string& output) {
  std::string text = describe_set(output + "/train", report.train);
  if (report.val) text += describe_set(output + "/val", *report.val);
  const TextCounts& c = report.counts;
  if (c.empty > 0) text += fmt::format("left out: {}\n", counted(c.empty, "empty document"));
  if (c.skipped > 0) {
    text += fmt::format("left out: {} with invalid UTF-8\n", counted(c.skipped, "document"));
  }
  if (c.replaced > 0) {
    text += fmt::format("repaired: {} with invalid UTF-8\n", counted(c.replaced, "document"));
  }
  const double megabytes = static_cast<double>(report.text_bytes) / 1e6;
  return text + fmt::format("{:.1f} MB of text in {:.1f} s, {:.1f} MB/s\n", megabytes,
                            report.seconds, report.seconds > 0 ? megabytes / report.seconds : 0);
}

}  // namespace bamtrain
