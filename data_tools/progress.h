#pragma once
// Progress of a long command: one line that is rewritten on a terminal; silent elsewhere.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace bamtrain {

class InputProgress {
 public:
  struct Counts {
    int64_t taken = 0;       // bytes of the input files
    int64_t text_bytes = 0;  // bytes of documents, decompressed
    int64_t documents = 0;
    int64_t tokens = 0;
  };

  /// `total`: bytes of the input files, if known; gives share done and time left. `before`: earlier
  /// progress, excluded from rates.
  InputProgress(std::FILE* out, std::optional<int64_t> total, const Counts& before);
  /// Clears the line from the terminal.
  ~InputProgress();
  InputProgress(const InputProgress&) = delete;
  InputProgress& operator=(const InputProgress&) = delete;

  /// Rewrites the line at most every 0.2 s.
  void update(const Counts& counts);

  /// Prints a permanent line for `done` of `of` files, the last of them `path`, at most every
  /// `seconds_between`.
  void print_files_done(int64_t done, int64_t of, const std::string& path,
                        double seconds_between = 5);

  double seconds() const;  // since construction

 private:
  std::FILE* out_;
  std::optional<int64_t> total_;
  bool terminal_;
  Counts before_, counts_;
  std::chrono::steady_clock::time_point begin_, last_, last_files_;
  bool shown_ = false;  // on the terminal now
};

/// Progress since `before`, in `seconds`.
struct InputPace {
  InputProgress::Counts counts, before;
  std::optional<int64_t> total;
  double seconds = 0;
};

/// "1 document", "2,000 documents".
std::string counted(int64_t n, const std::string& noun);

/// One line of progress, without newline: "[===== ] 50 % 18.2 MB/s 4.53M tok/s 0:01:20 left" with a
/// bar of 20. Without `total`, documents replace bar, share and time; without tokens, their rate is
/// omitted. At most 79 columns for runs of up to 9,999 hours.
std::string progress_line(const InputPace& pace);

/// "3 of 15 files, a.parquet the last: 98,500,000 tokens, 4.53M tok/s, 0:12:34 left".
std::string files_line(int64_t done, int64_t of, const std::string& path, const InputPace& pace);

}  // namespace bamtrain
