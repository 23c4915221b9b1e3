// The CUDA backend: device memory, the plan, work that is recorded and replayed, and the operations
// of ops/ops.h. Each operation fills its launcher's arguments. Matrix products are in gemm.h,
// mechanisms in mechanisms.h.

#include <map>
#include <string>

#include "kernels/activation.h"
#include "kernels/argmax.h"
#include "kernels/attention.h"
#include "kernels/attention_content.h"
#include "kernels/attention_decode.h"
#include "kernels/attention_entropy.h"
#include "kernels/attention_reference.h"
#include "kernels/attention_statistics.h"
#include "kernels/bias.h"
#include "kernels/copy.h"
#include "kernels/embedding.h"
#include "kernels/flat.h"
#include "kernels/loss.h"
#include "kernels/norm.h"
#include "kernels/optimizer.h"
#include "kernels/rotation.h"
#include "ops/cuda/arguments.h"
#include "ops/cuda/cuda.h"
#include "ops/cuda/device_link.h"
#include "ops/cuda/gemm.h"
#include "ops/cuda/last_queries.h"
#include "ops/cuda/mechanisms.h"
#include "ops/cuda/optimizer_scalars.h"
#include "ops/cuda/runtime.h"

namespace bamtrain {

namespace {

using cuda::as_int;
using cuda::check;
using cuda::dispatch;
using cuda::f32;
using cuda::i32;
using cuda::pointer;
using cuda::rows;
using cuda::strided;

/// Device memory of one process. Failures are those of the runtime.
class DeviceMemory final : public MemorySource {
 public:
  void* allocate(int64_t bytes) override {
    check_fits(bytes);
    return cuda::allocate(bytes);
  }
  void release(void* memory, int64_t) override { cuda::release(memory); }
  void check_fits(int64_t bytes) const override {
    const int64_t free = cuda::free_memory();
    if (bytes <= free - kBeside) return;
    const bool any = free > kBeside;
    throw Error(ExitCode::device, "memory plan",
                "at most " + std::to_string(any ? (free - kBeside) >> 20 : 0) + " MiB (" +
                    std::to_string(free >> 20) + " MiB free, " + std::to_string(kBeside >> 20) +
                    " MiB reserved for CUDA libraries)",
                std::to_string(bytes >> 20) + " MiB",
                any ? kPlanRemedy : "end the programs that have the device's memory");
  }
  bool on_host() const override { return false; }

 private:
  /// For code that cuBLASLt loads, and recorded work: allocated after the plan.
  static constexpr int64_t kBeside = int64_t{512} << 20;
};

/// Memory without a device.
class PlannedMemory final : public MemorySource {
 public:
  void* allocate(int64_t bytes) override {
    throw Error::fault(ExitCode::device, "CUDA",
                       "no GPU to allocate " + std::to_string(bytes >> 20) + " MiB on",
                       "plan only, with --dry-run");
  }
  void release(void*, int64_t) override {}
  void check_fits(int64_t) const override {}
  bool on_host() const override { return false; }
};

/// Repeated work. The first call runs it directly, since libraries may still load code and choose
/// algorithms; the second records it; later calls replay it.
struct Repeated {
  int64_t calls = 0;
  cuda::CapturedGraph recording;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(int index, bool tf32)
      : name_("cuda (" + cuda::open_device(index) + (tf32 ? ", TF32)" : ")")),
        memory_(std::make_unique<DeviceMemory>()),
        products_(tf32) {}
  explicit CudaBackend(cuda::NoDevice none)
      : name_("cuda (no GPU here)"),
        memory_(std::make_unique<PlannedMemory>()),
        stream_(none),
        products_(none) {}

  const char* name() const override { return name_.c_str(); }
  Dtype parameter_dtype() const override { return Dtype::f32; }

  void plan(Arena& arena, const WorkspaceShape& w) override;

  // --- memory

  MemorySource& memory() override { return *memory_; }

  void upload(Tensor dst, const void* src) override {
    require(dst.contiguous(), "a contiguous tensor to upload to");
    stream_.upload(dst.data, src, dst.bytes());
  }
  void download(void* dst, Tensor src) override {
    require(src.contiguous(), "a contiguous tensor to download from");
    cuda::download(dst, src.data, src.bytes(), stream());
  }

