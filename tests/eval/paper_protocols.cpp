// The papers' protocols, compared with the papers' figures, each stated once here.

#include "eval/paper_protocols.h"

#include "catch.h"
#include "core/error.h"
#include "data/files.h"

using namespace bamtrain;

namespace {

using Numbers = std::vector<int64_t>;
using Words = std::vector<std::string>;

std::string protocol_refusal(const std::string& name, int64_t training_length,
                             const Numbers& lengths) {
  return testing::error_of(ExitCode::usage,
                           [&] { paper_protocol(name, training_length, lengths, false); });
}

}  // namespace

TEST_CASE("BAM: chunks of 32,769 tokens without BOS and EOS, bins of 1,024") {
  const PaperProtocol p = paper_protocol("bam", 512, {}, false);
  CHECK(p.request.text == PerplexityText::packed);
  CHECK(p.drops_special_tokens);
  CHECK(p.request.apart);
  CHECK(p.request.lengths == Numbers{32768});
  CHECK(p.request.protocols == Words{"bins"});
  CHECK(p.request.bin == 1024);
  CHECK(p.request.counts.empty());
  CHECK(paper_protocol("bam", 512, {102400}, false).request.lengths == Numbers{102400});
}

TEST_CASE("Cable: packed windows of each length to 16,384, all positions") {
  const PaperProtocol p = paper_protocol("cable", 1024, {}, false);
  CHECK(p.request.text == PerplexityText::packed);
  CHECK_FALSE(p.drops_special_tokens);
  CHECK_FALSE(p.request.apart);
  CHECK(p.request.lengths == Numbers{512, 1024, 2048, 4096, 8192, 16384});
  CHECK(p.request.protocols == Words{"windows"});
}

TEST_CASE("DAPE: the last min(256, length) tokens of 20 batches") {
  const PaperProtocol p = paper_protocol("dape", 128, {}, false);
  CHECK(p.request.text == PerplexityText::packed);
  CHECK_FALSE(p.drops_special_tokens);
  CHECK(p.request.lengths == Numbers{128, 256, 512, 1024, 2048, 4096, 8192});
  CHECK(p.request.counts == Numbers{20480, 10240, 5120, 2560, 1280, 160, 160});
  CHECK(p.request.protocols == Words{"last"});
  CHECK(p.request.last_tokens_at(128) == 128);
  CHECK(p.request.last_tokens_at(256) == 256);
  CHECK(p.request.last_tokens_at(8192) == 256);
  CHECK(paper_protocol("dape", 512, {}, false).request.lengths ==
        Numbers{512, 1024, 2048, 4096, 8192});
  CHECK(paper_protocol("dape", 512, {1024, 8192}, false).request.counts == Numbers{2560, 160});
  CHECK(paper_protocol("dape", 512, {16384}, true).request.counts.empty());
  CHECK(protocol_refusal("dape", 512, {1024, 16384})
            .find("--protocol dape: expected the lengths that the paper gives a number of windows "
                  "for") != std::string::npos);
  CHECK(protocol_refusal("dape", 16384, {}).find("give --lengths") != std::string::npos);
}

TEST_CASE("ASEntmax: 500 documents, 1K to 16K, all targets") {
  const PaperProtocol p = paper_protocol("asentmax", 2048, {}, false);
  CHECK(p.request.text == PerplexityText::beginnings);
  CHECK(p.request.lengths == Numbers{1024, 2048, 4096, 8192, 16384});
  CHECK(p.request.counts == Numbers{500});
  CHECK(p.request.protocols == Words{"windows"});
}
