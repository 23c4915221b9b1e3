#include "data/loader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "core/error.h"
#include "files.h"
#include "windows.h"

namespace bamtrain {
namespace {

using namespace testing;

std::shared_ptr<const ShardSet> make_set(const TemporaryFolder& folder,
                                         const std::vector<std::vector<uint32_t>>& shards) {
  write_shards(folder, shards);
  return open_set(folder);
}

TEST_CASE("windows share one token and never cross shards") {
  const TemporaryFolder folder;
  // Windows have 3 + 1 tokens. Shards of 11, 3, 4, 0 and 9 tokens hold 3, 0, 1, 0 and 2 of them.
  const auto set =
      make_set(folder, {counting(0, 11), counting(100, 3), counting(200, 4), {}, counting(300, 9)});
  CHECK(Loader(set, 1, 1, false).windows_per_epoch() == 10 + 2 + 3 + 8);
  const Loader loader(set, 3, 1, false);
  CHECK(set->tokens() == 27);
  CHECK(loader.windows_per_epoch() == 6);
  const Tokens epoch = {0,   1,   2,   3,   3,   4,   5,   6,   6,   7,   8,   9,
                        200, 201, 202, 203, 300, 301, 302, 303, 303, 304, 305, 306};
  CHECK(windows(loader, 0, 6) == epoch);
  Tokens twice = epoch;
  twice.insert(twice.end(), epoch.begin(), epoch.end());
  CHECK(windows(loader, 6, 12) == twice);
  CHECK(windows(loader, 4, 4) == Tokens(twice.begin() + 16, twice.begin() + 32));
}

TEST_CASE("a shuffled epoch holds the windows of the ordered one, in another order each time") {
  const TemporaryFolder folder;
  const auto set = make_set(folder, {counting(0, 500), counting(1000, 37), counting(2000, 800)});
  const auto firsts = [](const Loader& loader, int64_t epoch) {
    const int64_t n = loader.windows_per_epoch();
    const Tokens all = windows(loader, epoch * n, n);
    Tokens first;
    for (size_t i = 0; i < all.size(); i += 9) first.push_back(all[i]);
    return first;
  };
  const auto sorted = [](Tokens v) {
    std::sort(v.begin(), v.end());
    return v;
  };
  const Loader ordered(set, 8, 5, false), shuffled(set, 8, 5, true), other(set, 8, 6, true);
  const Tokens truth = firsts(ordered, 0);
  CHECK(truth == sorted(truth));
  std::set<Tokens> orders = {truth};
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    CHECK(sorted(firsts(shuffled, epoch)) == truth);
    CHECK(sorted(firsts(other, epoch)) == truth);
    orders.insert(firsts(shuffled, epoch));
    orders.insert(firsts(other, epoch));
  }
  CHECK(orders.size() == 9);
}

TEST_CASE("a window's content depends on its number alone") {
  const TemporaryFolder folder;
  const auto set = make_set(folder, {counting(0, 500), counting(1000, 37), counting(2000, 800)});
  for (bool shuffle : {false, true}) {
    Loader whole(set, 8, 5, shuffle);
    const int64_t n = 2 * whole.windows_per_epoch() + 11;
    const Tokens truth = windows(whole, 0, n);
    for (int64_t piece : {1, 2, 7, 64}) {
      Loader loader(set, 8, 5, shuffle);
      Tokens joined;
      for (int64_t k = 0; k < n; k += piece) {
        const int64_t count = std::min(piece, n - k);
        if (piece != 2) loader.prefetch(k, count);
        const Tokens part = windows(loader, k, count);
        joined.insert(joined.end(), part.begin(), part.end());
      }
      CHECK(joined == truth);
    }
    // Backwards, as if each window went to a different process.
    for (int64_t k = n - 1; k >= 0; --k) {
      const Loader loader(set, 8, 5, shuffle);
      CHECK(windows(loader, k, 1) == Tokens(truth.begin() + k * 9, truth.begin() + (k + 1) * 9));
    }
  }
}

TEST_CASE("shards too short for one window are an error with T and the tokens") {
  const TemporaryFolder folder;
  const auto set = make_set(folder, {counting(0, 8), counting(0, 5)});
  const std::string message = error_of(ExitCode::data, [&] { Loader(set, 8, 0, true); });
  CHECK(contains(message, folder.path()));
  CHECK(contains(message, "sequence_length + 1 = 9"));
  CHECK(contains(message, "13 tokens in 2 shards, at most 8 in one"));
  CHECK(Loader(set, 7, 0, true).windows_per_epoch() == 1);
}

TEST_CASE("windows past 2 GiB of a shard are read") {
  const TemporaryFolder folder;
  const int64_t tokens = 1500000000;
  const std::string path = folder.file("a.bin");
  write_bytes(path, shard_bytes(20240520, 1, static_cast<int32_t>(tokens), 2, {}));
  REQUIRE(::truncate(path.c_str(), 1024 + 2 * tokens) == 0);
  const int fd = ::open(path.c_str(), O_WRONLY);
  const std::string last = little_endian(21, 2) + little_endian(22, 2);
  REQUIRE(::pwrite(fd, last.data(), last.size(), 1024 + 2 * tokens - 4) == 4);
  REQUIRE(::close(fd) == 0);
  const auto set = open_set(folder);
  const Loader loader(set, 1, 0, false);
  REQUIRE(loader.windows_per_epoch() == tokens - 1);
  CHECK(windows(loader, tokens - 3, 3) == Tokens{0, 21, 21, 22, 0, 0});
}

TEST_CASE("a prefetched range is served from memory, in any part and more than once") {
  const TemporaryFolder folder;
  const auto set = make_set(folder, {counting(0, 100)});
  Loader loader(set, 4, 0, false);
  loader.prefetch(0, 10);
  loader.prefetch(10, 5);
  const Tokens early = windows(loader, 0, 10), late = windows(loader, 10, 5);  // both are ready now
  CHECK(early[0] == 0);
  CHECK(late.back() == 60);

  // The file changes under the loader but keeps its modification time. Prefetched windows come from
  // memory, others from the changed file.
  const auto time = std::filesystem::last_write_time(folder.file("a.bin"));
  const int fd = ::open(folder.file("a.bin").c_str(), O_WRONLY);
  const std::string changed = shard_bytes(counting(500, 100));
  REQUIRE(::pwrite(fd, changed.data(), changed.size(), 0) == static_cast<ssize_t>(changed.size()));
  REQUIRE(::close(fd) == 0);
  std::filesystem::last_write_time(folder.file("a.bin"), time);
  CHECK(windows(loader, 0, 10) == early);
  CHECK(windows(loader, 10, 5) == late);
  CHECK(windows(loader, 3, 2) == Tokens(early.begin() + 15, early.begin() + 25));
  CHECK(windows(loader, 14, 1) == Tokens{56, 57, 58, 59, 60});
  CHECK(windows(loader, 15, 1) == Tokens{560, 561, 562, 563, 564});
  CHECK(windows(loader, 9, 2)[0] == 536);  // spans two ranges

  loader.prefetch(20, 1);
  loader.prefetch(22, 1);  // replaces the oldest range
  CHECK(windows(loader, 20, 1)[0] == 580);
  CHECK(windows(loader, 22, 1)[0] == 588);
  CHECK(windows(loader, 10, 5) == late);
  CHECK(windows(loader, 0, 1)[0] == 500);
}

TEST_CASE("an error met in the background shows in the read of that window only") {
  const TemporaryFolder folder;
  std::vector<uint32_t> tokens = counting(0, 100);
  tokens[50] = 60001;
  const auto set = make_set(folder, {tokens});
  Loader loader(set, 4, 0, false);
  for (int again = 0; again < 3; ++again) {
    loader.prefetch(10, 4);
    CHECK(windows(loader, 10, 2)[0] == 40);
    const std::string message = error_of(ExitCode::data, [&] { windows(loader, 10, 4); });
    CHECK(contains(message, "a.bin: token 50"));
    CHECK(contains(message, "id 60001"));
  }
}

TEST_CASE("hints and reads from many threads give the windows, and unread hints end quietly") {
  const TemporaryFolder folder;
  const auto set = make_set(folder, {counting(0, 3000), counting(5000, 4000)});
  const Loader plain(set, 16, 3, true);
  const int64_t n = 600;
  const Tokens truth = windows(plain, 0, n);
  std::vector<int> wrong(4, 0);
  {
    Loader loader(set, 16, 3, true);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        Tokens out(6 * 17);
        for (int64_t k = 6 * t; k + 6 <= n; k += 24) {
          loader.prefetch(k + 24, 24);
          loader.read(k, 6, out.data());
          wrong[static_cast<size_t>(t)] +=
              !std::equal(out.begin(), out.end(), truth.begin() + k * 17);
        }
      });
    }
    for (std::thread& t : threads) t.join();
    loader.prefetch(0, 400);
    loader.prefetch(400, 400);
    loader.prefetch(800, 400);
  }
  CHECK(wrong == std::vector<int>(4, 0));
}

}  // namespace
}  // namespace bamtrain
