#include "data_tools/progress.h"

#include <fcntl.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "catch.h"

using namespace bamtrain;

namespace {

/// What an update writes to a pipe or a terminal, if lines are 0.2 s apart.
std::string written(std::FILE* out, int read_from) {
  {
    InputProgress progress(out, 1000, {});
    while (progress.seconds() < 0.25) usleep(1000);
    progress.update({500, 2000, 7, 11});
  }
  std::fclose(out);
  // Reads to the end, which a terminal reports as an error. A terminal forwards what is written in
  // parts.
  std::string text;
  char piece[4096];
  for (ssize_t n; (n = read(read_from, piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<size_t>(n));
  }
  close(read_from);
  return text;
}

}  // namespace

TEST_CASE("a line of progress has a bar, rates and the time left, in 80 columns") {
  CHECK(progress_line({{500'000'000, 1'820'000'000, 90, 453'000'000}, {}, 1'000'000'000, 100}) ==
        "[==========          ]  50 %  18.2 MB/s  4.53M tok/s  0:01:40 left");
  CHECK(progress_line({{1, 1000, 1, 9}, {}, 1'000'000, 2}) ==
        "[                    ]   0 %  0.0 MB/s  4.50 tok/s  555:33:18 left");
  const std::string longest =
      progress_line({{99, int64_t{1} << 50, 1, int64_t{1} << 50}, {}, 99'999, 1e5});
  INFO(longest);
  CHECK(longest.size() < 80);
}

TEST_CASE("progress ends at the whole, of a file that grew meanwhile too") {
  CHECK(progress_line({{30, 40, 1, 9}, {}, 20, 2}).substr(0, 28) == "[====================] 100 %");
  CHECK(progress_line({{20, 40, 1, 9}, {}, 20, 2}).substr(0, 28) == "[====================] 100 %");
}

TEST_CASE("without a total there are counts, without tokens no rate of theirs, at first no rates") {
  CHECK(progress_line({{500, 2'000'000, 1234, 3'000'000}, {}, std::nullopt, 2}) ==
        "1,234 documents  1.0 MB/s  1.50M tok/s");
  CHECK(progress_line({{500, 2'000'000, 1, 0}, {}, 1000, 2}) ==
        "[==========          ]  50 %  1.0 MB/s  0:00:02 left");
  CHECK(progress_line({{0, 0, 0, 0}, {}, 1000, 0}) == "0 documents  0.0 MB/s");
}

TEST_CASE("progress is rewritten in place on a terminal and absent from a pipe") {
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  CHECK(written(fdopen(pipe_ends[1], "w"), pipe_ends[0]).empty());

  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE(grantpt(terminal) == 0);
  REQUIRE(unlockpt(terminal) == 0);
  const int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  REQUIRE(other >= 0);
  const std::string text = written(fdopen(other, "w"), terminal);
  CHECK(text.find("\r[==========          ]  50 %") == 0);
  CHECK(text.substr(text.size() - 4) == "\r\x1b[K");
}

TEST_CASE("rates and the time left are those since the beginning of this process") {
  const InputProgress::Counts before{400, 1'000'000, 10, 500'000};
  CHECK(progress_line({{500, 2'000'000, 20, 1'500'000}, before, 1000, 2}) ==
        "[==========          ]  50 %  0.5 MB/s  500k tok/s  0:00:10 left");
  CHECK(progress_line({before, before, 1000, 0}) == "10 documents  0.0 MB/s  0.00 tok/s");
}

TEST_CASE("lines of files have counts, rates and the time left, and are so far apart") {
  const InputPace pace{{500, 0, 7, 98'500'000}, {}, 1000, 100};
  CHECK(files_line(3, 15, "b.parquet", pace) ==
        "3 of 15 files, b.parquet the last: 98,500,000 tokens, 985k tok/s, 0:01:40 left");
  std::FILE* out = std::tmpfile();
  {
    InputProgress progress(out, 1000, {});
    progress.update({500, 2000, 7, 11});
    progress.print_files_done(1, 3, "a", 3600);
    progress.print_files_done(2, 3, "b", 0);
  }
  std::rewind(out);
  char text[200] = {};
  const size_t n = std::fread(text, 1, sizeof text - 1, out);
  std::fclose(out);
  CHECK(std::string(text, n).starts_with("2 of 3 files, b the last: 11 tokens, "));
}
