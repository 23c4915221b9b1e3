#include "data_tools/tokenize.h"

#include <fmt/format.h>

#include <deque>
#include <future>
#include <memory>
#include <utility>

#include "core/error.h"
#include "core/note.h"
#include "core/output_folder.h"
#include "data_tools/encoder_pool.h"
#include "data_tools/interrupt.h"
#include "data_tools/progress.h"
#include "data_tools/shard_folders.h"
#include "data_tools/shard_set_writer.h"

namespace bamtrain {
namespace {

constexpr int64_t kBatchBytes = int64_t{1} << 18;
constexpr size_t kBatchDocuments = 1024;
constexpr int64_t kBytesUnderWay = int64_t{1} << 26;  // of text between reader and writer

Tokenizer open_tokenizer(const TokenizeOptions& options) {
  Tokenizer tokenizer = Tokenizer::open(options.tokenizer);
  if (tokenizer.bos() < 0 || (options.eos && tokenizer.eos() < 0)) {
    throw Error(ExitCode::data, options.tokenizer,
                options.eos ? "a tokenizer with BOS and EOS"
                            : "a tokenizer with a BOS, with which "
                              "documents begin",
                "one without", "use another tokenizer");
  }
  if (options.eos && tokenizer.eos() == tokenizer.bos()) {
    throw Error(ExitCode::usage, "--eos", "a tokenizer whose EOS is not its BOS",
                "one with " + tokenizer.piece(tokenizer.bos()) + " for both",
                "leave --eos out: each document begins with it");
  }
  return tokenizer;
}

/// Reads batches, keeps the threads busy, writes what they return in the order of the text.
class Pipeline {
 public:
  Pipeline(const TokenizeOptions& options, const Tokenizer& tokenizer, ValidationSplit* sink,
           ShardSetWriter* train, ShardSetWriter* val, Inputs* inputs, std::FILE* log)
      : inputs_(*inputs),
        sink_(*sink),
        train_(*train),
        val_(val),
        most_batches_(2 * static_cast<size_t>(options.threads)),
        progress_(log, inputs->total_bytes()),
        pool_(tokenizer, {options.input.field, options.input.invalid_utf8, options.eos},
              options.threads) {}

  void run(TokenizeReport* report) {
    RawDocument document;
    while (next(&document)) add(std::move(document));
    submit();
    drain(0, 0);
    report->counts = counts_;
    report->text_bytes = text_bytes_;
    report->seconds = progress_.seconds();
  }

 private:
  struct UnderWay {
    std::future<EncodedBatch> result;
    int64_t bytes = 0;
    int64_t taken = 0;  // bytes of the input files up to the end of the batch
  };

  bool next(RawDocument* document) {
    try {
      return inputs_.next(document);
    } catch (const Error&) {
      submit();  // documents before the one that cannot be read may hold an earlier error
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
  }

  void submit() {
    if (batch_.documents.empty()) return;
    check_interrupt();
    drain(most_batches_ - 1, kBytesUnderWay);
    const int64_t bytes = batch_.bytes;
    bytes_under_way_ += bytes;
    under_way_.push_back({pool_.submit(std::exchange(batch_, {})), bytes, taken_});
  }

  /// Writes the oldest results until no more than so many batches and bytes are under way.
  void drain(size_t batches, int64_t bytes) {
    while (!under_way_.empty() && (under_way_.size() > batches || bytes_under_way_ > bytes)) {
      UnderWay oldest = std::move(under_way_.front());
      under_way_.pop_front();
      write(oldest.result.get());
      check_interrupt();
      bytes_under_way_ -= oldest.bytes;
      text_bytes_ += oldest.bytes;
      progress_.update({oldest.taken, text_bytes_, sink_.documents(),
                        train_.tokens() + (val_ ? val_->tokens() : 0)});
    }
  }

  void write(const EncodedBatch& encoded) {
    std::span<const int32_t> rest = encoded.tokens;
    for (int64_t length : encoded.lengths) {
      sink_.add(rest.first(static_cast<size_t>(length)));
      rest = rest.subspan(static_cast<size_t>(length));
    }
    counts_.empty += encoded.counts.empty;
    counts_.replaced += encoded.counts.replaced;
    counts_.skipped += encoded.counts.skipped;
  }

  Inputs& inputs_;
  ValidationSplit& sink_;
  const ShardSetWriter& train_;
  const ShardSetWriter* val_;
  size_t most_batches_;
  InputProgress progress_;
  Batch batch_;  // being filled
  std::deque<UnderWay> under_way_;
  int64_t bytes_under_way_ = 0, text_bytes_ = 0, taken_ = 0;
  TextCounts counts_;
  EncoderPool pool_;  // last: its threads end first
};

std::string describe_set(const std::string& path, const Manifest& m) {
  return fmt::format("{}: {}, {}, {}\n", path, counted(m.tokens, "token"),
                     counted(m.documents, "document"),
                     counted(static_cast<int64_t>(m.shards.size()), "shard"));
}

}  // namespace

TokenizeReport tokenize(const TokenizeOptions& options, std::FILE* log) {
  require(options.threads >= 1, "at least one thread");
  const Tokenizer tokenizer = open_tokenizer(options);
  InputOptions input = options.input;
  // Of texts one decodes in a second what some thirty threads encode.
  constexpr int kThreadsOfOne = 16;
  input.parquet_processes = 1 + (options.threads - 1) / kThreadsOfOne;
  Inputs inputs(input);
  const InterruptGuard guard;
  OutputFolder output(options.output, may_replace_shards(options.overwrite));
  for (const std::string& leftover : output.removed_leftovers()) {
    note(log, "removed " + leftover + ", which a run that was killed had left");
  }
  ShardSetWriter train(output.subfolder("train"), tokenizer, options.shard_tokens);
  std::optional<ShardSetWriter> val;
  if (options.validation.documents > 0 || options.validation.fraction > 0) {
    val.emplace(output.subfolder("val"), tokenizer, options.shard_tokens);
  }
  ValidationSplit split(options.validation, &train, val ? &*val : nullptr);
  TokenizeReport report;
  Pipeline(options, tokenizer, &split, &train, val ? &*val : nullptr, &inputs, log).run(&report);
  for (const std::string& warning : inputs.warnings()) note(log, "warning: " + warning);
  split.finish();
  report.train = train.finish();
  if (val) report.val = val->finish();
  check_interrupt();
  output.commit();
  return report;
}

std::string describe(const TokenizeReport& report, const std::string& output) {
  std::string text = describe_set(output + "/train", report.train);
  if (report.val) text += describe_set(output + "/val", *report.val);
  const TextCounts& c = report.counts;
  if (c.empty > 0) text += fmt::format("left out: {}\n", counted(c.empty, "empty document"));
  if (c.skipped > 0) {
    text += fmt::format("left out: {} of invalid UTF-8\n", counted(c.skipped, "document"));
  }
  if (c.replaced > 0) {
    text += fmt::format("repaired: {} of invalid UTF-8\n", counted(c.replaced, "document"));
  }
  const double megabytes = static_cast<double>(report.text_bytes) / 1e6;
  return text + fmt::format("{:.1f} MB of text in {:.1f} s, {:.1f} MB/s\n", megabytes,
                            report.seconds, report.seconds > 0 ? megabytes / report.seconds : 0);
}

}  // namespace bamtrain
