#pragma once
// Event files for TensorBoard: scalars and histograms by step.
//
// A file is a sequence of records (TensorFlow's TFRecord, little-endian):
//
//   uint64 length, uint32 masked CRC-32C of these 8 bytes, `length` bytes of data, uint32 masked
//   CRC-32C of the data; masked: rotated right by 15, plus 0xA282EAD8
//
// The data are Event messages of TensorFlow's event.proto and summary.proto.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/append_file.h"

namespace bamtrain {

struct Scalar {
  std::string_view tag;
  float value = 0;
};

/// Every start of a run writes a new file, events.out.tfevents.NNNNNN, numbered from 1. Earlier
/// files are cut back to the step that the run resumes after, so that a reader of the folder finds
/// no step twice. The file begins with a SessionLog START of the next step. A TensorBoard that is
/// already running then drops what it has read of that step and later ones.
///
/// Every member may throw Error (ExitCode::io). Once the longest record has been written, writing
/// allocates nothing.
class EventFile {
 public:
  /// Opens the next file in `folder`, for steps after `step`. Creates the folder if it does not
  /// exist.
  EventFile(const std::string& folder, int64_t step);

  void write_scalars(int64_t step, std::span<const Scalar> scalars);
  /// 30 buckets of equal width from the smallest to the largest value, or one bucket if they are
  /// equal. Non-finite values are left out.
  void write_histogram(int64_t step, std::string_view tag, std::span<const float> values);
  /// See AppendFile::take_lost.
  bool take_lost() { return file_.take_lost(); }
  /// Syncs the events to disk; see StepLines::sync.
  void sync() { file_.sync(); }

 private:
  /// `field`: number of a field of Event; `bytes`: its content.
  void write_event(int64_t step, int field, std::string_view bytes);

  AppendFile file_;
  std::string record_, summary_, value_, histogram_, packed_;  // reused buffers
  std::vector<double> counts_;
};

}  // namespace bamtrain
