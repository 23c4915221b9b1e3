#pragma once
// What a backend plans scratch for. Nothing here is inline: the CPU backend is compiled for several
// instruction sets.

#include <cstdint>
#include <vector>

#include "core/dtype.h"
#include "ops/attention_form.h"

namespace bamtrain {

/// The largest shapes that a backend's scratch must serve.
struct WorkspaceShape {
  int64_t B = 0, T = 0, H = 0, K = 0, D = 0, C = 0;
  bool incremental = false;  // whether Attention may have a past; past + T keys at most
  int64_t past = 0;
  bool backward = true;
  int64_t F = 0;                 // width of the mlp's activation
  int64_t hidden = 0;            // columns of the activation's input: F, or 2 F if gated
  int64_t V = 0;                 // rows of the largest embedding table, of tokens or positions
  int64_t head_bias = 0;         // elements of the head's bias; 0: no bias
  int64_t mechanism_values = 0;  // elements of the largest parameter that is read as doubles
  int64_t gates = 0;             // columns of gates in the product of q, k and v
  std::vector<AttentionForm> attention = {};  // of the layers
  bool bidirectional = false;                 // whether Attention::last_key is set
  bool attention_statistics = false;          // whether attention_statistics is called
  Dtype activations = Dtype::f32;

  /// Whether a layer's form is such.
  bool any(bool (AttentionForm::*is)() const) const;
  bool all_mixed() const;
  /// HeadMix::hidden, maximum; 0: no layer mixes heads.
  int64_t mix_hidden() const;
  /// AttentionForm::content_columns, maximum; 0: no layer has such a bias.
  int64_t content_columns() const;
};

}  // namespace bamtrain
