// Compares the engine with what a GPU computed for every wrapper (record_wrappers.cu).

#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>

#include "catch.h"
#include "engine/support.h"

using namespace bamtrain;
using namespace bamtrain::engine;

namespace {

/// The sum of the absolute values of the terms of word `w` of an mma's result.
double mma_magnitude(const std::vector<uint32_t>& in, size_t w) {
  // Where this sum is exact, the engine's mma of the absolute values gives it exactly.
  wrappers::Case absolute;
  absolute.kernel = wrappers::mma_kernel;
  absolute.shared_bytes = 0;
  absolute.out_words = 128;
  for (size_t i = 0; i < in.size(); ++i) {
    absolute.in.push_back(in[i] & (i < 6 * 32 ? 0x7FFF7FFFu : 0x7FFFFFFFu));
  }
  static std::vector<uint32_t> of_last, result;
  if (of_last != absolute.in) {
    of_last = absolute.in;
    result = run(absolute);
  }
  return float_of(result[w]);
}

bool agrees(const wrappers::Case& c, size_t w, uint32_t recorded, uint32_t computed) {
  if (recorded == computed) return true;
  const double gpu = float_of(recorded), engine = float_of(computed);
  if (c.tolerance == wrappers::Tolerance::exact) return false;
  if (std::isnan(gpu) || std::isnan(engine)) return std::isnan(gpu) && std::isnan(engine);
  if (std::isinf(gpu) || std::isinf(engine)) return gpu == engine;
  const bool is_mma = c.tolerance == wrappers::Tolerance::mma;
  const double argument = is_mma ? 0.0 : double{float_of(c.in[w])};
  return std::abs(gpu - engine) <=
         allowed(c.tolerance, argument, engine, is_mma ? mma_magnitude(c.in, w) : 0.0);
}

}  // namespace

TEST_CASE("the engine reproduces what a GPU computed for every wrapper") {
  const auto path = source_folder() / "tests/golden/wrappers.txt";
  std::ifstream in(path);
  if (!in) {
    std::printf("skipped: no tests/golden/wrappers.txt, which record_wrappers.cu makes on a GPU\n");
    return;
  }
  std::map<std::string, std::vector<uint32_t>> recorded;
  for (std::string name; in >> name;) {
    if (name[0] == '#') {
      std::getline(in, name);
      continue;
    }
    size_t count = 0;
    REQUIRE(in >> count);
    REQUIRE(count < 1000000);
    std::vector<uint32_t>& words = recorded[name];
    for (size_t i = 0; i < count; ++i) {
      std::string word;
      REQUIRE(in >> word);
      words.push_back(static_cast<uint32_t>(std::stoul(word, nullptr, 16)));
    }
  }
  for (const auto& c : wrappers::cases()) {
    INFO(c.name);
    REQUIRE(recorded.count(c.name) == 1);
    const std::vector<uint32_t>& gpu = recorded[c.name];
    const std::vector<uint32_t> engine = run(c);
    REQUIRE(gpu.size() == engine.size());
    for (size_t w = 0; w < gpu.size(); ++w) {
      INFO("word " << w << ", GPU " << std::hex << gpu[w] << ", engine " << engine[w]);
      if (!agrees(c, w, gpu[w], engine[w])) CHECK(gpu[w] == engine[w]);
    }
  }
}
