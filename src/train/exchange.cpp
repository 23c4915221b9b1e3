#include "train/exchange.h"

#include <omp.h>

#include <utility>

#include "core/error.h"
#include "core/signals_blocked.h"

namespace bamtrain {

Exchange::Exchange(GroupReduction& reduction, PeerLink& link, std::span<const Tensor> sums,
                   const Tensor& messages, Mode mode)
    : reduction_(reduction), link_(link), sums_(sums), messages_(messages), gathers_(mode.gathers) {
  calls_.reserve(64);
  reduced_.reserve(64);
  if (!mode.on_host || !mode.beside) return;
  const SignalsBlocked in_thread;
  thread_ = std::thread([this] { serve(); });
}

Exchange::~Exchange() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    if (done_ < calls_.size()) link_.give_up();
  }
  changed_.notify_all();
  thread_.join();
}

void Exchange::run(size_t number, const Call& call) {
  if (call.gathers) {
    reduction_.gather(link_, call.gathered);
    return link_.mark(static_cast<int>(number));
  }
  reduction_.reduce(link_, call.reduced, sums_, messages_);
  if (!gathers_) return;
  reduced_.clear();
  for (const FlatRange& range : call.reduced) reduced_.push_back(range.of(sums_[0]));
  reduction_.gather(link_, reduced_);
}

void Exchange::serve() {
  omp_set_num_threads(1);  // of this thread's additions: the others compute
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || done_ < calls_.size(); });
    if (ends_) return;
    const size_t number = done_;
    const Call call = calls_[number];
    lock.unlock();
    std::exception_ptr failure;
    try {
      run(number, call);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    ++done_;
    changed_.notify_all();
  }
}

void Exchange::start(const Call& call) {
  size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = calls_.size();
    calls_.push_back(call);
  }
  if (!thread_.joinable()) return run(number, call);
  changed_.notify_all();
}

void Exchange::reduce(std::span<const FlatRange> ranges) { start({false, ranges, {}}); }

void Exchange::gather(std::span<const Tensor> tensors) {
  require(calls_.size() < PeerLink::kMarks, "few calls");
  start({true, {}, tensors});
}

void Exchange::wait_for_thread(size_t calls) {
  if (!thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= calls || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void Exchange::wait(size_t n) {
  require(n > 0 && n <= calls_.size(), "calls of gather()");
  wait_for_thread(n);
  link_.join(static_cast<int>(n - 1));
}

void Exchange::finish() {
  wait_for_thread(calls_.size());
  calls_.clear();
  done_ = 0;
  link_.join();
}

}  // namespace bamtrain
