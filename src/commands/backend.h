#pragma once
// The backend that a config asks for.

#include <memory>

#include "config/reader.h"
#include "ops/ops.h"

namespace bamtrain {

/// `local_rank`: this process among those of its node, each of which takes a GPU of its own.
/// Error (device, config): no such device, or a precision that it has not.
std::unique_ptr<Backend> make_backend(DeviceKind device, Precision precision, int local_rank);

}  // namespace bamtrain
