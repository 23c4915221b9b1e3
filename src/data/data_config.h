#pragma once
// What is trained on: a plain struct, filled by src/config and by tests.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bamtrain {

/// Of the largest: a source with less would be rounded away.
inline constexpr double kSmallestWeight = 1e-12;

struct DataSource {
  std::string path;   // a folder of *.bin shards, or a glob
  double weight = 1;  // finite, positive, at least kSmallestWeight of the largest of a mixture
  bool operator==(const DataSource&) const = default;
};

struct DataSources {
  std::vector<DataSource> list;

  DataSources() = default;
  DataSources(std::string path) : list{{std::move(path), 1}} {}  // that one alone
  explicit DataSources(std::vector<DataSource> mixture) : list(std::move(mixture)) {}
};

struct DataConfig {
  DataSources train;
  std::string val;                        // as DataSource::path; empty: no validation
  int64_t sequence_length = 0;            // T
  std::optional<int64_t> document_start;  // token id that begins a document; default: manifest
  bool shuffle = true;                    // windows permuted per (seed, epoch), or in file order
  bool verify = true;  // shards are compared with their manifests while the run trains
};

}  // namespace bamtrain
