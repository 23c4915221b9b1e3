// Several sources in one loader.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "catch.h"
#include "data/loader.h"
#include "data/manifest.h"
#include "files.h"
#include "windows.h"

namespace bamtrain {
namespace {

using namespace testing;

/// Three sources with distinguishable tokens: from 0, from 20000, from 40000.
struct Three {
  TemporaryFolder folders[3];
  std::vector<Source> sources;

  Three() {
    write_shards(folders[0], {counting(0, 801)});                          // 100 windows of 8
    write_shards(folders[1], {counting(20000, 81), counting(21000, 57)});  // 17
    write_shards(folders[2], {counting(40000, 265)});                      // 33
    const double weights[] = {0.5, 0.3, 0.2};
    for (int i = 0; i < 3; ++i) sources.push_back({open_set(folders[i]), weights[i]});
  }
};

/// The first token of each window, by source.
std::vector<Tokens> by_source(const Loader& loader, int64_t count) {
  std::vector<Tokens> out(3);
  const Tokens all = windows(loader, 0, count);
  for (size_t i = 0; i < all.size(); i += 9)
    out[static_cast<size_t>(all[i] / 20000)].push_back(all[i]);
  return out;
}

TEST_CASE("each source keeps the order of windows that it has alone, epoch after epoch") {
  const Three three;
  for (const bool shuffle : {false, true}) {
    const Loader mixed(three.sources, 8, 5, shuffle);
    const std::vector<Tokens> parts = by_source(mixed, 1000);
    for (size_t s = 0; s < 3; ++s) {
      const Loader alone(three.sources[s].shards, 8, 5, shuffle);
      const Tokens all = windows(alone, 0, static_cast<int64_t>(parts[s].size()));
      Tokens firsts;
      for (size_t i = 0; i < all.size(); i += 9) firsts.push_back(all[i]);
      CHECK(parts[s] == firsts);
    }
  }
}

TEST_CASE("each source's windows are all seen once in each of its epochs") {
  const Three three;
  const Loader mixed(three.sources, 8, 5, true);
  const std::vector<Tokens> parts = by_source(mixed, 1000);
  const int64_t per_epoch[] = {100, 17, 33};
  for (size_t s = 0; s < 3; ++s) {
    CHECK(mixed.windows_per_epoch(s) == per_epoch[s]);
    Tokens truth;
    for (const int64_t from : s == 1 ? std::vector<int64_t>{20000, 21000}
                                     : std::vector<int64_t>{static_cast<int64_t>(s) * 20000}) {
      const int64_t count = s == 0 ? 100 : s == 2 ? 33 : from == 20000 ? 10 : 7;
      for (int64_t i = 0; i < count; ++i) truth.push_back(static_cast<int32_t>(from + 8 * i));
    }
    const auto n = static_cast<std::ptrdiff_t>(per_epoch[s]);
    const auto epochs = static_cast<std::ptrdiff_t>(parts[s].size()) / n;
    CHECK(epochs >= 5);
    for (std::ptrdiff_t e = 0; e < epochs; ++e) {
      Tokens epoch(parts[s].begin() + e * n, parts[s].begin() + (e + 1) * n);
      if (e > 0) CHECK(!std::equal(epoch.begin(), epoch.end(), parts[s].begin()));
      std::sort(epoch.begin(), epoch.end());
      CHECK(epoch == truth);
    }
  }
}

TEST_CASE("windows of a mixture come in the shares of the weights") {
  const Three three;
  const Loader mixed(three.sources, 8, 5, true);
  for (const int64_t n : {10, 99, 1000}) {
    const std::vector<Tokens> parts = by_source(mixed, n);
    for (size_t s = 0; s < 3; ++s) {
      const double share = three.sources[s].weight * static_cast<double>(n);
      CHECK(std::abs(static_cast<double>(parts[s].size()) - share) < 1.68);
    }
  }
}

TEST_CASE("a window of a mixture depends on its number alone") {
  const Three three;
  const Loader whole(three.sources, 8, 5, true);
  const Tokens truth = windows(whole, 0, 400);
  for (const int64_t piece : {1, 3, 64}) {
    Loader loader(three.sources, 8, 5, true);
    // Backwards, as if each chunk went to a different process, or the run were resumed there.
    for (int64_t k = 400 - piece; k >= 0; k -= piece) {
      if (piece != 3) loader.prefetch(k, piece);
      CHECK(windows(loader, k, piece) ==
            Tokens(truth.begin() + k * 9, truth.begin() + (k + piece) * 9));
    }
  }
}

TEST_CASE("a source too short for one window is an error that names it") {
  const Three three;
  const TemporaryFolder empty;
  write_shards(empty, {counting(0, 8), {}});
  std::vector<Source> sources = three.sources;
  sources.push_back({open_set(empty), 1});
  const std::string message = error_of(ExitCode::data, [&] { Loader(sources, 8, 0, true); });
  CHECK(contains(message, empty.path()));
  CHECK(contains(message, "8 tokens in 2 shards"));
}

TEST_CASE("sources of different tokenizers or document starts are refused by name") {
  const TemporaryFolder a, b;
  const auto write = [](const TemporaryFolder& folder, char tokenizer,
                        std::optional<int64_t> start) {
    write_shards(folder, {counting(0, 100)});
    Manifest m;
    m.tokenizer_sha256 = std::string(64, tokenizer);
    m.vocab = 1000;
    m.document_start = start;
    m.tokens = 100;
    m.shards = {{"a.bin", 100, 0, std::string(64, '0')}};
    write_manifest(folder.file("manifest.json"), m);
  };
  const auto message = [&] {
    const std::vector<Source> sources = {{open_set(a), 1}, {open_set(b), 1}};
    return error_of(ExitCode::data, [&] { Loader(sources, 8, 0, true); });
  };
  write(a, 'a', 1);
  write(b, 'b', 1);
  const std::string tokenizers = message();
  CHECK(contains(tokenizers, a.path()));
  CHECK(contains(tokenizers, b.path()));
  CHECK(contains(tokenizers, "sha256 " + std::string(64, 'b')));
  write(b, 'a', 2);
  CHECK(contains(message(), "the document start of " + a.path() + " (id 1)"));
  write(b, 'a', std::nullopt);
  CHECK(contains(message(), "found no id"));
  // Shards without a manifest are not compared.
  write(b, 'a', 1);
  const TemporaryFolder plain;
  write_shards(plain, {counting(0, 100)});
  CHECK(Loader({{open_set(plain), 1}, {open_set(a), 1}, {open_set(b), 1}}, 8, 0, true)
            .sources()
            .size() == 3);
}

}  // namespace
}  // namespace bamtrain
