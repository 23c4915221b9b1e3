#pragma once
// The safetensors format (https://huggingface.co/docs/safetensors): 8 bytes little-endian header
// length, a JSON header of names, dtypes, shapes and offsets, then the tensors' bytes, row-major
// and little-endian, without gaps. The header's metadata may hold the SHA-256 of each tensor's
// bytes under "sha256:NAME". This verifies files without a manifest, wherever they are copied.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "core/dtype.h"
#include "core/durable_file.h"

namespace bamtrain {

/// A contiguous row-major tensor in the caller's memory: the source of a write or the target of a
/// read. An empty shape is a scalar.
struct NamedTensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> shape;
  void* data = nullptr;
};

/// Writes `tensors` durably to `path`. The bytes are a function of the arguments and do not depend
/// on the order of `tensors`: header keys are sorted, the header is padded with spaces to 8 bytes,
/// and data are ordered by decreasing element size, then name, which aligns every tensor to its
/// elements. On an Error (ExitCode::io) no file is left. REQUIRES: unique non-empty names other
/// than "__metadata__", names and metadata in UTF-8.
FileDigest write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                             const std::map<std::string, std::string>& metadata);

/// The same file with zeros in place of the tensors' values, whose memory may be missing: a
/// SafetensorsPart, or several, write them. Returns the word_sum() of what it wrote.
uint64_t begin_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                           const std::map<std::string, std::string>& metadata);

/// Values of some of the elements, for a file that begin_safetensors() made of the same arguments.
class SafetensorsPart {
 public:
  /// Throws Error (ExitCode::io), like the others.
  SafetensorsPart(const std::string& path, const std::vector<NamedTensor>& tensors,
                  const std::map<std::string, std::string>& metadata);
  /// Writes `bytes` bytes of the tensor `name`, from its byte `from` on.
  void write(const std::string& name, int64_t from, const void* data, int64_t bytes);
  /// Returns the word_sum() of what was written.
  uint64_t finish();

 private:
  PartOfFile file_;
  uint64_t sum_ = 0;
  std::map<std::string, int64_t> offsets_;  // of each tensor's first byte in the file
};

/// The metadata entries with each tensor's digest. REQUIRES: as write_safetensors.
std::map<std::string, std::string> digests_of(const std::vector<NamedTensor>& tensors);

/// A safetensors file open for reading. `open` checks the whole header against the format and the
/// file's length before it trusts anything, so entries can be trusted afterwards.
class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    Dtype dtype = Dtype::f32;
    std::vector<int64_t> shape;
    int64_t offset = 0;  // of the first byte in the file
    int64_t bytes = 0;
  };

  /// Throws Error (ExitCode::checkpoint) with the file, what was expected and what was found, if
  /// the file
  /// - is truncated or damaged,
  /// - has tensors of a dtype other than F64, F32, F16, BF16, I32, U8 and BOOL (read as U8),
  /// - or has digests of only some tensors.
  static SafetensorsFile open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::vector<Entry>& tensors() const { return entries_; }  // sorted by name
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Null if there is no tensor of that name.
  const Entry* find(const std::string& name) const;

  /// Copies the tensor's `entry.bytes` bytes to `out`. Throws Error (ExitCode::checkpoint) if the
  /// disk does not deliver them or their digest differs from the file's. REQUIRES: `entry` is of
  /// this file.
  void read(const Entry& entry, void* out) const;

 private:
  explicit SafetensorsFile(InputFile file) : file_(std::move(file)) {}

  InputFile file_;
  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Throws Error (ExitCode::checkpoint) unless `file` holds exactly these names with these shapes
/// and dtypes. The error names the tensor and the shapes and dtypes expected and found. Reads no
/// values.
void check_tensors(const SafetensorsFile& file, const std::vector<NamedTensor>& want);

/// The same, then fills the memory of `want` from `file`.
void read_tensors(const SafetensorsFile& file, const std::vector<NamedTensor>& want);

}  // namespace bamtrain
