#include "data_tools/train_tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_trainer.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/durable_file.h"
#include "core/error.h"
#include "core/print_message.h"
#include "core/rng.h"
#include "core/utf8.h"
#include "core/with_commas.h"
#include "data_tools/progress.h"

namespace bamtrain {
namespace {

constexpr size_t kLongestLine = 4096;  // SentencePiece aborts at words of 65,536 characters

/// The lines with the lowest random numbers, up to a number of bytes.
class LineSample {
 public:
  explicit LineSample(int64_t max_bytes) : max_bytes_(max_bytes), rng_(0, "bamdata.sample") {}

  void add_text(std::string_view text) {
    while (!text.empty()) {
      const size_t newline = text.find('\n');
      add_line(text.substr(0, newline));
      if (newline == std::string_view::npos) return;
      text.remove_prefix(newline + 1);
    }
  }

  int64_t bytes() const { return bytes_; }

  /// Returns the lines in text order.
  std::vector<std::string> take() {
    std::sort(lines_.begin(), lines_.end(),
              [](const Line& a, const Line& b) { return a.index < b.index; });
    std::vector<std::string> text;
    text.reserve(lines_.size());
    for (Line& line : lines_) text.push_back(std::move(line.text));
    lines_.clear();
    return text;
  }

 private:
  struct Line {
    uint64_t draw = 0;
    uint64_t index = 0;
    std::string text;
  };
  static bool lower(const Line& a, const Line& b) {
    return std::pair(a.draw, a.index) < std::pair(b.draw, b.index);
  }

  void add_line(std::string_view line) {
    while (line.size() > kLongestLine) {
      size_t cut = line.rfind(' ', kLongestLine);
      if (cut == std::string_view::npos || cut == 0) {
        cut = utf8_boundary_before(line, kLongestLine);
      }
      add(line.substr(0, cut));
      line.remove_prefix(line[cut] == ' ' ? cut + 1 : cut);
    }
    add(line);
  }

  void add(std::string_view text) {
    if (is_blank(text)) return;
    const uint64_t index = next_++;
    const uint64_t draw = rng_.bits(index);
    if (full_ && draw > lines_.front().draw) return;
    lines_.push_back({draw, index, std::string(text)});
    std::push_heap(lines_.begin(), lines_.end(), lower);
    bytes_ += static_cast<int64_t>(text.size());
    while (bytes_ > max_bytes_ && lines_.size() > 1) {
      full_ = true;
      std::pop_heap(lines_.begin(), lines_.end(), lower);
      bytes_ -= static_cast<int64_t>(lines_.back().text.size());
      lines_.pop_back();
    }
  }

  int64_t max_bytes_;
  Rng rng_;
  std::vector<Line> lines_;  // a heap: highest draw first
  int64_t bytes_ = 0;
  uint64_t next_ = 0;
  bool full_ = false;
};

class Sentences : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return at_ == lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  size_t at_ = 0;
};

std::string train(const std::vector<std::string>& lines, const TrainTokenizerOptions& options) {
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(options.vocab)},
      {"byte_fallback", "true"},
      {"character_coverage", "0.99995"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "true"},
      {"allow_whitespace_only_pieces", "true"},
      {"split_digits", "true"},
      {"max_sentencepiece_length", "16"},
      {"max_sentence_length", std::to_string(2 * kLongestLine)},
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "-1"},
      {"num_threads", "1"},
      {"minloglevel", "2"},
  };
  Sentences sentences(lines);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &sentences, &model);
  if (!status.ok()) {
    const std::string message = status.ToString();  // "Internal: FILE(LINE) [CONDITION] REASON"
    const size_t bracket = message.rfind("] ");
    throw Error(ExitCode::data, "--vocab " + std::to_string(options.vocab),
                "a vocabulary that the text can fill and that covers its characters",
                bracket == std::string::npos ? message : message.substr(bracket + 2),
                "change --vocab, or give more text");
  }
  return model;
}

}  // namespace

TrainTokenizerReport train_tokenizer(const TrainTokenizerOptions& options, std::FILE* log) {
  struct stat status = {};
  if (!options.overwrite && ::stat(options.output.c_str(), &status) == 0) {
    throw Error::fault(ExitCode::io, options.output, "the file exists",
                       "choose another --output, or add --overwrite");
  }
  AtomicFile file(options.output);  // early, to detect a path that cannot be written
  Inputs inputs(options.input);
  LineSample sample(options.sample_bytes);
  TrainTokenizerReport report;
  RawDocument raw;
  std::string text;
  int64_t raw_bytes = 0;
  std::optional<InputProgress> progress(std::in_place, log, inputs.total_bytes(),
                                        InputProgress::Counts());
  while (inputs.next(&raw)) {
    raw_bytes += static_cast<int64_t>(raw.text.size());
    const bool kept =
        document_text(std::move(raw), inputs.path(), inputs.kind(), options.input.field,
                      options.input.invalid_utf8, &text, &report.counts);
    require_mostly_utf8(report.counts, raw_bytes);
    if (!kept) continue;
    report.documents += 1;
    report.bytes += static_cast<int64_t>(text.size());
    sample.add_text(text);
    progress->update({inputs.taken(), report.bytes, report.documents, 0});
  }
  progress.reset();
  for (const std::string& warning : inputs.warnings()) print_message(log, "warning: " + warning);
  if (report.documents == 0) {
    throw Error::fault(ExitCode::data, "input", "no document with visible characters",
                       "check the inputs and --document");
  }
  report.sample_bytes = sample.bytes();
  const std::vector<std::string> lines = sample.take();
  report.sample_lines = static_cast<int64_t>(lines.size());
  print_message(log, fmt::format("training on {} lines, {:.1f} MB of {:.1f} MB",
                                 with_commas(report.sample_lines),
                                 static_cast<double>(report.sample_bytes) / 1e6,
                                 static_cast<double>(report.bytes) / 1e6));
  const std::string model = train(lines, options);
  file.write(model);
  file.commit();
  return report;
}

}  // namespace bamtrain
