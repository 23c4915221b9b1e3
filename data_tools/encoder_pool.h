#pragma once
// Threads that turn raw documents into tokens.

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

/// Documents that follow one another in one input.
struct Batch {
  std::string path;
  DocumentKind kind = DocumentKind::file;
  std::vector<RawDocument> documents;
  int64_t bytes = 0;  // of their text
};

struct EncodedBatch {
  std::vector<int32_t> tokens;   // of all documents, one behind the other
  std::vector<int64_t> lengths;  // of each document that was not left out
  std::vector<uint64_t> draws;   // of each, where they are asked for
  TextCounts counts;
};

class EncoderPool {
 public:
  struct Options {
    std::string field = "text";
    InvalidUtf8 invalid_utf8 = InvalidUtf8::error;
    bool eos = false;    // ends every document, as BOS begins it
    bool draws = false;  // ValidationSplit::draw of every text
  };

  /// `tokenizer` must outlive the pool. REQUIRES: threads >= 1; the tokenizer has a BOS, and with
  /// `eos` an EOS. Error (ExitCode::device) where the system starts fewer threads; none is left
  /// then.
  EncoderPool(const Tokenizer& tokenizer, Options options, int threads);
  /// Drops what no thread has begun.
  ~EncoderPool();
  EncoderPool(const EncoderPool&) = delete;
  EncoderPool& operator=(const EncoderPool&) = delete;

  /// What get() returns depends on `batch` alone; it throws the Error of the first bad document.
  std::future<EncodedBatch> submit(Batch batch);

 private:
  using Job = std::packaged_task<EncodedBatch()>;

  EncodedBatch encode(Batch& batch);
  void work();
  /// Drops what no thread has begun and ends the threads.
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