  void synchronize() override { cuda::synchronize(stream()); }
  void run_captured(int64_t key, const std::function<void()>& work) override {
    Repeated& r = repeated_[key];
    ++r.calls;
    if (r.calls == 1) return work();
    if (r.calls == 2) {
      r.recording.begin(stream());
      try {
        work();
      } catch (...) {
        r.recording.give_up(stream());
        r.calls = 1;
        throw;
      }
      r.recording.end(stream());
    }
    r.recording.replay(stream());
  }

  std::unique_ptr<PeerLink> connect(const Peers& peers) override {
    return std::make_unique<cuda::DeviceLink>(peers, stream());
  }

  void zero(Tensor x) override {
    require(x.contiguous(), "a contiguous tensor to fill");
    cuda::fill_zero(x.data, x.bytes(), stream());
  }
  void add(Tensor dst, Tensor src) override {
    if (dst.dtype == Dtype::f64) {
      check(kernels::add(dst.ptr<double>(), src.ptr<double>(), dst.size(), stream()), "add");
    } else {
      dispatch(dst.dtype, [&]<class A>() {
        check(kernels::add<A>(pointer<A>(dst), pointer<A>(src), dst.size(), stream()), "add");
      });
    }
  }
  void convert(Tensor dst, Tensor src) override {
    dispatch(dst.dtype, [&]<class A>() {
      check(kernels::convert<A>(pointer<A>(dst), f32(src), dst.size(), stream()), "convert");
    });
  }
  void copy(Tensor dst, Tensor src) override {
    require(dst.dtype == src.dtype && dst.rank == src.rank && dst.shape == src.shape,
            "tensors of one type and shape");
    check(kernels::copy_rows(strided(dst), strided(src), stream()), "copy");
  }
  void sum(Tensor total, Tensor x) override {
    if (x.dtype == Dtype::f64) {
      check(kernels::sum(total.ptr<double>(), x.ptr<double>(), x.size(), stream()), "sum");
    } else {
      check(kernels::sum(total.ptr<double>(), f32(x), x.size(), stream()), "sum");
    }
  }
  void squares(Tensor squares, Tensor x) override {
    static_assert(kSquaresBlock == kernels::kSquaresTile);
    require(squares.size() == squares_blocks(x.size()), "a number for each block");
    check(kernels::squares(squares.ptr<double>(), f32(x), x.size(), stream()), "squares");
  }

  // --- embedding

  void embedding_forward(Tensor out, Tensor tokens, Tensor table, double scale, Tensor positions,
                         Tensor position_table) override {
    dispatch(out.dtype, [&]<class A>() {
      kernels::EmbeddingForward<A> e;
      e.out = pointer<A>(out);
      e.table = pointer<A>(table);
      e.scale = static_cast<float>(scale);
      e.tokens = i32(tokens);
      e.positions = i32(positions);
      e.position_table = f32(position_table);
      e.N = out.shape[0];
      e.C = as_int(out.shape[1]);
      check(kernels::embedding_forward(e, stream()), "embedding_forward");
    });
  }
  void embedding_backward(Tensor dtable, double scale, Tensor dposition_table, Tensor dout,
                          Tensor tokens, Tensor positions) override {
    dispatch(dout.dtype, [&]<class A>() {
      kernels::EmbeddingBackward<A> e;
      e.dtable = f32(dtable);
      e.scale = static_cast<float>(scale);
      e.dposition_table = f32(dposition_table);
      e.dout = pointer<A>(dout);
      e.tokens = i32(tokens);
      e.positions = i32(positions);
      e.N = dout.shape[0];
      e.C = as_int(dout.shape[1]);
      e.V = as_int(dtable.shape[0]);
      e.T = dposition_table ? as_int(dposition_table.shape[0]) : 0;
      e.scratch = scratch(kernels::embedding_backward_scratch(e.N, e.C) / 4);
      check(kernels::embedding_backward(e, stream()), "embedding_backward");
    });
  }

  // --- norm

