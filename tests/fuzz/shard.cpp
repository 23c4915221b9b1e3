// A shard ("s"), or the manifest ("m") of a valid shard.

#include <vector>

#include "data/manifest.h"
#include "data/shard_set.h"
#include "target.h"

using namespace bamtrain;
using namespace bamtrain::fuzz;

namespace {

constexpr int64_t kVocab = 300;

/// Four tokens, 1 2 1 3, of two bytes each.
std::string good_shard() {
  std::string bytes(ShardFormat::kHeaderBytes, '\0');
  const uint32_t header[] = {20240520, 1, 4};
  for (size_t i = 0; i < 12; ++i)
    bytes[i] = static_cast<char>(header[i / 4] >> (8 * (i % 4)) & 0xFF);
  for (const char id : {1, 2, 1, 3}) bytes += {id, '\0'};
  return bytes;
}

/// Reads all documents and all tokens.
void read_all(const std::string& folder) {
  const ShardSet set = ShardSet::open(folder, kVocab);
  for (const DocumentSpan& d : set.documents(set.document_start(std::nullopt).value_or(1))) {
    std::vector<int32_t> tokens(static_cast<size_t>(d.length));
    set.read_span(d, tokens.data());
    for (const int32_t id : tokens) require(id >= 0 && id < kVocab, "ids of the vocabulary");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder alone, described;
  const Input in(data, size);
  if (in.kind == 's') {
    alone.write("000000.bin", in.rest);
    accepts([&] { read_all(alone.path()); });
    return 0;
  }
  described.write("000000.bin", good_shard());
  const std::string path = described.write(kManifestName, in.rest);
  accepts([&] { read_manifest(path); });
  accepts([&] { read_all(described.path()); });
  return 0;
}
