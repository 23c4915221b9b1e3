#pragma once
// Event files, which TensorBoard reads: scalars and histograms against steps.
//
// A file is a sequence of records (TensorFlow's TFRecord, little-endian):
//
//   uint64 length, uint32 masked CRC-32C of these 8 bytes, `length` bytes of data, uint32 masked
//   CRC-32C of the data; masked: rotated right by 15, plus 0xA282EAD8
//
// whose data are messages Event of TensorFlow's event.proto and summary.proto.

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

/// A run is continued in a file of its own, events.out.tfevents.NNNNNN, numbered from 1. Those
/// before it are cut back to the step that it continues after, so that whoever reads the folder
/// finds no step twice; it begins with a SessionLog START of the next step, for which a TensorBoard
/// that is looking on forgets what it has read of that step and later ones.
///
/// Every member may throw Error (ExitCode::io). Once the longest record was written, writing takes
/// no memory.
class EventFile {
 public:
  /// The next file of `folder`, which is made where it is absent, for steps after `step`.
  EventFile(const std::string& folder, int64_t step);

  void write_scalars(int64_t step, std::span<const Scalar> scalars);
  /// 30 buckets of equal width from the smallest to the largest value, or one where these are
  /// equal. Values that are not finite are left out.
  void write_histogram(int64_t step, std::string_view tag, std::span<const float> values);
  /// As AppendFile::take_lost.
  bool take_lost() { return file_.take_lost(); }
  /// Puts the events on the disk, see StepLines::sync.
  void sync() { file_.sync(); }

 private:
  /// `field`: of Event, its number and its bytes.
  void write_event(int64_t step, int field, std::string_view bytes);

  AppendFile file_;
  std::string record_, summary_, value_, histogram_, packed_;  // keep their memory
  std::vector<double> counts_;
};

}  // namespace bamtrain
