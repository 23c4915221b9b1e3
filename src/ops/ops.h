#pragma once
// The contract of a backend: every operation of a training step, next to its adjoint.
//
// Conventions. A is the activation dtype of the run (f32, bf16; f64 in the reference backend), P
// the parameter dtype (f32; f64 in the reference backend). N = B*T rows. Output arguments come
// first. "+=" in a comment means that the result is added to the output; all other outputs are
// overwritten. Inputs and outputs never overlap unless a comment allows it. Operations allocate no
// memory, except inside a library's matrix product: plan() registers their scratch before the first
// step. They return no status: a violated contract is an Error with ExitCode::internal.
//
// Every operation is a pure function of its arguments: results are bitwise identical for any number
// of threads and any preceding operations.

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/arena.h"
#include "core/checked.h"
#include "core/kinds.h"
#include "core/peer_link.h"
#include "core/tensor.h"
#include "ops/attention.h"
#include "ops/workspace_shape.h"

namespace bamtrain {

/// Step-independent optimizer hyperparameters of a contiguous parameter range. The step-dependent
/// ones are the OptimizerFactors of ops/optimizer_math.h.
struct OptimizerHyperparameters {
  double beta1 = 0, beta2 = 0, eps = 0;
  double minimum = -INFINITY, maximum = INFINITY;  // of a weight
};

constexpr int64_t kSquaresBlock = 4096;
inline int64_t squares_blocks(int64_t n) { return ceil_div(n, kSquaresBlock); }

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const char* name() const = 0;
  virtual Dtype parameter_dtype() const = 0;  // P

  /// Whether the products of a mix of heads take weights rounded to bf16.
  virtual bool rounds_mix(const Attention&) const { return false; }

  /// Registers the scratch of all operations for shapes up to `w`.
  virtual void plan(Arena& arena, const WorkspaceShape& w) = 0;

  // --- memory -----------------------------------------------------------------------------------

  /// The source of all tensors' memory.
  virtual MemorySource& memory() = 0;
  /// dst = src in host memory, in dst's dtype. dst is contiguous.
  virtual void upload(Tensor dst, const void* src) = 0;
  /// dst in host memory = src, which is contiguous. Waits for all preceding operations.
  virtual void download(void* dst, Tensor src) = 0;
  /// Waits for all preceding operations.
  virtual void synchronize() = 0;
  /// Runs `work`, which calls operations of this backend and has no other effects that matter. A
  /// backend may record the operations of the first calls with this key and replay them later
  /// without running `work`. So operations and arguments must be the same at every call with the
  /// same key; only the contents of tensors may differ.
  virtual void run_captured(int64_t key, const std::function<void()>& work) = 0;

  /// Creates the communicator between this backend's memory and that of the other processes.
  /// Collective. Returns null if the memory is host memory. Its calls are operations like those
  /// below. It must not outlive the backend.
  virtual std::unique_ptr<PeerLink> connect(const Peers& peers) = 0;

  virtual void zero(Tensor x) = 0;
  /// dst += src, element by element; same dtype (P, A or f64) and size. bf16 sums are computed in
  /// fp32 and rounded.
  virtual void add(Tensor dst, Tensor src) = 0;
  /// dst = src rounded to dst's dtype.
  virtual void convert(Tensor dst, Tensor src) = 0;
  /// dst = src; same dtype and shape. Both may be strided except in the innermost dimension.
  virtual void copy(Tensor dst, Tensor src) = 0;
  /// total (1) f64 += the sum of x (n), P or f64, accumulated in fp64 in a fixed order.
  virtual void sum(Tensor total, Tensor x) = 0;
  /// squares (squares_blocks(n)) f64 = the sums of the squares of each kSquaresBlock elements of x
  /// (n) P, accumulated in fp64 in a fixed order. Those of a part of x that begins with a block are
  /// the same as those of all.
  virtual void squares(Tensor squares, Tensor x) = 0;

  // --- embedding --------------------------------------------------------------------------------

  /// out (N, C) A = scale table[tokens[n]] + position_table[positions[n]], rounded once.
  /// tokens, positions (N) i32; table (V, C) A; position_table (T', C) P or empty.
  virtual void embedding_forward(Tensor out, Tensor tokens, Tensor table, double scale,
                                 Tensor positions, Tensor position_table) = 0;
  /// dtable (V, C) P += scale * the rows of dout (N, C) A, by token; dposition_table (T', C)
  /// P += those rows, by position (may be empty).
  virtual void embedding_backward(Tensor dtable, double scale, Tensor dposition_table, Tensor dout,
                                  Tensor tokens, Tensor positions) = 0;

  // --- norm, fused with the residual addition before it -----------------------------------------

  /// sum (N, C) A = residual + branch; y (N, C) A = (sum - mean) rstd w + b over the last dimension
  /// (rmsnorm: mean = 0, no b). stats (N, 2) f32 (P): mean, rstd, saved for the adjoint. branch may
  /// be empty; then sum = residual, and the two may share memory.
  virtual void norm_forward(Tensor sum, Tensor y, Tensor stats, Tensor residual, Tensor branch,
                            Tensor weight, Tensor bias, NormKind kind, double eps) = 0;
  /// dsum (N, C) A += adjoint of the norm at dy (N, C) A; dweight, dbias (C) P +=.
  /// The adjoint of the addition is dsum itself, for the residual and for the branch.
  virtual void norm_backward(Tensor dsum, Tensor dweight, Tensor dbias, Tensor dy, Tensor sum,
                             Tensor stats, Tensor weight, NormKind kind) = 0;

