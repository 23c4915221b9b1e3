#include "data/shard.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
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

using Positions = std::vector<int64_t>;

Positions positions(const Shard& shard, int64_t begin, int64_t id) {
  Positions found;
  shard.find_all(begin, id, [&](int64_t position) { found.push_back(position); });
  return found;
}

/// The message of the Error from opening a file with these bytes. Checks that it names the file.
std::string shard_refusal(const std::string& bytes) {
  return file_refusal("bad.bin", bytes, [](const std::string& path) { Shard::open(path); });
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
    // Several times the writer's buffer.
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
  // sha256sum of the 1030 and 1036 bytes that Python's struct.pack writes for the same numbers.
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
  CHECK(positions(shard, 0, 0).empty());
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
    CHECK(positions(shard, tokens - 1000, 12) == Positions{tokens - 1});
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
  CHECK(contains(shard_refusal(""), "empty file"));
  CHECK(contains(shard_refusal(good.substr(0, 100)), "truncated file of 100 bytes"));
  CHECK(contains(shard_refusal(good.substr(0, 1023)), "truncated file of 1023 bytes"));
  CHECK(contains(shard_refusal(good.substr(0, 1024)), "truncated, 6 bytes missing"));
  CHECK(contains(shard_refusal(good.substr(0, 1029)), "truncated, 1 bytes missing"));
  CHECK(contains(shard_refusal(good + "x"), "1 trailing bytes"));
  CHECK(contains(shard_refusal(shard_bytes(20240521, 1, 1, 2, {1})), "magic 20240521"));
  CHECK(contains(shard_refusal(std::string(2000, '\0')), "magic 0"));
  CHECK(contains(shard_refusal(shard_bytes(20240520, 2, 1, 2, {1})), "version 2"));
  CHECK(contains(shard_refusal(shard_bytes(20240801, 1, 1, 4, {1})), "version 7"));
  CHECK(contains(shard_refusal(shard_bytes(20240520, 1, -1, 2, {})), "header[2]"));
  // A count whose byte size would overflow 32 bits is compared with the file size.
  CHECK(contains(shard_refusal(shard_bytes(20240801, 7, 0x7FFFFFFF, 4, {1})), "8589935612 bytes"));
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
  // The first id that is too large, in a range without a larger one.
  CHECK(contains(error_of(ExitCode::data, [&] { shard.read(100, 800, out.data(), 32768); }),
                 "id 32768"));

  const uint32_t huge = 0xFFFFFFFFu;  // negative as int32, beyond any vocabulary
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

TEST_CASE("tokens are found from a position on") {
  const TemporaryFolder folder;
  write_bytes(folder.file("a.bin"), shard_bytes({1, 9, 1, 9}));
  write_bytes(folder.file("b.bin"), shard_bytes(20240801, 7, 4, 4, {1, 70000, 1, 70000}));
  const Shard a = Shard::open(folder.file("a.bin")), b = Shard::open(folder.file("b.bin"));
  CHECK(positions(a, 0, 9) == Positions{1, 3});
  CHECK(positions(a, 2, 9) == Positions{3});
  CHECK(positions(a, 4, 9).empty());
  CHECK(positions(a, 0, 65536 + 9).empty());
  CHECK(positions(a, 0, -1).empty());
  CHECK(positions(b, 2, 70000) == Positions{3});
  CHECK(positions(b, 0, 70000 - 65536).empty());

  // Longer than one read.
  std::vector<uint32_t> many(600000, 1);
  many[0] = many[262143] = many[262144] = many[599999] = 9;
  write_bytes(folder.file("c.bin"), shard_bytes(many));
  CHECK(positions(Shard::open(folder.file("c.bin")), 0, 9) == Positions{0, 262143, 262144, 599999});
}

/// A file with a modification time of an hour ago: any write changes it, whatever the clock's
/// resolution.
std::string aged_shard(const TemporaryFolder& folder, int width) {
  const std::string path = folder.file("aged.bin");
  const bool narrow = width == 2;
  write_bytes(path, shard_bytes(narrow ? 20240520 : 20240801, narrow ? 1 : 7, 10000, width,
                                counting(0, 10000)));
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  return path;
}

TEST_CASE("a shard that was cut, grew or was written over while it was open is refused") {
  const TemporaryFolder folder;
  const int width = GENERATE(2, 4);
  const std::string path = aged_shard(folder, width);
  const Shard shard = Shard::open(path);
  const int64_t whole = shard.file_bytes();
  std::string found;
  const auto resize = [&](int64_t bytes) {
    std::filesystem::resize_file(path, static_cast<uintmax_t>(bytes));
    found = "expected " + std::to_string(whole) + " bytes, as when opened, found " +
            std::to_string(bytes) + " bytes";
  };
  SECTION("between pages") { resize(8192); }
  SECTION("inside a page") { resize(whole - 20); }
  SECTION("to nothing") { resize(0); }
  SECTION("grown") { resize(whole + 2); }
  SECTION("written over in place with the same ids") {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(1024);
    file.write("\0\0", 2);
    file.close();
    REQUIRE(file);
    found = "modified since it was opened";
  }
  std::vector<int32_t> out(10000);
  // Ranges whose tokens are still there, and ranges whose tokens are not.
  for (const auto& [begin, count] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 10000}, {0, 1}, {9999, 1}, {9000, 20}}) {
    const std::string message =
        error_of(ExitCode::data, [&] { shard.read(begin, count, out.data(), kAnyId); });
    INFO(message);
    CHECK(contains(message, path));
    CHECK(contains(message, found));
  }
  CHECK(contains(error_of(ExitCode::data, [&] { positions(shard, 0, 1); }), found));
}

TEST_CASE("a shard that another takes the place of is read as it was") {
  const TemporaryFolder folder;
  const std::string path = aged_shard(folder, 2);
  const Shard shard = Shard::open(path);
  write_bytes(folder.file("new.bin"), shard_bytes({1}));
  std::filesystem::rename(folder.file("new.bin"), path);
  CHECK(all_tokens(shard).back() == 9999);
}

TEST_CASE("a set may have more shards than a process has descriptors at first") {
  const TemporaryFolder folder;
  write_bytes(folder.file("a.bin"), shard_bytes({1, 2, 3}));
  const auto open_many = [&](rlim_t soft, rlim_t hard) {
    // In a child process: a hard limit cannot be raised again.
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      int code = 1;
      try {
        const rlimit limit = {soft, hard};
        ::setrlimit(RLIMIT_NOFILE, &limit);
        std::vector<Shard> shards;
        for (int i = 0; i < 200; ++i) shards.push_back(Shard::open(folder.file("a.bin")));
        code = 0;
      } catch (const Error& e) {
        const bool named = contains(e.what(), folder.file("a.bin")) && contains(e.what(), "ulimit");
        code = named ? static_cast<int>(e.code()) : 1;
      }
      ::_exit(code);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WEXITSTATUS(status);
  };
  CHECK(open_many(64, 400) == 0);
  CHECK(open_many(64, 100) == static_cast<int>(ExitCode::io));
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

}  // namespace
}  // namespace bamtrain
