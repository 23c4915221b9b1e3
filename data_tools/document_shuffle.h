#pragma once
// Documents in a random order, of more of them than memory holds.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/rng.h"
#include "data_tools/document_spill.h"
#include "data_tools/shard_set_writer.h"

namespace bamtrain {

/// The n-th document draws Rng(seed, "bamdata.shuffle").bits(n), and documents come out in the
/// order of what they drew: every order of them is as likely as any other. They lie on the disk
/// meanwhile, in kBuckets files by the highest bits of their draws. Memory: 64 kB a file, and 24
/// bytes for each document of one of them.
class DocumentShuffle : public DocumentSink {
 public:
  static constexpr int kBuckets = 256;
  struct State {
    int64_t documents = 0;
    std::array<int64_t, kBuckets> bytes = {};  // of the files
  };

  /// Whether a file of its folder has this name: "000".
  static bool is_bucket(const std::string& name);

  /// `folder` exists, and holds what `sync` returned `state` for. `width`: bytes of a token, 2
  /// or 4.
  DocumentShuffle(const std::string& folder, int width, uint64_t seed, const State& state);

  void append(std::span<const int32_t> document) override;
  /// What was appended is on the disk, in the state that is returned.
  State sync();

  /// The documents of a bucket, in their order.
  void write(int bucket, DocumentSink* sink);

 private:
  std::string folder_;
  Rng rng_;
  State state_;
  std::array<std::unique_ptr<DocumentSpill>, kBuckets> buckets_;
};

}  // namespace bamtrain
