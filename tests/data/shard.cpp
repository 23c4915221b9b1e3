#include "data/shard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "core/durable_file.h"
#include "core/error.h"
#include "files.h"

namespace bamtrain {
namespace {

using namespace testing;

constexpr int64_t kAnyId = int64_t{1} << 31;

std::vector<int32_t> all_tokens(const Shard& shard) {
  std::vector<int32_t> out(static_cast<size_t>(shard.tokens()));
  shard.read(0, shard.tokens(), out.data(), kAnyId);
  return out;
}

/// The Error of opening a file with these bytes; it names the file.
std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder.file("bad.bin");
  write_bytes(path, bytes);
  const std::string message = error_of(ExitCode::data, [&] { Shard::open(path); });
  CHECK(contains(message, path));
  CHECK(contains(message, "remedy"));
  return message;
}

TEST_CASE("a shard written byte by byte in llm.c's layout is read") {
  const TemporaryFolder folder;
  for (int width : {2, 4}) {
    const std::string path = folder.file("llmc.bin");
    std::vector<unsigned char> bytes(1024, 0);
    // 20240520 = 0x0134D888, 20240801 = 0x0134D9A1
    const unsigned char magic2[] = {0x88, 0xD8, 0x34, 0x01, 1, 0, 0, 0, 3, 0, 0, 0};
    const unsigned char magic4[] = {0xA1, 0xD9, 0x34, 0x01, 7, 0, 0, 0, 3, 0, 0, 0};
    std::copy_n(width == 2 ? magic2 : magic4, 12, bytes.begin());
    const unsigned char ids2[] = {0x50, 0xC3, 0, 0, 0xFF, 0xFF};
    const unsigned char ids4[] = {0x50, 0xC3, 0, 0, 0, 0, 0, 0, 0xFF, 0xF4, 0x01, 0};
    bytes.insert(bytes.end(), width == 2 ? ids2 : ids4, (width == 2 ? ids2 : ids4) + 3 * width);
    std::FILE* f = std::fopen(path.c_str(), "wb");
    REQUIRE(f != nullptr);
    REQUIRE(std::fwrite(bytes.data(), 1, bytes.size(), f) == bytes.size());
    REQUIRE(std::fclose(f) == 0);

    const Shard shard = Shard::open(path);
    CHECK(shard.width() == width);
    CHECK(shard.tokens() == 3);
    CHECK(shard.file_bytes() == 1024 + 3 * width);
    CHECK(all_tokens(shard) == std::vector<int32_t>{50000, 0, width == 2 ? 65535 : 128255});
  }
}

TEST_CASE("what is written is read back, in both widths, whatever the pieces") {
  const TemporaryFolder folder;
  for (int width : {2, 4}) {
    // Past the writer's buffer several times over.
    std::vector<uint32_t> tokens(1500000);
    uint32_t x = 1;
    for (uint32_t& t : tokens) t = (x = x * 1664525u + 1013904223u) >> (width == 2 ? 16 : 1);
    const std::string path = folder.file("round.bin");
    ShardWriter writer(path, width);
    const std::span<const uint32_t> all(tokens);
    size_t done = 0;
    for (size_t piece : {0, 1, 7, 400000, 524288}) {
      writer.append(all.subspan(done, piece));
      done += piece;
    }
    writer.append(all.subspan(done));
    CHECK(writer.tokens() == 1500000);
    writer.finish();

    const Shard shard = Shard::open(path);
    CHECK(shard.width() == width);
    const std::vector<int32_t> read = all_tokens(shard);
    CHECK(std::equal(read.begin(), read.end(), tokens.begin(), tokens.end(),
                     [](int32_t a, uint32_t b) { return static_cast<uint32_t>(a) == b; }));
    int32_t middle[3];
    shard.read(777777, 3, middle, kAnyId);
    CHECK(std::equal(middle, middle + 3, read.begin() + 777777));
  }
}

TEST_CASE("a written shard is byte for byte llm.c's, and its hash is the file's") {
  const TemporaryFolder folder;
  const std::vector<uint32_t> tokens = {1, 2, 65535};
  const std::string path = folder.file("a.bin");
  ShardWriter narrow(path, 2);
  narrow.append(tokens);
  // sha256sum of the 1030 and 1036 bytes that Python's struct.pack makes of the same numbers.
  CHECK(narrow.finish() == "08429448589f95e54b744ccdf5741e58cb5abb38464f07c081303b6a31090fcb");
  CHECK(read_bytes(path) == shard_bytes(20240520, 1, 3, 2, tokens));
  ShardWriter wide(path, 4);
  wide.append(tokens);
  CHECK(wide.finish() == "1fd7e33445707f7f7af3f8687bac80be269d52e2ea2018f0a1f4237679c1f98b");
  CHECK(read_bytes(path) == shard_bytes(20240801, 7, 3, 4, tokens));
  CHECK(folder.entries() == 1);
}

TEST_CASE("a shard of no tokens is a shard") {
  const TemporaryFolder folder;
  ShardWriter(folder.file("none.bin"), 2).finish();
  const Shard shard = Shard::open(folder.file("none.bin"));
  CHECK(shard.tokens() == 0);
  CHECK(shard.file_bytes() == 1024);
  CHECK(shard.find(0, 0) == 0);
}

TEST_CASE("shards past 2 GiB are read to their end") {
  const TemporaryFolder folder;
  for (int width : {2, 4}) {
    const int64_t tokens = width == 2 ? 2000000000 : 1000000000;
    const std::string path = folder.file("sparse.bin");
    write_bytes(path, shard_bytes(width == 2 ? 20240520 : 20240801, width == 2 ? 1 : 7,
                                  static_cast<int32_t>(tokens), width, {}));
    const int64_t bytes = 1024 + tokens * width;
    REQUIRE(bytes > int64_t{3} << 30);
    REQUIRE(::truncate(path.c_str(), bytes) == 0);
    const int fd = ::open(path.c_str(), O_WRONLY);
    const std::string last = little_endian(11, width) + little_endian(12, width);
    REQUIRE(::pwrite(fd, last.data(), last.size(), bytes - 2 * width) == 2 * width);
    REQUIRE(::close(fd) == 0);

    const Shard shard = Shard::open(path);
    CHECK(shard.tokens() == tokens);
    CHECK(shard.file_bytes() == bytes);
    int32_t end[3];
    shard.will_need(tokens - 3, 3);
    shard.read(tokens - 3, 3, end, 13);
    CHECK(end[0] == 0);
    CHECK(end[1] == 11);
    CHECK(end[2] == 12);
    CHECK(shard.find(tokens - 1000, 12) == tokens - 1);
    CHECK(contains(error_of(ExitCode::data, [&] { shard.read(tokens - 3, 3, end, 12); }),
                   "token " + std::to_string(tokens - 1)));
  }
}

TEST_CASE("a missing shard, and what is no file, are named") {
  const TemporaryFolder folder;
  const std::string missing = folder.file("missing.bin");
  const std::string message = error_of(ExitCode::data, [&] { Shard::open(missing); });
  CHECK(contains(message, missing));
  CHECK(contains(message, "no such file"));
  CHECK(contains(error_of(ExitCode::data, [&] { Shard::open(folder.path()); }),
                 "not a regular file"));
  const std::string pipe = folder.file("pipe.bin");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(contains(error_of(ExitCode::data, [&] { Shard::open(pipe); }), "not a regular file"));
}

TEST_CASE("each way a shard can be bad has its own message") {
  const std::string good = shard_bytes({1, 2, 3});
  CHECK(contains(refusal(""), "an empty file"));
  CHECK(contains(refusal(good.substr(0, 100)), "truncated file of 100 bytes"));
  CHECK(contains(refusal(good.substr(0, 1023)), "truncated file of 1023 bytes"));
  CHECK(contains(refusal(good.substr(0, 1024)), "truncated, 6 bytes missing"));
  CHECK(contains(refusal(good.substr(0, 1029)), "truncated, 1 bytes missing"));
  CHECK(contains(refusal(good + "x"), "1 trailing bytes"));
  CHECK(contains(refusal(shard_bytes(20240521, 1, 1, 2, {1})), "magic 20240521"));
  CHECK(contains(refusal(std::string(2000, '\0')), "magic 0"));
  CHECK(contains(refusal(shard_bytes(20240520, 2, 1, 2, {1})), "version 2"));
  CHECK(contains(refusal(shard_bytes(20240801, 1, 1, 4, {1})), "version 7"));
  CHECK(contains(refusal(shard_bytes(20240520, 1, -1, 2, {})), "header[2]"));
  // A count whose bytes would overflow 32 bits is compared, not believed.
  CHECK(contains(refusal(shard_bytes(20240801, 7, 0x7FFFFFFF, 4, {1})), "8589935612 bytes"));
}

TEST_CASE("a token id past the vocabulary is named with file, position and vocabulary") {
  const TemporaryFolder folder;
  std::vector<uint32_t> tokens(1000, 5);
  tokens[700] = 32768;
  tokens[900] = 40000;
  const std::string path = folder.file("ids.bin");
  write_bytes(path, shard_bytes(tokens));
  const Shard shard = Shard::open(path);
  std::vector<int32_t> out(1000);
  shard.read(0, 700, out.data(), 32768);
  shard.read(0, 1000, out.data(), 40001);
  const std::string message =
      error_of(ExitCode::data, [&] { shard.read(100, 900, out.data(), 32768); });
  CHECK(contains(message, path));
  CHECK(contains(message, "token 700"));
  CHECK(contains(message, "vocabulary of 32768"));
  CHECK(contains(message, "id 32768"));
  // The first id that is too large, with none larger beside it.
  CHECK(contains(error_of(ExitCode::data, [&] { shard.read(100, 800, out.data(), 32768); }),
                 "id 32768"));

  const uint32_t huge = 0xFFFFFFFFu;  // negative as an int32, past any vocabulary
  write_bytes(folder.file("wide.bin"), shard_bytes(20240801, 7, 1, 4, {huge}));
  const Shard wide = Shard::open(folder.file("wide.bin"));
  CHECK(contains(error_of(ExitCode::data, [&] { wide.read(0, 1, out.data(), kAnyId); }),
                 "id 4294967295"));
}

TEST_CASE("reading outside a shard is refused") {
  const TemporaryFolder folder;
  write_bytes(folder.file("a.bin"), shard_bytes({1, 2, 3}));
  const Shard shard = Shard::open(folder.file("a.bin"));
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int32_t out[4];
  for (const auto& [begin, count] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 4}, {3, 1}, {-1, 1}, {1, -1}, {4, 0}, {1, kMax}, {kMax, 1}}) {
    INFO(begin << " " << count);
    CHECK_THROWS_AS(shard.read(begin, count, out, 10), Error);
  }
  shard.read(3, 0, out, 10);
}