  void norm_forward(Tensor sum, Tensor y, Tensor stats, Tensor residual, Tensor branch,
                    Tensor weight, Tensor bias, NormKind kind, double eps) override {
    dispatch(sum.dtype, [&]<class A>() {
      kernels::NormForward<A> f;
      f.sum = pointer<A>(sum);
      f.y = pointer<A>(y);
      f.stats = f32(stats);
      f.residual = pointer<A>(residual);
      f.branch = pointer<A>(branch);
      f.weight = f32(weight);
      f.bias = f32(bias);
      f.N = sum.shape[0];
      f.C = as_int(sum.shape[1]);
      f.kind = kind;
      f.eps = static_cast<float>(eps);
      check(kernels::norm_forward(f, stream()), "norm_forward");
    });
  }
  void norm_backward(Tensor dsum, Tensor dweight, Tensor dbias, Tensor dy, Tensor sum, Tensor stats,
                     Tensor weight, NormKind kind) override {
    const int64_t N = sum.shape[0];
    const int C = as_int(sum.shape[1]);
    dispatch(sum.dtype, [&]<class A>() {
      kernels::NormBackward<A> g;
      g.dsum = pointer<A>(dsum);
      g.dweight = f32(dweight);
      g.dbias = f32(dbias);
      g.dy = pointer<A>(dy);
      g.sum = pointer<A>(sum);
      g.stats = f32(stats);
      g.weight = f32(weight);
      g.N = N;
      g.C = C;
      g.kind = kind;
      g.partial = scratch(kernels::norm_backward_partial(N, C));
      check(kernels::norm_backward(g, stream()), "norm_backward");
    });
  }

  // --- linear

  void linear_forward(Tensor y, Tensor x, Tensor weight, Tensor bias) override {
    multiply(matrix(y), matrix(x), matrix_transposed(weight), false);
    if (!bias) return;
    dispatch(y.dtype, [&]<class A>() {
      kernels::AddBias<A> a{pointer<A>(y), f32(bias), y.shape[0], y.shape[1], y.stride[0]};
      check(kernels::add_bias(a, stream()), "linear_forward");
    });
  }
  void linear_backward_input(Tensor dx, Tensor dy, Tensor weight) override {
    multiply(matrix(dx), matrix(dy), matrix(weight), false);
  }
  void linear_backward_weight(Tensor dweight, Tensor dbias, Tensor dy, Tensor x) override {
    multiply(matrix(dweight), matrix_transposed(dy), matrix(x), true);
    if (!dbias) return;
    const int64_t N = dy.shape[0], O = dy.shape[1];
    dispatch(dy.dtype, [&]<class A>() {
      kernels::ColumnSums<A> s{
          f32(dbias),  pointer<A>(dy), N, O, scratch(kernels::column_sums_partial(N, O)),
          dy.stride[0]};
      check(kernels::column_sums(s, stream()), "linear_backward_weight");
    });
  }

  // --- mlp activation

  void activation_forward(Tensor out, Tensor in, MlpKind kind) override {
    dispatch(out.dtype, [&]<class A>() {
      kernels::ActivationForward<A> a{pointer<A>(out), pointer<A>(in), out.shape[0], out.shape[1],
                                      kind};
      check(kernels::activation_forward(a, stream()), "activation_forward");
    });
  }
  void activation_backward(Tensor din, Tensor dout, Tensor in, MlpKind kind) override {
    dispatch(dout.dtype, [&]<class A>() {
      kernels::ActivationBackward<A> a{pointer<A>(din), pointer<A>(dout), pointer<A>(in),
                                       dout.shape[0],   dout.shape[1],    kind};
      check(kernels::activation_backward(a, stream()), "activation_backward");
    });
  }

  // --- rotation

  void rotate(Tensor x, Tensor positions, Tensor cosine, Tensor sine, bool inverse) override {
    dispatch(x.dtype, [&]<class A>() {
      const kernels::Rows<A> all = rows<A>(x);
      kernels::Rotation<A> r;
      r.x = all.data;
      r.batch = all.batch;
      r.row = all.row;
      r.head = all.head;
      r.B = as_int(x.shape[0]);
      r.T = as_int(x.shape[1]);
      r.heads = as_int(x.shape[2]);
      r.D = as_int(x.shape[3]);
      r.positions = i32(positions);
      r.cosine = f32(cosine);
      r.sine = f32(sine);
      r.inverse = inverse;
      check(kernels::rotate(r, stream()), "rotate");
    });
  }

  void run(const MechanismOperation& operation) override {
    const cuda::CudaWork work = {stream(), mechanism_scratch_};
    std::visit([&work](const auto& of) { of.on_cuda(work); }, operation);
  }

  // --- attention

