#pragma once
// What an inspection sees of a decoder's passes, layer by layer.

#include <cstdint>

#include "ops/attention.h"

namespace bamtrain {

/// Called by a Model as its passes go. Tensors lie where the backend has them, and are good until
/// the call returns. Of L layers the stream enters number 0 to L - 1, and number L the final norm.
class LayerObserver {
 public:
  virtual ~LayerObserver() = default;

  /// The stream (N, C) A as it enters layer l; with NormPosition::post the sum that the norm before
  /// the layer is of.
  virtual void stream(int64_t /*l*/, const Tensor&) {}
  /// What attention of a layer read, rotated and with its mechanisms attached; the gates (B, T,
  /// ParameterLayout::gate_columns()) A that they were made of; and what it gave, (B, T, H, D) A.
  /// Passes that compute a layer again (Recompute::block) call it again.
  virtual void attention(int64_t /*l*/, const Attention&, const Tensor& /*gates*/,
                         const Tensor& /*out*/) {}
  /// The gradient (N, C) A of what forward_backward() adds up with respect to stream l; from L
  /// down.
  virtual void stream_gradient(int64_t /*l*/, const Tensor&) {}
};

}  // namespace bamtrain
