#include "train/gradient_exchange.h"

#include <omp.h>

#include <utility>

#include "core/signals_blocked.h"

namespace bamtrain {

GradientExchange::GradientExchange(GroupReduction& reduction, PeerLink& link,
                                   std::span<const Tensor> sums, const Tensor& messages, Mode mode)
    : reduction_(reduction),
      link_(link),
      sums_(sums),
      messages_(messages),
      gathers_(mode.gathers),
      parts_(sums.size()) {
  started_.reserve(64);
  if (!mode.on_host || !mode.beside) return;
  const SignalsBlocked in_thread;
  thread_ = std::thread([this] { serve(); });
}

GradientExchange::~GradientExchange() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    if (done_ < started_.size()) link_.give_up();
  }
  changed_.notify_all();
  thread_.join();
}

void GradientExchange::run(FlatRange range) {
  for (size_t n = 0; n < sums_.size(); ++n) {
    parts_[n] = range.of(sums_[n]);
  }
  gathers_ ? reduction_.run(link_, parts_, messages_) : reduction_.reduce(link_, parts_, messages_);
}

void GradientExchange::serve() {
  omp_set_num_threads(1);  // of this thread's additions: the others compute
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || done_ < started_.size(); });
    if (ends_) return;
    const FlatRange range = started_[done_];
    lock.unlock();
    std::exception_ptr failure;
    try {
      run(range);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    ++done_;
    changed_.notify_all();
  }
}

void GradientExchange::start(FlatRange range) {
  if (!thread_.joinable()) return run(range);
  {
    const std::lock_guard lock(mutex_);
    started_.push_back(range);
  }
  changed_.notify_all();
}

void GradientExchange::finish() {
  if (thread_.joinable()) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_ == started_.size(); });
    started_.clear();
    done_ = 0;
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  link_.join();
}

}  // namespace bamtrain
