#pragma once
// A thread pool that tokenizes raw documents.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "data/tokenizer.h"
#include "data_tools/document_text.h"
#include "data_tools/documents.h"

namespace bamtrain {

/// Consecutive documents of one input.
struct Batch {
  std::string path;
  DocumentKind kind = DocumentKind::file;
  std::vector<RawDocument> documents;
  int64_t bytes = 0;  // bytes of their text
};

struct EncodedBatch {
  std::vector<int32_t> tokens;   // tokens of all documents, concatenated
  std::vector<int64_t> lengths;  // of each document that was not skipped
  std::vector<uint64_t> draws;   // of each, if requested
  TextCounts counts;
};

class EncoderPool {
 public:
  struct Options {
    std::string field = "text";
    InvalidUtf8 invalid_utf8 = InvalidUtf8::error;
    bool eos = false;    // end every document with EOS
    bool draws = false;  // compute ValidationSplit::draw of every text
  };

  /// `tokenizer` must outlive the pool. REQUIRES: threads >= 1; the tokenizer has a BOS, and with
  /// `eos` an EOS. Throws Error (ExitCode::device) if the system cannot start all threads; started
  /// ones are ended first.
  EncoderPool(const Tokenizer& tokenizer, Options options, int threads);
  /// Drops batches that no thread has started.
  ~EncoderPool();
  EncoderPool(const EncoderPool&) = delete;
  EncoderPool& operator=(const EncoderPool&) = delete;

  /// The future's result depends only on `batch`; get() throws the Error of the first bad document.
  std::future<EncodedBatch> submit(Batch batch);

 private:
  using Job = std::packaged_task<EncodedBatch()>;

  EncodedBatch encode(Batch& batch);
  void work();
  /// Drops batches that no thread has started, and ends the threads.
  void close();

  const Tokenizer& tokenizer_;
  Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // guarded by mutex_
  bool closing_ = false;  // guarded by mutex_
  Tokenizer::Cache cache_;
  std::vector<std::thread> threads_;
};

}  // namespace bamtrain
