#pragma once
// Shuffles more documents than fit in memory.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/rng.h"
#include "data_tools/document_spill.h"
#include "data_tools/shard_set_writer.h"

namespace bamtrain {

/// The n-th document draws Rng(seed, "bamdata.shuffle").bits(n), and documents are output in the
/// order of their draws: every order is equally likely. Meanwhile they are on disk, in kBuckets
/// files by the highest bits of their draws. Memory: 64 kB per file, and 24 bytes per document of
/// one file.
class DocumentShuffle : public DocumentSink {
 public:
  static constexpr int kBuckets = 256;
  struct State {
    int64_t documents = 0;
    std::array<int64_t, kBuckets> bytes = {};  // size of each file
  };

  /// Whether `name` is the name of a bucket's file: "000".
  static bool is_bucket(const std::string& name);

  /// REQUIRES: `folder` exists and has the content for which `sync` returned `state`. `width`:
  /// bytes per token, 2 or 4.
  DocumentShuffle(const std::string& folder, int width, uint64_t seed, const State& state);

  void append(std::span<const int32_t> document) override;
  /// Flushes appended documents to disk and returns the state to resume from.
  State sync();

  /// Writes the documents of a bucket to `sink`, in their order.
  void write(int bucket, DocumentSink* sink);

 private:
  std::string folder_;
  Rng rng_;
  State state_;
  std::array<std::unique_ptr<DocumentSpill>, kBuckets> buckets_;
};

}  // namespace bamtrain