  bool rounds_mix(const Attention& a) const override {
    return a.q.dtype == Dtype::bf16 && a.causal() && a.q.shape[2] <= kernels::kMostTiledHeads;
  }
  void attention_forward(Tensor out, const AttentionSaved& saved, const Attention& a) override {
    dispatch(out.dtype, [&]<class A>() {
      kernels::AttentionForward<A> f{inputs_of<A>(a), rows<A>(out), rows_of(saved)};
      if (a.past() > 0) {
        f.out = cuda::LastQueries::from_first(f.out, a);
        f.saved = last_queries_.saved(a);
      }
      // Plain loops do not report zero blocks.
      if (saved.live && kernels::attention_is_plain(f.in)) {
        cuda::fill_ones(saved.live.data, saved.live.bytes(), stream());
      }
      bool decodes = false;
      if constexpr (std::is_same_v<A, device::bf16>) {
        decodes = kernels::decodes(f.in);
        if (decodes) {
          check(kernels::attention_decode(f, scratch_to_decode(f.in), stream()),
                "attention_forward");
        }
      }
      if (!decodes) check(kernels::attention_forward(f, stream(), general_), "attention_forward");
      if (a.past() > 0 && saved.level) last_queries_.collect(saved.level, a, stream());
    });
  }
  void attention_backward(const AttentionGradients& g, Tensor dout, Tensor out,
                          const AttentionSaved& saved, const Attention& a) override {
    require(a.past() == 0, "a backward pass over all rows");
    dispatch(out.dtype, [&]<class A>() {
      kernels::AttentionBackward<A> k;
      k.in = inputs_of<A>(a);
      k.out = rows<const A>(out);
      k.dout = rows<const A>(dout);
      k.saved = rows_of(saved);
      k.dq = rows<A>(g.dq);
      k.dk = rows<A>(g.dk);
      k.dv = rows<A>(g.dv);
      k.dscale = f32(g.dscale);
      k.dalpha = f32(g.dalpha);
      k.causal = a.causal();
      const int64_t products = kernels::attention_row_products(k.in.B, k.in.T, k.in.H);
      AttentionShape shape = {k.in.B, k.in.T, k.in.H, k.in.K};
      shape.causal = k.in.causal;
      const int64_t partial = std::visit(
          [&]<class Gradients>(const Gradients& of_bias) {
            of_bias.on_cuda(k);
            return cuda::partial_of<Gradients>(shape);
          },
          g.bias);
      g.mix.on_cuda(k);
      const bool sticks = a.form.normalizer.kind == NormalizerKind::stick_breaking;
      const int64_t carries =
          sticks ? kernels::attention_carries(k.in.B, k.in.T, k.in.H, k.in.K) : 0;
      k.row_product = scratch(products + partial + carries);
      k.partial = k.row_product + products;
      k.carries = k.partial + partial;
      check(kernels::attention_backward(k, stream(), general_), "attention_backward");
    });
  }

  void attention_entropy(Tensor entropy, const Attention& a) override {
    const bool last = a.past() > 0;
    float* const to = last ? last_queries_.entropy(a) : f32(entropy);
    dispatch(a.q.dtype, [&]<class A>() {
      check(kernels::attention_entropy(to, inputs_of<A>(a), stream()), "attention_entropy");
    });
    if (last) last_queries_.collect(entropy, a, stream());
  }
  void attention_statistics(Tensor entropy, Tensor nonzero_keys, const AttentionSaved& saved,
                            const Attention& a) override {
    require(a.past() == 0, "all rows");
    dispatch(a.q.dtype, [&]<class A>() {
      check(kernels::attention_statistics(f32(entropy), f32(nonzero_keys), rows_of(saved),
                                          inputs_of<A>(a), stream()),
            "attention_statistics");
    });
  }

  // --- loss

  void cross_entropy(Tensor losses, Tensor dlogits, Tensor logits, Tensor targets,
                     double scale) override {
    dispatch(dlogits ? dlogits.dtype : Dtype::f32, [&]<class A>() {
      kernels::CrossEntropy<A> c;
      c.R = logits.shape[0];
      c.V = logits.shape[1];
      c.losses = f32(losses);
      c.dlogits = pointer<A>(dlogits);
      c.dlogits_row = dlogits ? dlogits.stride[0] : 0;
      c.logits = f32(logits);
      c.logits_row = logits.stride[0];
      c.targets = i32(targets);
      c.scale = scale;
      check(kernels::cross_entropy(c, stream()), "cross_entropy");
    });
  }

  void argmax(Tensor places, Tensor x) override {
    check(kernels::argmax(places.ptr<int32_t>(), f32(x), x.shape[0], x.shape[1], x.stride[0],
                          stream()),
          "argmax");
  }

  // --- optimizer

