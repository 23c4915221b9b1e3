#include "core/arena.h"

#include <fmt/format.h>

#include <map>

#include "core/checked.h"

namespace bamtrain {

namespace {
constexpr int64_t kArenaAlignment = 64;  // one cache line, one AVX-512 vector
}  // namespace

Arena::~Arena() {
  if (memory_) source_->release(memory_, total_);
}

void Arena::add(const std::string& name, Tensor* target, Dtype dtype,
                std::initializer_list<int64_t> dims) {
  require(memory_ == nullptr, "Arena::add before Arena::commit");
  int64_t bytes = static_cast<int64_t>(size_of(dtype));
  for (int64_t d : dims) bytes = checked_mul(bytes, d, "memory plan: " + name);
  bytes = ceil_div(checked_add(bytes, kArenaAlignment, "memory plan: " + name) - kArenaAlignment,
                   kArenaAlignment) *
          kArenaAlignment;
  *target = Tensor(nullptr, dtype, dims);
  entries_.push_back({name, name.substr(0, name.find('.')), dtype, bytes, total_, target});
  total_ = checked_add(total_, bytes, "memory plan: " + name);
}

void Arena::commit(MemorySource& source) {
  require(memory_ == nullptr, "a single Arena::commit");
  if (total_ == 0) return;
  memory_ = static_cast<char*>(source.allocate(total_));
  source_ = &source;
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