TEST_CASE("a token is found from a position on") {
  const TemporaryFolder folder;
  write_bytes(folder.file("a.bin"), shard_bytes({1, 9, 1, 9}));
  write_bytes(folder.file("b.bin"), shard_bytes(20240801, 7, 4, 4, {1, 70000, 1, 70000}));
  const Shard a = Shard::open(folder.file("a.bin")), b = Shard::open(folder.file("b.bin"));
  CHECK(a.find(0, 9) == 1);
  CHECK(a.find(2, 9) == 3);
  CHECK(a.find(4, 9) == 4);
  CHECK(a.find(0, 65536 + 9) == 4);
  CHECK(a.find(0, -1) == 4);
  CHECK(b.find(2, 70000) == 3);
  CHECK(b.find(0, 70000 - 65536) == 4);
}

TEST_CASE("a shard that moves keeps its tokens") {
  const TemporaryFolder folder;
  write_bytes(folder.file("a.bin"), shard_bytes({1, 2, 3}));
  write_bytes(folder.file("b.bin"), shard_bytes({4}));
  Shard a = Shard::open(folder.file("a.bin"));
  Shard b = std::move(a);
  CHECK(all_tokens(b) == std::vector<int32_t>{1, 2, 3});
  b = Shard::open(folder.file("b.bin"));
  CHECK(all_tokens(b) == std::vector<int32_t>{4});
}

