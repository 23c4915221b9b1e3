#include "core/arena.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <map>

#include "core/checked.h"
#include "core/memory_limit.h"

namespace bamtrain {

namespace {
constexpr int64_t kAlignment = 64;  // one cache line, one AVX-512 vector
constexpr const char* kRemedy =
    "lower train.micro_batch, data.sequence_length, train.lanes or the model's sizes";
}  // namespace

Arena::~Arena() {
  if (memory_) munmap(memory_, static_cast<size_t>(total_));
}

void Arena::add(const std::string& name, Tensor* target, Dtype dtype,
                std::initializer_list<int64_t> dims) {
  require(memory_ == nullptr, "Arena::add before Arena::commit");
  int64_t bytes = static_cast<int64_t>(size_of(dtype));
  for (int64_t d : dims) bytes = checked_mul(bytes, d, "memory plan: " + name);
  bytes =
      ceil_div(checked_add(bytes, kAlignment, "memory plan: " + name) - kAlignment, kAlignment) *
      kAlignment;
  *target = Tensor(nullptr, dtype, dims);
  entries_.push_back({name, name.substr(0, name.find('.')), dtype, bytes, total_, target});
  total_ = checked_add(total_, bytes, "memory plan: " + name);
}

void Arena::check_fits(int64_t beside) const {
  const MemoryLimit limit = memory_limit();
  if (beside <= limit.bytes && total_ <= limit.bytes - beside) return;
  throw Error(ExitCode::device, "memory plan",
              fmt::format("at most {} MiB, {}", limit.bytes >> 20, limit.source),
              fmt::format("{} MiB", (total_ >> 20) + (beside >> 20)), kRemedy);
}

void Arena::commit() {
  require(memory_ == nullptr, "a single Arena::commit");
  if (total_ == 0) return;
  check_fits();
  void* p = mmap(nullptr, static_cast<size_t>(total_), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    throw Error(ExitCode::device, "memory plan", fmt::format("{} MiB", total_ >> 20),
                "an allocation the system refused", kRemedy);
  }
  madvise(p, static_cast<size_t>(total_), MADV_HUGEPAGE);  // advice only: failure costs speed
  memory_ = static_cast<char*>(p);
  for (Entry& e : entries_) e.target->data = memory_ + e.offset;
}

std::string Arena::table() const {
  std::map<std::string, int64_t> groups;
  for (const Entry& e : entries_) groups[e.group] += e.bytes;
  std::string out;
  for (const auto& [group, bytes] : groups) {
    out += fmt::format("  {:<28} {:>10.1f} MiB\n", group, static_cast<double>(bytes) / (1 << 20));
    for (const Entry& e : entries_) {
      if (e.group == group && e.name != group && e.bytes * 20 >= total_) {
        out += fmt::format("    {:<26} {:>10.1f} MiB  {}\n", e.name.substr(group.size() + 1),
                           static_cast<double>(e.bytes) / (1 << 20), e.target->describe());
      }
    }
  }
  out += fmt::format("  {:<28} {:>10.1f} MiB\n", "total", static_cast<double>(total_) / (1 << 20));
  return out;
}

}  // namespace bamtrain
