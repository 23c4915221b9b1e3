#include "eval/paper_protocols.h"

#include <algorithm>
#include <array>

#include "core/error.h"

namespace bamtrain {

namespace {

std::vector<int64_t> doubled(int64_t from, int64_t to) {
  std::vector<int64_t> out;
  for (int64_t length = from; length <= to; length *= 2) out.push_back(length);
  return out;
}

/// Windows in DAPE's 20 batches. Throws Error for a length missing from its table.
int64_t windows_of_dape(int64_t length) {
  constexpr int64_t kBatches = 20, kProcesses = 8;
  struct Row {
    int64_t length, windows;
  };
  constexpr std::array<Row, 7> kWindows = {
      {{128, 128}, {256, 64}, {512, 32}, {1024, 16}, {2048, 8}, {4096, 1}, {8192, 1}}};
  for (const Row& row : kWindows) {
    if (row.length == length) return kBatches * kProcesses * row.windows;
  }
  throw Error(ExitCode::usage, "--protocol dape",
              "the lengths that the paper gives a number of windows for: 128, 256, ..., 8192",
              std::to_string(length), "change --lengths, or give the number with --count");
}

PaperProtocol bam() {
  PaperProtocol out;
  out.request.text = PerplexityText::packed;
  out.request.lengths = {32768};
  out.request.protocols = {"bins"};
  out.request.bin = 1024;
  out.request.apart = true;
  out.drops_special_tokens = true;
  return out;
}

PaperProtocol cable() {
  PaperProtocol out;
  out.request.text = PerplexityText::packed;
  out.request.lengths = doubled(512, 16384);
  out.request.protocols = {"windows"};
  return out;
}

PaperProtocol dape(int64_t training_length) {
  PaperProtocol out;
  out.request.text = PerplexityText::packed;
  out.request.lengths = doubled(training_length, 8192);
  out.request.protocols = {"last"};
  return out;
}

PaperProtocol asentmax() {
  PaperProtocol out;
  out.request.text = PerplexityText::beginnings;
  out.request.lengths = doubled(1024, 16384);
  out.request.protocols = {"windows"};
  out.request.counts = {500};
  return out;
}

}  // namespace

PaperProtocol paper_protocol(const std::string& name, int64_t training_length,
                             const std::vector<int64_t>& lengths, bool counted) {
  require(training_length >= 1, "a training length");
  require(std::find(kPaperProtocols.begin(), kPaperProtocols.end(), name) != kPaperProtocols.end(),
          "a paper's name");
  PaperProtocol out = name == "bam"     ? bam()
                      : name == "cable" ? cable()
                      : name == "dape"  ? dape(training_length)
                                        : asentmax();
  if (!lengths.empty()) out.request.lengths = lengths;
  if (out.request.lengths.empty()) {
    throw Error(ExitCode::usage, "--protocol " + name,
                "a model trained at up to 8192 tokens, the paper's longest length",
                std::to_string(training_length), "give --lengths");
  }
  if (name == "dape" && !counted) {
    for (const int64_t length : out.request.lengths) {
      out.request.counts.push_back(windows_of_dape(length));
    }
  }
  return out;
}

}  // namespace bamtrain