TEST_CASE("an unfinished shard leaves nothing, and the one of that name stays") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.bin");
  write_bytes(path, shard_bytes({1, 2, 3}));
  {
    ShardWriter writer(path, 2);
    writer.append(counting(0, 60000));
  }
  CHECK(folder.entries() == 1);
  CHECK(read_bytes(path) == shard_bytes({1, 2, 3}));
}

TEST_CASE("an id that does not fit the width is refused by position") {
  const TemporaryFolder folder;
  ShardWriter writer(folder.file("a.bin"), 2);
  writer.append(std::vector<uint32_t>{1, 65535});
  const std::string message = error_of(ExitCode::data, [&] {
    writer.append(std::vector<uint32_t>{3, 65536});
  });
  CHECK(contains(message, "a.bin: token 3"));
  CHECK(contains(message, "65536"));
}

TEST_CASE("a path that cannot be written is an io error") {
  const TemporaryFolder folder;
  write_bytes(folder.file("file"), "");
  const std::string path = folder.file("file/a.bin");
  CHECK(contains(error_of(ExitCode::io, [&] { ShardWriter(path, 2); }), path));
  const std::string missing = folder.file("missing/a.bin");
  CHECK(contains(error_of(ExitCode::io, [&] { ShardWriter(missing, 2); }), missing));
  std::filesystem::create_directory(folder.file("folder.bin"));
  write_bytes(folder.file("folder.bin/x"), "");
  CHECK(contains(error_of(ExitCode::io,
                          [&] {
                            ShardWriter writer(folder.file("folder.bin"), 2);
                            writer.finish();
                          }),
                 "folder.bin"));
  CHECK(folder.entries() == 2);
}

