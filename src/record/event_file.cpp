#include "record/event_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>

#include "core/crc32c.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/input_file.h"

namespace bamtrain {

namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr int64_t kHeaderBytes = 12, kFooterBytes = 4;
constexpr int kBuckets = 30;

// Field numbers of event.proto and summary.proto.
namespace event {
constexpr int wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7;
}
namespace session_log {
constexpr int status = 1, start = 1;  // field number, value of SessionLog.START
}
namespace summary {
constexpr int value = 1;
}
namespace value {
constexpr int tag = 1, simple_value = 2, histo = 5;
}
namespace histogram {
constexpr int min = 1, max = 2, num = 3, sum = 4, sum_squares = 5, bucket_limit = 6, bucket = 7;
}

template <class T>
void put_bytes(std::string& out, T number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof number);
}

// Protocol buffers: a field is its number and wire type, then a varint, 4 or 8 bytes, or a length
// and that number of bytes.
void put_varint(std::string& out, uint64_t n) {
  for (; n >= 0x80; n >>= 7) out += static_cast<char>(n | 0x80);
  out += static_cast<char>(n);
}

void put_key(std::string& out, int field, int wire_type) {
  put_varint(out, static_cast<uint64_t>(field << 3 | wire_type));
}

void put_integer(std::string& out, int field, int64_t n) {
  put_key(out, field, 0);
  put_varint(out, static_cast<uint64_t>(n));
}

void put_double(std::string& out, int field, double number) {
  put_key(out, field, 1);
  put_bytes(out, number);
}

void put_text(std::string& out, int field, std::string_view bytes) {
  put_key(out, field, 2);
  put_varint(out, bytes.size());
  out += bytes;
}

void put_float(std::string& out, int field, float number) {
  put_key(out, field, 5);
  put_bytes(out, number);
}

uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8; }

/// The step of an event as EventFile writes it: wall time first, then the step. Empty: damaged.
std::optional<int64_t> step_of(std::string_view data) {
  constexpr size_t kStep = 1 + 8;
  if (data.size() <= kStep || data[kStep] != (event::step << 3)) return std::nullopt;
  uint64_t step = 0;
  for (size_t at = kStep + 1, shift = 0; at < data.size() && shift < 64; ++at, shift += 7) {
    step |= static_cast<uint64_t>(data[at] & 0x7F) << shift;
    if ((data[at] & 0x80) == 0) return static_cast<int64_t>(step);
  }
  return std::nullopt;
}

template <class T>
T read_number(const char* bytes) {
  T number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

/// Number of bytes in the whole records up to `step`. A process that died while writing may leave a
/// partial record at the end.
int64_t good_bytes(const std::string& path, int64_t step) {
  const InputFile in(path, ExitCode::io, "check the file's permissions");
  int64_t good = 0;
  std::string data;
  for (int64_t left; (left = in.bytes() - good - kHeaderBytes - kFooterBytes) >= 0;) {
    char header[kHeaderBytes];
    in.read(good, header, kHeaderBytes);
    const auto length = read_number<uint64_t>(header);
    if (masked_crc({header, 8}) != read_number<uint32_t>(header + 8)) break;
    if (length > static_cast<uint64_t>(left)) break;
    data.resize(static_cast<size_t>(length) + kFooterBytes);
    in.read(good + kHeaderBytes, data.data(), static_cast<int64_t>(data.size()));
    const std::string_view message(data.data(), static_cast<size_t>(length));
    if (masked_crc(message) != read_number<uint32_t>(data.data() + length)) break;
    const std::optional<int64_t> found = step_of(message);
    if (!found || *found > step) break;
    good += kHeaderBytes + static_cast<int64_t>(length) + kFooterBytes;
  }
  return good;
}

/// The number of one of our event files; empty for other files.
std::optional<int64_t> number_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string digits = name.substr(kPrefix.size());
  const bool plain = !digits.empty() && digits.size() < 18 &&
                     digits.find_first_not_of("0123456789") == std::string::npos;
  return plain ? std::optional(std::stoll(digits)) : std::nullopt;
}

