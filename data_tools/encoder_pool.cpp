#include "data_tools/encoder_pool.h"

#include <signal.h>

#include <memory>
#include <utility>

#include "core/error.h"

namespace bamtrain {

EncoderPool::EncoderPool(const Tokenizer& tokenizer, Options options, int threads)
    : tokenizer_(tokenizer), options_(std::move(options)) {
  require(threads >= 1 && tokenizer.bos() >= 0 && (!options_.eos || tokenizer.eos() >= 0),
          "a thread, a BOS, and an EOS where it is asked for");
  // Signals go to the caller's thread, where they end a blocked read.
  sigset_t all, former;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &former);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

EncoderPool::~EncoderPool() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    jobs_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::future<EncodedBatch> EncoderPool::submit(Batch batch) {
  auto shared = std::make_shared<Batch>(std::move(batch));
  Job job([this, shared](Tokenizer::Cache* cache) { return encode(*shared, cache); });
  std::future<EncodedBatch> result = job.get_future();
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
  return result;
}

void EncoderPool::work() {
  Tokenizer::Cache cache;
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closing_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job(&cache);
  }
}

EncodedBatch EncoderPool::encode(Batch& batch, Tokenizer::Cache* cache) const {
  EncodedBatch out;
  std::string text;
  for (RawDocument& raw : batch.documents) {
    if (!document_text(std::move(raw), batch.path, batch.kind, options_.field,
                       options_.invalid_utf8, &text, &out.counts)) {
      continue;
    }
    const size_t begin = out.tokens.size();
    out.tokens.push_back(tokenizer_.bos());
    tokenizer_.encode(text, cache, &out.tokens);
    if (options_.eos) out.tokens.push_back(tokenizer_.eos());
    out.lengths.push_back(static_cast<int64_t>(out.tokens.size() - begin));
  }
  batch.documents.clear();
  return out;
}

}  // namespace bamtrain
