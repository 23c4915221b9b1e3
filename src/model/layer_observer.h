#pragma once
// Observes the passes of a decoder, layer by layer.

#include <cstdint>

#include "ops/attention.h"

namespace bamtrain {

/// Called by a Model during its passes. Tensors are in the backend's memory and valid until the
/// call returns. With L layers, streams 0 to L - 1 enter the layers, and stream L the final norm.
class LayerObserver {
 public:
  virtual ~LayerObserver() = default;

  /// The stream (N, C) A at the entry of layer l. With NormPosition::post, the input of the norm
  /// before the layer.
  virtual void stream(int64_t /*l*/, const Tensor&) {}
  /// The inputs of a layer's attention, rotated and with its mechanisms attached; the gates (B, T,
  /// ParameterLayout::gate_columns()) A that these were computed from; and its output, (B, T, H, D)
  /// A. Passes that recompute a layer (Recompute::block) call it again.
  virtual void attention(int64_t /*l*/, const Attention&, const Tensor& /*gates*/,
                         const Tensor& /*out*/) {}
  /// The gradient (N, C) A of forward_backward()'s scaled loss with respect to stream l,
  /// from L down.
  virtual void stream_gradient(int64_t /*l*/, const Tensor&) {}
};

}  // namespace bamtrain