  void clip_factor(Tensor factor, Tensor squared_norm, double clip, Tensor scale) override {
    check(kernels::clip_factor(factor.ptr<double>(), squared_norm.ptr<double>(), clip,
                               scale.ptr<double>(), stream()),
          "clip_factor");
  }
  void optimizer_step(Tensor weights, Tensor m, Tensor v, Tensor rounded, Tensor gradients,
                      Tensor factor, Tensor factors, const OptimizerHyperparameters& s) override {
    check(kernels::optimizer_step(f32(weights), f32(m), f32(v), pointer<device::bf16>(rounded),
                                  f32(gradients), factor ? factor.ptr<double>() : nullptr,
                                  weights.size(), factors.ptr<double>(), cuda::optimizer_scalars(s),
                                  stream()),
          "optimizer_step");
  }

 private:
  device::Stream stream() const { return stream_.get(); }

  /// Memory for one operation at a time: at least `floats`.
  float* scratch(int64_t floats) const {
    require(floats <= scratch_.size(), "scratch for shapes no larger than was planned");
    return scratch_.ptr<float>();
  }

  float* scratch_to_decode(const kernels::AttentionInputs<device::bf16>& in) const {
    return scratch(kernels::attention_decode_floats(in.B, in.T, in.H, in.D, general_));
  }

  void multiply(const Matrix& c, const Matrix& a, const Matrix& b, bool accumulate) {
    products_.multiply(c, a, b, accumulate, stream());
  }

  static kernels::SavedRows rows_of(const AttentionSaved& s) {
    return {f32(s.level), f32(s.threshold), pointer<int32_t>(s.last), pointer<int32_t>(s.live)};
  }

  template <class A>
  kernels::AttentionInputs<A> inputs_of(const Attention& a) const {
    kernels::AttentionInputs<A> in;
    in.B = as_int(a.q.shape[0]);
    in.T = as_int(a.q.shape[1]);
    in.H = as_int(a.q.shape[2]);
    in.K = as_int(a.k.shape[2]);
    in.D = as_int(a.q.shape[3]);
    in.content_divisor = a.content_divisor<float>();
    in.q = rows<const A>(a.q);
    in.k = rows<const A>(a.k);
    in.v = rows<const A>(a.v);
    in.scale = f32(a.scale);
    in.scale_bias = a.form.scale_bias;
    in.causal = a.causal();
    std::visit([&in](const auto& bias) { bias.on_cuda(in); }, a.bias);
    if (a.mix) a.mix.on_cuda(in, *a.form.mix);
    in.first_key = i32(a.first_key);
    in.last_key = i32(a.last_key);
    const NormalizerForm& form = a.form.normalizer;
    in.normalizer = {form.kind, static_cast<float>(form.alpha), f32(a.alphas), form.keys};
    in.content = {f32(content_logits_), content_logits_.size(), f32(content_sums_),
                  content_sums_.size()};
    if (a.past() > 0) last_queries_.attach(in, a, stream());
    return in;
  }

