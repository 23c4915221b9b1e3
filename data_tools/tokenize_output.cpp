#include "data_tools/tokenize_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/durable_file.h"
#include "core/error.h"
#include "core/folder_lock.h"
#include "core/print_message.h"
#include "core/with_commas.h"
#include "data_tools/interrupt.h"
#include "data_tools/progress.h"
#include "data_tools/shard_folders.h"
#include "data_tools/tokenize_settings.h"

namespace bamtrain {
namespace {

namespace fs = std::filesystem;
using std::chrono::duration;

constexpr double kMostShare = 0.05;  // most share of time for checkpoints

/// Only the first of several parts has the first tokens.
ValidationShare validation_share(const TokenizeOptions& options) {
  return options.validation.tokens > 0 && options.part.number > 1 ? ValidationShare()
                                                                  : options.validation;
}

std::string journal_in(const std::string& folder) { return folder + "/" + TokenizeJournal::kName; }

/// Whether the journal's finished output is still in the folder and not yet moved; its destination
/// is then unchanged.
bool has_finished(const std::string& folder, const TokenizeJournal& journal) {
  const std::string manifest = folder + "/" + PartialFolder::kOutput + "/train/" + kManifestName;
  return fs::exists(manifest) && sha256_file(manifest) == journal.finished;
}

}  // namespace

TokenizeOutput::TokenizeOutput(const TokenizeOptions& options, const Tokenizer& tokenizer,
                               nlohmann::ordered_json settings, bool resumable, std::FILE* log)
    : options_(options),
      resumable_(resumable),
      log_(log),
      folder_(options.output, may_replace_shards(options.overwrite)),
      journal_path_(journal_in(folder_.path())) {
  journal_.settings = std::move(settings);
  if (fs::exists(journal_path_)) {
    go_on_from_journal();
  } else {
    folder_.clear();
  }
  if (journal_.finished.empty()) open(tokenizer);
  due_ = Clock::now() +
         std::chrono::duration_cast<Clock::duration>(duration<double>(options.checkpoint_seconds));
}

void TokenizeOutput::remove_leftover(const std::string& output) {
  const std::string folder = PartialFolder::place_of(output);
  if (!PartialFolder::is_one(folder)) return;
  const FolderLock lock(folder);
  bool goes_on = false;
  if (fs::exists(journal_in(folder))) {
    const TokenizeJournal journal = read_journal(journal_in(folder));
    goes_on = journal.finished.empty() || has_finished(folder, journal);
  }
  if (!goes_on) PartialFolder::remove(folder);
}

void TokenizeOutput::go_on_from_journal() {
  folder_.keep();
  TokenizeJournal found = read_journal(journal_path_);
  require_same_settings(found.settings, journal_.settings, folder_.path());
  std::swap(found.settings, journal_.settings);
  journal_ = std::move(found);
  print_message(log_, fmt::format("resuming in {}, after {} and {}", folder_.path(),
                                  counted(journal_.split.documents, "document"),
                                  counted(journal_.split.tokens, "token")));
}

void TokenizeOutput::open(const Tokenizer& tokenizer) {
  const std::string output = folder_.output(), train = output + "/train", val = output + "/val";
  make_folders(train);
  const int width = ShardSetWriter::width_of(tokenizer);
  const ValidationShare share = validation_share(options_);
  train_.emplace(train, tokenizer, options_.shard_tokens, journal_.train);
  if (share.any()) {
    make_folders(val);
    val_.emplace(val, tokenizer, options_.shard_tokens, journal_.val);
  }
  if (options_.shuffle) {
    const std::string spill = folder_.path() + "/" + PartialFolder::kShuffle;
    make_folders(spill);
    shuffle_.emplace(spill, width, *options_.shuffle,
                     journal_.shuffle.value_or(DocumentShuffle::State()));
  }
  DocumentSink* sink = &*train_;
  if (shuffle_) sink = &*shuffle_;
  split_.emplace(share, sink, val_ ? &*val_ : nullptr, folder_.path() + "/" + PartialFolder::kHeld,
                 width, journal_.split);
}

/// Files reach the disk before the journal that refers to them.
void TokenizeOutput::write_checkpoint() {
  const Clock::time_point begin = Clock::now();
  journal_.train = train_->sync();
  if (val_) journal_.val = val_->sync();
  if (!journal_.placed) {
    if (shuffle_) journal_.shuffle = shuffle_->sync();
    journal_.split = split_->sync();
  }
  if (!folder_.kept()) sync_folder(folder_.output());
  write_journal(journal_path_, journal_);
  folder_.keep();
  const Clock::time_point now = Clock::now();
  const double took = duration<double>(now - begin).count();
  due_ = now + std::chrono::duration_cast<Clock::duration>(
                   duration<double>(std::max(options_.checkpoint_seconds, took / kMostShare)));
}

void TokenizeOutput::checkpoint(const TokenizeJournal& reached) {
  if (!is_due()) return;
  take(reached);
  write_checkpoint();
}

void TokenizeOutput::take(const TokenizeJournal& reached) {
  journal_.position = reached.position;
  journal_.text_bytes = reached.text_bytes;
  journal_.counts = reached.counts;
  journal_.seconds = reached.seconds;
  journal_.warnings = reached.warnings;
}

void TokenizeOutput::place_shuffled() {
  constexpr std::chrono::seconds kBetweenNotes{5};
  Clock::time_point noted = Clock::now();
  for (int64_t bucket = *journal_.placed; bucket < DocumentShuffle::kBuckets; ++bucket) {
    check_interrupt();
    shuffle_->write(static_cast<int>(bucket), &*train_);
    journal_.placed = bucket + 1;
    if (is_due()) write_checkpoint();
    if (Clock::now() < noted + kBetweenNotes) continue;
    noted = Clock::now();
    print_message(log_, fmt::format("shuffling: {} of {}", with_commas(train_->documents()),
                                    counted(journal_.split.train, "document")));
  }
}

void TokenizeOutput::write_part() const {
  nlohmann::ordered_json json;
  json["part"] = options_.part.number;
  json["of"] = options_.part.of;
  json["inputs"] = digest_of_inputs(options_.input.paths);
  for (const auto& item : journal_.settings.items()) {
    const std::string& key = item.key();
    // Parts of equal tokens can be joined, whatever their tokenizer's file is called.
    const bool of_part = key == "--part" || key == kTokenizerName || key.starts_with("input");
    if (!of_part) json["settings"][key] = item.value();
  }
  AtomicFile file(folder_.output() + "/" + kPartName);
  file.write(json.dump(2) + "\n");
  file.commit();
}

TokenizeReport TokenizeOutput::finish(const TokenizeJournal& reached) {
  const std::string output = folder_.output();
  if (journal_.finished.empty()) {
    if (!journal_.placed) {
      take(reached);
      split_->finish(options_.part.whole());
      // From here on the held documents are in the validation set, and the files that they came
      // from stay unchanged.
      journal_.split = split_->sync();
      if (shuffle_) journal_.shuffle = shuffle_->sync();
      journal_.placed = 0;
      if (folder_.kept()) write_checkpoint();
    }
    if (shuffle_) place_shuffled();
    train_->finish();
    if (val_ && val_->tokens() > 0) {
      val_->finish();
    } else if (val_) {
      remove_tree(output + "/val");
    }
    if (!options_.part.whole()) write_part();
    journal_.finished = sha256_file(output + "/train/" + kManifestName);
    if (folder_.kept()) write_journal(journal_path_, journal_);
  }
  TokenizeReport report;
  report.train = read_manifest(output + "/train/" + kManifestName);
  if (fs::exists(output + "/val")) report.val = read_manifest(output + "/val/" + kManifestName);
  report.counts = journal_.counts;
  report.text_bytes = journal_.text_bytes;
  report.seconds = journal_.seconds;
  check_interrupt();
  folder_.commit();
  return report;
}

}  // namespace bamtrain
