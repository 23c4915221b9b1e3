#include "data_tools/encoder_pool.h"

#include <memory>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/signals_blocked.h"
#include "data_tools/validation_split.h"

namespace bamtrain {

EncoderPool::EncoderPool(const Tokenizer& tokenizer, Options options, int threads)
    : tokenizer_(tokenizer), options_(std::move(options)) {
  require(threads >= 1 && tokenizer.bos() >= 0 && (!options_.eos || tokenizer.eos() >= 0),
          "a thread, a BOS, and an EOS where it is asked for");
  const auto count = static_cast<size_t>(threads);
  threads_.reserve(count);
  const SignalsBlocked blocked;
  try {
    while (threads_.size() < count) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& e) {
    close();
    throw Error::fault(ExitCode::device, "--threads",
                       "cannot start " + std::to_string(threads) + " threads: " + e.what(),
                       "ask for fewer");
  } catch (...) {
    close();
    throw;
  }
}

EncoderPool::~EncoderPool() { close(); }

void EncoderPool::close() {
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
  Job job([this, shared] { return encode(*shared); });
  std::future<EncodedBatch> result = job.get_future();
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
  return result;
}

void EncoderPool::work() {
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closing_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

EncodedBatch EncoderPool::encode(Batch& batch) {
  EncodedBatch out;
  std::string text;
  for (RawDocument& raw : batch.documents) {
    if (!document_text(std::move(raw), batch.path, batch.kind, options_.field,
                       options_.invalid_utf8, &text, &out.counts)) {
      continue;
    }
    if (options_.draws) out.draws.push_back(ValidationSplit::draw(text));
    const size_t begin = out.tokens.size();
    out.tokens.push_back(tokenizer_.bos());
    tokenizer_.encode(text, &cache_, &out.tokens);
    if (options_.eos) out.tokens.push_back(tokenizer_.eos());
    out.lengths.push_back(static_cast<int64_t>(out.tokens.size() - begin));
  }
  batch.documents.clear();
  return out;
}

}  // namespace bamtrain
