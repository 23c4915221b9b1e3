// Runs a fuzz target without libFuzzer on every file of the corpus, and on a few hundred fixed
// mutations of each. Something in each file named "good..." must be accepted. The last line is like
// Catch2's, with one test case per target, since scripts/test.sh adds these up.
//
//     fuzz_TARGET CORPUS

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <vector>

#include "core/rng.h"
#include "target.h"

namespace bamtrain::fuzz {
namespace {

constexpr uint64_t kMutations = 300, kDrawsOfOne = 64;

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  require(in.good(), "a corpus that can be read");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Applies one to four changes, a function of (rng, number).
std::string mutated(std::string bytes, const Rng& rng, uint64_t number) {
  uint64_t draw = number * kDrawsOfOne;
  const auto below = [&](size_t n) { return static_cast<size_t>(rng.below(draw++, n)); };
  // Tokens that often break parsers.
  constexpr std::string_view kTokens[] = {std::string_view("\0", 1),
                                          "\"",
                                          "{",
                                          "[",
                                          "]",
                                          "}",
                                          ",",
                                          ":",
                                          "\n",
                                          "\r\n",
                                          "-1",
                                          "1e999",
                                          "0",
                                          "\\",
                                          "null",
                                          "true",
                                          "\xFF",
                                          "\xED\xA0\x80",
                                          "[[[[[[[[",
                                          "18446744073709551615",
                                          "9223372036854775808",
                                          "0.5"};
  for (size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = below(bytes.size()),
                 length = 1 + below(std::min<size_t>(bytes.size() - at, 32));
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(below(bytes.size()), bytes.substr(at, length));
        break;
      default:
        bytes.insert(at, kTokens[below(std::size(kTokens))]);
    }
  }
  return bytes;
}

int replay(const std::string& corpus) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) files.push_back(entry);
  std::sort(files.begin(), files.end());
  require(!files.empty(), "a corpus");
  for (const auto& file : files) {
    const std::string bytes = read(file), name = file.filename().string();
    const Rng rng(0, "fuzz." + name);
    for (uint64_t n = 0; n <= kMutations; ++n) {
      const std::string input = n == 0 ? bytes : mutated(bytes, rng, n);
      const int64_t before = g_accepted;
      try {
        LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
        if (n == 0 && name.starts_with("good") && g_accepted == before) {
          throw std::runtime_error("it is refused");
        }
      } catch (const std::exception& e) {
        const std::string found = "finding-" + name;
        std::ofstream(found, std::ios::binary) << input;
        std::fprintf(stderr, "%s, change %d (written to %s): %s\n", file.c_str(),
                     static_cast<int>(n), found.c_str(), e.what());
        std::printf("test cases: 1 | 0 passed | 1 failed\n");
        return 1;
      }
    }
  }
  std::printf("%d inputs with %d changes of each: %d taken\n", static_cast<int>(files.size()),
              static_cast<int>(kMutations), static_cast<int>(g_accepted));
  std::printf("test cases: 1 | 1 passed | 0 failed\n");
  return 0;
}

}  // namespace
}  // namespace bamtrain::fuzz

int main(int argc, char** argv) { return argc == 2 ? bamtrain::fuzz::replay(argv[1]) : 2; }
