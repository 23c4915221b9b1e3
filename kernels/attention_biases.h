#pragma once
// The biases that attention reads on a device, their gradients, and what launchers ask of both.

#include <cstdint>

#include "core/host_device.h"
#include "mixes/dape.h"
#include "priors/fire.h"
#include "priors/formula.h"

namespace bamtrain::kernels {

/// FireBias of ops/mechanisms/fire.h. Neither beside a table nor beside numbers.
struct FireInputs {
  const float *psi = nullptr, *psi_dc = nullptr;    // (>= T), by distance. Null: no such bias
  const float* inverse = nullptr;                   // (>= T), by position
  const int32_t* ends = nullptr;                    // (>= T, kFireHidden), by position
  const float *slope = nullptr, *offset = nullptr;  // (H, kFireSegments)
  const int32_t* positions = nullptr;               // (B, T): of a token in its document
};

/// RelativeBias of ops/mechanisms/transformer_xl.h.
struct RelativeInputs {
  // By distance, (H, D) each: at distance 0 of (>= T), or not causal between T - 1 on either side.
  // Null: no such bias
  const float* r = nullptr;
  const float *u = nullptr, *w = nullptr;  // (H, D)
};

/// ContextualBias of ops/mechanisms/cope.h.
struct ContextualInputs {
  const float* positions = nullptr;  // (D, count). Null: no such bias
  int count = 0;
};
constexpr int kMostPositions = 1024;

/// HeadMix of ops/attention.h.
struct MixInputs {
  const float *w1 = nullptr, *c1 = nullptr;  // (F, mix_inputs), (F). Null: heads do not meet
  const float *w2 = nullptr, *c2 = nullptr;  // (H, F), (H)
  int hidden = 0;                            // F
  MixForm form = MixForm::concat_residual;
};
constexpr int kMostMixedHeads = 160;
/// Heads times tokens of a mix: a part of 128 queries has at most 2^32 logits, tokens in whole
/// tiles.
constexpr int64_t kMostMixedRows = (int64_t{1} << 25) - 64 * kMostMixedHeads;
struct MixOutputs {
  float *dw1 = nullptr, *dc1 = nullptr, *dw2 = nullptr, *dc2 = nullptr;  // as MixInputs
};

/// What b is made of: one of these, or nothing; and a mix.
struct BiasInputs {
  bool causal = true;  // i - j is never below 0
  // b at (h, i - j): at distance 0 of (H, >= T), or not causal between T - 1 on either side. Null:
  // b = 0
  const float* table = nullptr;
  int64_t table_head = 0;  // from one head of the table to the next
  // (B, H, T): b by a formula of the numbers of row and key. Not beside a table
  const double* numbers = nullptr;
  int64_t numbers_head = 0;  // from one head of them to the next; 0: T
  Formula formula = Formula::difference;
  FireInputs fire;
  RelativeInputs relative;
  ContextualInputs contextual;
  MixInputs mix;  // beside the first three, or none of them
};

/// Whether b is made of scores, to whose gradient it adds.
BAMTRAIN_HD inline bool reads_scores(const BiasInputs& a) {
  return a.contextual.positions != nullptr || a.mix.w1 != nullptr;
}
/// Whether b is made of queries and keys: see attention_content.h.
BAMTRAIN_HD inline bool reads_content(const BiasInputs& a) {
  return a.relative.r != nullptr || reads_scores(a);
}

/// Its gradients, each written where what it belongs to is there.
struct BiasOutputs {
  bool causal = true;         // as BiasInputs
  float* dtable = nullptr;    // by distance, as table
  int64_t dtable_head = 0;    // from one head of dtable to the next
  float* dnumbers = nullptr;  // (B, H, T)
  // Of fire: (H, kFireSegments, 2), and (B, H, T) each, as FireBiasGradients says.
  double* dfire = nullptr;
  float *dfire_u = nullptr, *dfire_psi = nullptr;
  // Of a relative bias: by distance, as r, and (H, D) each.
  float *dr = nullptr, *du = nullptr, *dw = nullptr;
  float* dpositions = nullptr;  // of a contextual one: (D, count)
  MixOutputs dmix;
};

/// Null: nothing is wrong.
inline const char* bias_refusal(const BiasInputs& a, int T) {
  const int64_t distances = a.causal ? T : int64_t{2} * T - 1;
  if (a.table != nullptr && a.table_head < distances) {
    return "attention: the table holds fewer than T distances";
  }
  if (!a.causal && a.contextual.positions != nullptr) {
    return "attention: a bias of gates of keys before the query, and rows that see others";
  }
  const FireInputs& f = a.fire;
  if ((a.table != nullptr) + (a.numbers != nullptr) + (f.psi != nullptr) +
          (a.relative.r != nullptr) + (a.contextual.positions != nullptr) >
      1) {
    return "attention: more than one bias";
  }
  const MixInputs& m = a.mix;
  if (m.w1 != nullptr) {
    if (a.relative.r != nullptr || a.contextual.positions != nullptr) {
      return "attention: a mix of heads beside a bias that reads queries and keys";
    }
    if (m.c1 == nullptr || m.w2 == nullptr || m.c2 == nullptr) {
      return "attention: a part of the mix of heads is missing";
    }
    if (m.hidden < 1 || m.hidden > kDapeMostHidden) {
      return "attention: a mix of heads whose hidden layer is not 1 to 64 wide";
    }
  }
  const int positions = a.contextual.count;
  if (a.contextual.positions != nullptr && (positions < 2 || positions > kMostPositions)) {
    return "attention: positions are not 2 to 1,024";
  }
  if (a.relative.r != nullptr && (a.relative.u == nullptr || a.relative.w == nullptr)) {
    return "attention: u or w of a relative bias is missing";
  }
  if (f.psi != nullptr && (f.psi_dc == nullptr || f.inverse == nullptr || f.ends == nullptr ||
                           f.slope == nullptr || f.offset == nullptr || f.positions == nullptr)) {
    return "attention: a part of fire is missing";
  }
  return nullptr;
}
inline const char* bias_refusal(const BiasInputs& a, const BiasOutputs& g, int T) {
  if (a.numbers != nullptr && g.dnumbers == nullptr) {
    return "attention: numbers without dnumbers";
  }
  const int64_t distances = a.causal ? T : int64_t{2} * T - 1;
  if (a.table != nullptr && (g.dtable == nullptr || g.dtable_head < distances)) {
    return "attention: a table without dtable, or with one of fewer than T distances";
  }
  if (a.fire.psi != nullptr &&
      (g.dfire == nullptr || g.dfire_u == nullptr || g.dfire_psi == nullptr)) {
    return "attention: fire without its gradients";
  }
  if (a.relative.r != nullptr && (g.dr == nullptr || g.du == nullptr || g.dw == nullptr)) {
    return "attention: a relative bias without its gradients";
  }
  if (a.contextual.positions != nullptr && g.dpositions == nullptr) {
    return "attention: positions without dpositions";
  }
  const MixOutputs& m = g.dmix;
  if (a.mix.w1 != nullptr &&
      (m.dw1 == nullptr || m.dc1 == nullptr || m.dw2 == nullptr || m.dc2 == nullptr)) {
    return "attention: a mix of heads without its gradients";
  }
  return nullptr;
}

}  // namespace bamtrain::kernels