TEST_CASE("a full disk is an io error that leaves nothing half-written") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.bin");
  const auto write = [&](size_t tokens) {
    set_file_fault([](FileOp op, const std::string&, const std::string&) {
      return op == FileOp::write ? ENOSPC : 0;
    });
    ShardWriter writer(path, 2);
    writer.append(counting(0, tokens));
    writer.append(counting(0, tokens));
    writer.finish();
  };
  for (size_t tokens : {10, 60000}) {
    const std::string message = error_of(ExitCode::io, [&] { write(tokens); });
    set_file_fault(nullptr);
    CHECK(contains(message, path));
    CHECK(contains(message, "No space left"));
    CHECK(folder.entries() == 0);
  }
}

/// Files cannot grow past a limit: a disk that fills up in the middle of a write.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_;
  void (*handler_)(int);
};

TEST_CASE("wherever the disk fills up, the old shard stays whole until the new one is") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.bin"), old = shard_bytes({1, 2, 3});
  const std::vector<uint32_t> tokens = counting(0, 700000);
  const rlim_t whole = 1024 + 4 * 700000;
  for (rlim_t limit :
       std::vector<rlim_t>{0, 1, 1023, 1024, 1 << 20, (1 << 20) + 1, 2 << 20, whole - 1, whole}) {
    write_bytes(path, old);
    bool finished = false;
    int code = -1;
    {
      const FileSizeLimit full(limit);
      try {
        ShardWriter writer(path, 4);
        writer.append(tokens);
        writer.finish();
        finished = true;
      } catch (const Error& e) {
        code = static_cast<int>(e.code());
      }
    }
    INFO("limit " << limit);
    CHECK(finished == (limit >= whole));
    if (!finished) CHECK(code == static_cast<int>(ExitCode::io));
    CHECK((finished ? Shard::open(path).tokens() == 700000 : read_bytes(path) == old));
    CHECK(folder.entries() == 1);
  }
}

}  // namespace
}  // namespace bamtrain