  // --- linear -----------------------------------------------------------------------------------
  // y and dy may have strided rows.

  /// y (N, O) = x (N, I) w^T + b. w (O, I) A, b (O) P or empty; y A, or f32 for logits.
  virtual void linear_forward(Tensor y, Tensor x, Tensor weight, Tensor bias) = 0;
  /// dx (N, I) A = dy (N, O) w.
  virtual void linear_backward_input(Tensor dx, Tensor dy, Tensor weight) = 0;
  /// dw (O, I) P += dy^T x; db (O) P += column sums of dy (db may be empty).
  virtual void linear_backward_weight(Tensor dweight, Tensor dbias, Tensor dy, Tensor x) = 0;

  // --- mlp activation ---------------------------------------------------------------------------

  /// out (N, F) A = act(gate) * up with in (N, 2F) = [gate | up], or act(in) with in (N, F) if the
  /// kind is not gated.
  virtual void activation_forward(Tensor out, Tensor in, MlpKind kind) = 0;
  /// din has the shape of in; the two may share memory.
  virtual void activation_backward(Tensor din, Tensor dout, Tensor in, MlpKind kind) = 0;

  // --- rotation ---------------------------------------------------------------------------------

  /// Rotates x (B, T, H, D) A in place, in half-split pairs, by the angle of positions[b, t] (i32).
  /// Rows of cosine and sine (T', D/2) P hold the angles' cosine and sine. `inverse` rotates back
  /// (the adjoint).
  virtual void rotate(Tensor x, Tensor positions, Tensor cosine, Tensor sine, bool inverse) = 0;

  /// Runs an operation of a prior, a scale or a normalizer: from parameters and gates to what
  /// attention reads, or its adjoint.
  virtual void run(const MechanismOperation& operation) = 0;

  // --- attention --------------------------------------------------------------------------------

  // See ops/attention.h.

  /// out (B, T, H, D) A, and `saved`, which the adjoint reads.
  virtual void attention_forward(Tensor out, const AttentionSaved& saved, const Attention& a) = 0;
  /// The adjoint at dout; out and saved as the forward pass left them. O(T) memory.
  virtual void attention_backward(const AttentionGradients& g, Tensor dout, Tensor out,
                                  const AttentionSaved& saved, const Attention& a) = 0;

  /// entropy (B, H, T) P: -sum_j p_ij log p_ij in nats. p_i is the softmax of the logits that row i
  /// of `a` sees, whatever its normalizer; the entropy scale reads this. REQUIRES: no scale. v is
  /// not read.
  virtual void attention_entropy(Tensor entropy, const Attention& a) = 0;
  /// entropy (B, H, T) P: -sum_j p_ij log p_ij over p_ij > 0, in nats, of the weights of the
  /// forward pass of `a`, scale and normalizer included. Weights that do not sum to 1 are not
  /// renormalized. nonzero_keys (B, H, T) P: the number of keys with weight. Underflowed weights
  /// count: softmax gives weight to every visible key, stick-breaking to all but the row's own.
  /// saved: as the forward pass left it. v is not read. REQUIRES: no past;
  /// WorkspaceShape::attention_statistics.
  virtual void attention_statistics(Tensor entropy, Tensor nonzero_keys,
                                    const AttentionSaved& saved, const Attention& a) = 0;

  // --- loss -------------------------------------------------------------------------------------

  /// losses (R) P = -log softmax(logits)[target], logits (R, V) P, targets (R) i32; 0 for
  /// kIgnoreIndex. dlogits (R, V), if not empty (A, or the logits' own memory): scale * (softmax -
  /// one hot), 0 in rows without a target. Rows of both may be strided; the gaps between them are
  /// left alone or set to zero.
  virtual void cross_entropy(Tensor losses, Tensor dlogits, Tensor logits, Tensor targets,
                             double scale) = 0;

  /// places (R) i32: the index of the largest element of each row of x (R, V) P, whose rows may be
  /// strided; the first of equal ones. NaN is skipped.
  virtual void argmax(Tensor places, Tensor x) = 0;

  // --- optimizer --------------------------------------------------------------------------------

  /// factor (1) f64 = scale * min(1, clip / (scale * sqrt(squared_norm))), or scale if clip is 0.
  /// squared_norm (1) f64 is that of gradients not yet multiplied by scale. NaN if the norm is not
  /// finite or factor was already NaN: after a failed step, no step updates parameters. scale (1)
  /// f64. REQUIRES: scale > 0.
  virtual void clip_factor(Tensor factor, Tensor squared_norm, double clip, Tensor scale) = 0;
  /// Updates weights, m, v (n) P from factor * gradients (n) P. rounded (n) bf16 (or P on a host
  /// backend) = the new weights; may be empty. factor (1) f64; empty: 1; NaN: nothing is written.
  /// factors (kOptimizerFactors) f64: the step's factors, in this backend's memory. (RAdam: Liu et
  /// al. 2020 with decoupled decay, rectified where rho_t > 5; AdamW: Loshchilov and Hutter 2019.)
  virtual void optimizer_step(Tensor weights, Tensor m, Tensor v, Tensor rounded, Tensor gradients,
                              Tensor factor, Tensor factors,
                              const OptimizerHyperparameters& rule) = 0;
};

}  // namespace bamtrain