/// Cuts the folder's files back to `step` and returns the path of the next one.
std::string next_file(const std::string& folder, int64_t step) {
  int64_t last = 0;
  try {
    fs::create_directories(folder);
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::optional<int64_t> number = number_of(entry.path());
      if (!number) continue;
      last = std::max(last, *number);
      const int64_t good = good_bytes(entry.path().string(), step);
      if (good < static_cast<int64_t>(entry.file_size())) fs::resize_file(entry.path(), good);
    }
  } catch (const fs::filesystem_error& e) {
    throw system_error(ExitCode::io, folder, "create event files", e.code().value(),
                       "change its permissions, or set log.tensorboard to false");
  }
  return fmt::format("{}/{}{:06}", folder, kPrefix, last + 1);
}

}  // namespace

EventFile::EventFile(const std::string& folder, int64_t step)
    : file_(next_file(folder, step), 0,
            [](const std::string& path) { return good_bytes(path, INT64_MAX); }) {
  write_event(0, event::file_version, "brain.Event:2");
  value_.clear();
  put_integer(value_, session_log::status, session_log::start);
  write_event(step + 1, event::session_log, value_);
}

void EventFile::write_event(int64_t step, int field, std::string_view bytes) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  record_.assign(kHeaderBytes, '\0');
  put_double(record_, event::wall_time, now.count());
  put_integer(record_, event::step, step);
  put_text(record_, field, bytes);
  const uint64_t length = record_.size() - kHeaderBytes;
  std::memcpy(record_.data(), &length, sizeof length);
  const uint32_t of_length = masked_crc({record_.data(), sizeof length});
  std::memcpy(record_.data() + sizeof length, &of_length, sizeof of_length);
  put_bytes(record_, masked_crc(std::string_view(record_).substr(kHeaderBytes)));
  file_.write(record_);
}

void EventFile::write_scalars(int64_t step, std::span<const Scalar> scalars) {
  summary_.clear();
  for (const Scalar& s : scalars) {
    value_.clear();
    put_text(value_, value::tag, s.tag);
    put_float(value_, value::simple_value, s.value);
    put_text(summary_, summary::value, value_);
  }
  write_event(step, event::summary, summary_);
}

void EventFile::write_histogram(int64_t step, std::string_view tag, std::span<const float> values) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  double number = 0, sum = 0, squares = 0;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
    number += 1;
    sum += v;
    squares += v * v;
  }
  if (number == 0) low = high = 0;
  const int buckets = high > low ? kBuckets : 1;
  const double width = (high - low) / buckets;
  counts_.assign(static_cast<size_t>(buckets), 0);
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    const int b = width > 0 ? std::min(buckets - 1, static_cast<int>((v - low) / width)) : 0;
    counts_[static_cast<size_t>(b)] += 1;
  }

  histogram_.clear();
  put_double(histogram_, histogram::min, low);
  put_double(histogram_, histogram::max, high);
  put_double(histogram_, histogram::num, number);
  put_double(histogram_, histogram::sum, sum);
  put_double(histogram_, histogram::sum_squares, squares);
  packed_.clear();
  for (int b = 0; b < buckets; ++b)
    put_bytes(packed_, b + 1 < buckets ? low + (b + 1) * width : high);
  put_text(histogram_, histogram::bucket_limit, packed_);
  packed_.clear();
  for (const double count : counts_) put_bytes(packed_, count);
  put_text(histogram_, histogram::bucket, packed_);

  value_.clear();
  put_text(value_, value::tag, tag);
  put_text(value_, value::histo, histogram_);
  summary_.clear();
  put_text(summary_, summary::value, value_);
  write_event(step, event::summary, summary_);
}

}  // namespace bamtrain