  std::string name_;
  std::unique_ptr<MemorySource> memory_;
  cuda::WorkStream stream_;
  cuda::Gemm products_;
  std::map<int64_t, Repeated> repeated_;
  cuda::LastQueries last_queries_;
  bool general_ = false;      // AttentionForm::general, of any layer
  Tensor scratch_;            // f32, for one operation
  Tensor mechanism_scratch_;  // f64
  // f32: kernels::ContentScratch, if a layer's bias reads queries and keys, or heads are mixed.
  Tensor content_logits_, content_sums_;
};

/// Checks what the launchers would refuse in the first step.
void check_shape(const WorkspaceShape& w) {
  using cuda::require_on_cuda;
  require_on_cuda(w.mix_hidden() == 0 || w.H <= kernels::kMostMixedHeads, "model.heads",
                  "at most 160 with \"dape\"", w.H);
  const int64_t keys = w.past + w.T;
  require_on_cuda(keys <= kernels::kLongest, "the length of a sequence", "at most 2^30 tokens",
                  keys);
  require_on_cuda(w.mix_hidden() == 0 || w.H * keys <= kernels::kMostMixedRows,
                  "the length of a sequence", "at most 33,544,192 heads times tokens with \"dape\"",
                  w.H * keys);
  require_on_cuda(w.C % 8 == 0 && w.C <= kernels::kNormMaxC, "model.width",
                  "a multiple of 8, at most 8,192,", w.C);
  require_on_cuda(w.F % 8 == 0 && w.hidden % 8 == 0, "model.mlp.hidden", "a multiple of 8", w.F);
  require_on_cuda(w.H * w.D % 8 == 0, "model.head_dim",
                  "a width of queries, heads * head_dim, that is a multiple of 8", w.H * w.D);
  require_on_cuda((w.H + 2 * w.K) * w.D % 8 == 0, "model.heads",
                  "a width of queries, keys and values that is a multiple of 8",
                  (w.H + 2 * w.K) * w.D);
  require_on_cuda(w.V <= kernels::kEmbeddingMaxRows, "model.vocab",
                  "at most 262,144 tokens, and positions of a learned table,", w.V);
  // Attention's grids index sequences and heads in dimensions with this limit.
  constexpr int64_t kMaxBlocks = 65535;
  require_on_cuda(w.B <= kMaxBlocks, "train.micro_batch", "at most 65,535 sequences", w.B);
  require_on_cuda(w.H <= kMaxBlocks, "model.heads", "at most 65,535", w.H);
  require_on_cuda(!w.backward || w.B * w.T <= kernels::kEmbeddingMaxN, "train.micro_batch",
                  "at most 2^24 tokens at a time", w.B * w.T);
  if (w.activations == Dtype::bf16) {
    require_on_cuda(kernels::has_head_dim(as_int(w.D)), "model.heads",
                    "a head dimension (model.head_dim, or width / heads) of 16, 32, 48, 64, 80, 96 "
                    "or 128 in bf16",
                    w.D);
  } else {
    require_on_cuda(w.D <= kernels::kReferenceLongestRow, "model.heads",
                    "a head dimension (model.head_dim, or width / heads) of at most 256", w.D);
  }
}

void CudaBackend::plan(Arena& arena, const WorkspaceShape& w) {
  check_shape(w);
  cuda::check_biases(w);
  const int64_t N = w.B * w.T, W = (w.H + 2 * w.K) * w.D + w.gates;
  const int B = as_int(w.B), T = as_int(w.T), H = as_int(w.H), K = as_int(w.K), C = as_int(w.C);
  repeated_.clear();
  general_ = w.any(&AttentionForm::general);
  int64_t floats = 0;
  if (w.backward) {
    AttentionShape shape = {w.B, w.T, w.H, w.K};
    shape.causal = !w.bidirectional;
    const int64_t attention =
        kernels::attention_row_products(B, T, H) + cuda::most_partial(shape) +
        (w.any(&AttentionForm::sticks) ? kernels::attention_carries(B, T, H, K) : 0);
    floats = std::max({kernels::norm_backward_partial(N, C), attention,
                       kernels::embedding_backward_scratch(N, C) / 4,
                       kernels::column_sums_partial(N, C), kernels::column_sums_partial(N, W),
                       kernels::column_sums_partial(N, std::max<int64_t>(8, w.head_bias)),
                       kernels::column_sums_partial(N, std::max<int64_t>(8, w.hidden))});
  }
  if (w.incremental && w.activations == Dtype::bf16) {
    const int64_t decoding = kernels::attention_decode_floats(
        B, as_int(w.past + w.T), H, as_int(w.D), w.any(&AttentionForm::general));
    floats = std::max(floats, decoding);
  }
  if (w.any(&AttentionForm::content) || w.mix_hidden() > 0) {
    const int columns = as_int(w.content_columns()), hidden = as_int(w.mix_hidden());
    const int keys = as_int(w.past + w.T);
    const int64_t logits = kernels::content_logits(B, keys, H) *
                           kernels::content_arrays(columns > 0 || hidden > 0, w.backward);
    arena.add("scratch.attention_logits", &content_logits_, Dtype::f32, {logits});
    arena.add("scratch.attention_content", &content_sums_, Dtype::f32,
              {kernels::content_sums(B, keys, H, K, as_int(w.D), columns, hidden, w.backward)});
  }
  if (w.backward) {
    arena.add("scratch.scale", &mechanism_scratch_, Dtype::f64, {cuda::most_scratch(w)});
  }
  last_queries_.plan(arena, w);
  arena.add("scratch.operation", &scratch_, Dtype::f32, {std::max<int64_t>(1, floats)});
}

}  // namespace

int cuda_devices() { return cuda::device_count(); }

std::unique_ptr<Backend> make_cuda_backend(int index, bool tf32) {
  return std::make_unique<CudaBackend>(index, tf32);
}

std::unique_ptr<Backend> make_cuda_plan() {
  return std::make_unique<CudaBackend>(cuda::NoDevice{});
}

}  // namespace bamtrain
