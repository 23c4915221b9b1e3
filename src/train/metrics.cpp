#include "train/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/error.h"

namespace bamtrain {

namespace {

[[noreturn]] void fail(const std::string& path, const char* expected) {
  throw Error(ExitCode::io, path, expected, std::strerror(errno),
              "check free space and permissions of the run's folder");
}

/// How many bytes of the file are whole lines of steps up to `step`. A line that is no JSON (a
/// process died while writing it) ends the good part.
int64_t good_bytes(const std::string& path, int64_t step) {
  std::ifstream in(path, std::ios::binary);
  int64_t good = 0;
  std::string line;
  while (std::getline(in, line)) {
    if (in.eof()) break;  // no newline: an unfinished line
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) break;
    if (json["step"].get<int64_t>() > step) break;
    good += static_cast<int64_t>(line.size()) + 1;
  }
  return good;
}

}  // namespace

Metrics::Metrics(const std::string& out_dir, int64_t step) : path_(out_dir + "/metrics.jsonl") {
  const int64_t keep = good_bytes(path_, step);
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(path_, "a file that can be written");
  if (ftruncate(descriptor_, keep) != 0) {
    close(descriptor_);
    fail(path_, "a file that can be cut back to the checkpoint");
  }
}

Metrics::~Metrics() { close(descriptor_); }

void Metrics::write(const nlohmann::ordered_json& line) {
  const std::string text = line.dump() + "\n";
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(descriptor_, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(path_, "a line to be written");
    done += static_cast<size_t>(n);
  }
}

}  // namespace bamtrain
