#include "ops/cpu/matmul.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <dnnl.hpp>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "core/parallel.h"
#include "ops/cpu/cpu.h"

namespace bamtrain {

namespace {

constexpr const char* kMemoryRemedy =
    "lower train.micro_batch or OMP_NUM_THREADS, or allow the program more memory";

const dnnl::engine& engine() {
  static const dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}

dnnl::stream& stream() {
  thread_local dnnl::stream s(engine());
  return s;
}

dnnl::memory::data_type dnnl_type(Dtype t) {
  require(t == Dtype::f32 || t == Dtype::bf16, "f32 or bf16 operands of a matrix product");
  return t == Dtype::f32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

/// Every property of a product that oneDNN compiles for.
struct Shape {
  int64_t M, N, K;
  Dtype in, out;
  bool a_transposed, b_transposed;
  int64_t lda, ldb, ldc;
  bool bias, accumulate;
  auto operator<=>(const Shape&) const = default;
};

struct Primitive {
  dnnl::memory::desc a, b, c, bias, scratch;
  bool has_bias = false;
  dnnl::matmul kernel;
};

Primitive compile(const Shape& s) {
  using dnnl::memory;
  // oneDNN 3 ignores the stride between elements of a matrix's only column.
  require(
      (s.N > 1 || s.M == 1 || s.ldc == 1) && (s.M > 1 || s.K == 1 || !s.a_transposed || s.lda == 1),
      "single columns of a matrix product without gaps");
  const auto strides = [](bool transposed, int64_t ld) {
    return transposed ? memory::dims{1, ld} : memory::dims{ld, 1};
  };
  Primitive p;
  p.a = memory::desc({s.M, s.K}, dnnl_type(s.in), strides(s.a_transposed, s.lda));
  p.b = memory::desc({s.K, s.N}, dnnl_type(s.in), strides(s.b_transposed, s.ldb));
  p.c = memory::desc({s.M, s.N}, dnnl_type(s.out), memory::dims{s.ldc, 1});
  p.bias = memory::desc({1, s.N}, memory::data_type::f32, memory::dims{s.N, 1});
  dnnl::primitive_attr attributes;
  // oneDNN's own scratchpad belongs to the thread that compiled the primitive; executing it on
  // another thread gives wrong results. Ours belongs to the caller, one per thread.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  // Overrides ONEDNN_DEFAULT_FPMATH_MODE: fp32 products stay fp32.
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  if (s.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
#if DNNL_VERSION_MAJOR >= 3
  const auto descriptor =
      s.bias ? dnnl::matmul::primitive_desc(engine(), p.a, p.b, p.bias, p.c, attributes)
             : dnnl::matmul::primitive_desc(engine(), p.a, p.b, p.c, attributes);
#else
  const auto operation =
      s.bias ? dnnl::matmul::desc(p.a, p.b, p.bias, p.c) : dnnl::matmul::desc(p.a, p.b, p.c);
  const dnnl::matmul::primitive_desc descriptor(operation, attributes, engine());
#endif
  p.scratch = descriptor.scratchpad_desc();
  p.has_bias = s.bias;
  p.kernel = dnnl::matmul(descriptor);
  return p;
}

/// oneDNN asks for the number of threads when it compiles and when it executes; a tile is
/// single-threaded in both. Being inside a parallel region does not tell it so: if OpenMP gave the
/// region only one thread (OMP_THREAD_LIMIT, OMP_DYNAMIC), omp_in_parallel() is false.
class OneThread {
 public:
  OneThread() : threads_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(threads_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int threads_;
};

Shape shape_of(const Matrix& c, const Matrix& a, const Matrix& b, bool bias, bool accumulate) {
  require(a.columns == b.rows && c.rows == a.rows && c.columns == b.columns && !c.transposed,
          "matching shapes of a matrix product");
  require(a.dtype == b.dtype, "operands of one dtype in a matrix product");
  return {c.rows,       c.columns, a.columns, a.dtype, c.dtype, a.transposed,
          b.transposed, a.ld,      b.ld,      c.ld,    bias,    accumulate};
}

/// A cache line, so that vectors of lines have oneDNN's preferred alignment.
struct alignas(64) Line {
  char bytes[64];
};
using Scratch = std::vector<Line>;

size_t scratch_lines(const Primitive& p) {
  return (p.scratch.get_size() + sizeof(Line) - 1) / sizeof(Line);
}

/// The operands of a compiled product, for one thread. They are created once, without data; an
/// execution only sets their data pointers.
class Call {
 public:
  explicit Call(const Primitive& p)
      : kernel_(p.kernel),
        a_(p.a, engine(), DNNL_MEMORY_NONE),
        b_(p.b, engine(), DNNL_MEMORY_NONE),
        c_(p.c, engine(), DNNL_MEMORY_NONE),
        scratch_lines_(scratch_lines(p)) {
    arguments_ = {{DNNL_ARG_SRC, a_.get()}, {DNNL_ARG_WEIGHTS, b_.get()}, {DNNL_ARG_DST, c_.get()}};
    if (scratch_lines_ > 0) {
      scratch_ = dnnl::memory(p.scratch, engine(), DNNL_MEMORY_NONE);
      arguments_.push_back({DNNL_ARG_SCRATCHPAD, scratch_.get()});
    }
    if (p.has_bias) {
      bias_ = dnnl::memory(p.bias, engine(), DNNL_MEMORY_NONE);
      arguments_.push_back({DNNL_ARG_BIAS, bias_.get()});
    }
  }

  /// `scratch` grows to the size that the product needs. REQUIRES: no other thread uses it.
  void execute(void* c, void* a, void* b, const float* bias, Scratch& scratch) {
    if (scratch.size() < scratch_lines_) scratch.resize(scratch_lines_);
    a_.set_data_handle(a);
    b_.set_data_handle(b);
    c_.set_data_handle(c);
    if (bias_) bias_.set_data_handle(const_cast<float*>(bias));
    if (scratch_) scratch_.set_data_handle(scratch.data());
    // The C interface: the C++ interface takes a map and converts it to this list on every call.
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(kernel_.get(), stream().get(), static_cast<int>(arguments_.size()),
                               arguments_.data()),
        "execution of a matrix product");
    stream().wait();
  }

 private:
  dnnl::matmul kernel_;
  dnnl::memory a_, b_, c_, bias_, scratch_;  // the last two only if used
  size_t scratch_lines_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

Error refused(const Shape& s, const dnnl::error& e) {
  const std::string found = std::string("oneDNN: ") + e.what();
  if (e.status == dnnl_unimplemented) {
    return Error(ExitCode::device, "matmul",
                 std::string("a processor that oneDNN supports for ") + name_of(s.in) +
                     (s.in == Dtype::bf16 ? " (AVX-512)" : ""),
                 found,
                 s.in == Dtype::bf16
                     ? "compute in fp32 (train.precision; --precision of an evaluation)"
                     : "");
  }
  return Error::fault(ExitCode::device,
                      "matmul of " + std::to_string(s.M) + " x " + std::to_string(s.K) + " by " +
                          std::to_string(s.K) + " x " + std::to_string(s.N),
                      found, e.status == dnnl_out_of_memory ? kMemoryRemedy : "");
}

/// Calls f(); what oneDNN or the system refuses becomes an Error (ExitCode::device).
template <class F>
void run_or_explain(const Shape& s, F&& f) try {
  f();
} catch (const dnnl::error& e) {
  throw refused(s, e);
} catch (const std::bad_alloc&) {
  throw Error::fault(ExitCode::device, "matmul", "oneDNN could not allocate memory", kMemoryRemedy);
}

/// Tile sizes by shape alone: large enough for oneDNN to be near its peak, small enough to give
/// several threads work. No tile is a single row or column of a wider matrix (see compile).
std::pair<int64_t, int64_t> tile_sizes(int64_t M, int64_t N) {
  constexpr int64_t kRows = 256, kColumns = 384, kSmallest = 64, kTiles = 8;
  int64_t m = std::min(M, kRows), n = std::min(N, kColumns);
  while (ceil_div(M, m) * ceil_div(N, n) < kTiles && std::max(m, n) > kSmallest) {
    int64_t& larger = m >= n ? m : n;
    larger = std::max(kSmallest, ceil_div(larger, 2));
  }
  const auto without_rest_of_one = [](int64_t total, int64_t tile) {
    while (tile < total && total % tile == 1) tile = std::min(total, tile + 16);
    return tile;
  };
  return {without_rest_of_one(M, m), without_rest_of_one(N, n)};
}

void* element(const Matrix& x, int64_t row, int64_t column) {
  const int64_t offset = x.transposed ? column * x.ld + row : row * x.ld + column;
  return static_cast<char*>(x.data) + offset * static_cast<int64_t>(size_of(x.dtype));
}

/// Whether an operand's rows evict each other in the L1 cache. oneDNN reads rows side by side if
/// each belongs to one element of the inner dimension. If they begin in at most a quarter of the
/// cache's 64 sets, products run at half the rate. Rows along the inner dimension do not collide.
bool rows_collide(const Matrix& x, bool rows_are_inner) {
  constexpr int64_t kQuarter = 16 * 64 / sizeof(float);
  return rows_are_inner && x.dtype == Dtype::f32 && x.ld % kQuarter == 0;
}

/// A thread's copy of a tile's rows, spaced so that they begin in all cache sets.
class Panel {
 public:
  static int64_t ld(int64_t columns) {
    constexpr int64_t kLine = sizeof(Line) / sizeof(float);
    return (ceil_div(columns, kLine) | 1) * kLine;
  }

  /// Copies `rows` of `columns` elements each, `from_ld` apart, to a spacing of Panel::ld(spacing).
  /// If the last call had the same rows and `round`, returns its copy.
  float* hold(uint64_t round, const float* from, int64_t rows, int64_t columns, int64_t from_ld,
              int64_t spacing) {
    auto* to = reinterpret_cast<float*>(lines_.data());
    if (from == from_ && round == round_) return to;
    const int64_t to_ld = ld(spacing);
    const size_t lines = static_cast<size_t>(rows * to_ld) * sizeof(float) / sizeof(Line);
    if (lines_.size() < lines) lines_.resize(lines);
    to = reinterpret_cast<float*>(lines_.data());
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(to + r * to_ld, from + r * from_ld, static_cast<size_t>(columns) * sizeof(float));
    }
    from_ = from;
    round_ = round;
    return to;
  }

 private:
  std::vector<Line> lines_;
  const float* from_ = nullptr;
  uint64_t round_ = 0;
};

/// Columns [begin, begin + count) of A, or rows of B.
Matrix inner_columns(Matrix a, int64_t begin, int64_t count) {
  a.data = element(a, 0, begin);
  a.columns = count;
  return a;
}
Matrix inner_rows(Matrix b, int64_t begin, int64_t count) {
  b.data = element(b, begin, 0);
  b.rows = count;
  return b;
}

}  // namespace

struct Matmul::Cache {
  struct Product {
    Primitive primitive;
    std::vector<std::unique_ptr<Call>> calls;  // one per thread, created at first use
  };
  struct Thread {
    Scratch scratch;
    Panel a, b;
  };
  std::map<Shape, Product> products;
  std::vector<Thread> threads;
  uint64_t round = 0;  // number of the run_slice call; another call's operands may have changed

  /// REQUIRES: outside parallel regions.
  Product& get(const Shape& s) {
    auto it = products.find(s);
    if (it == products.end()) {
      const OneThread one;
      it = products.emplace(s, Product{compile(s), {}}).first;
    }
    const auto count = static_cast<size_t>(max_threads());
    if (it->second.calls.size() < count) it->second.calls.resize(count);
    if (threads.size() < count) threads.resize(count);
    return it->second;
  }

  Call& call(Product& p, size_t thread) {
    if (!p.calls[thread]) p.calls[thread] = std::make_unique<Call>(p.primitive);
    return *p.calls[thread];
  }

  void run_slice(const Shape& whole, const Matrix& c, const Matrix& a, const Matrix& b,
                 const float* bias, bool copy_a, bool copy_b);
};

Matmul::Matmul() : cache_(std::make_unique<Cache>()) {}
Matmul::~Matmul() = default;

void Matmul::run(const Matrix& c, const Matrix& a, const Matrix& b, const float* bias,
                 bool accumulate) {
  const Shape whole = shape_of(c, a, b, bias != nullptr, accumulate);
  if (whole.M == 0 || whole.N == 0) return;
  // With fewer than these to share a copied element, the copy is not worth its cost.
  constexpr int64_t kSharing = 64;
  const bool sums_in_fp32 = c.dtype == Dtype::f32 && !bias;
  const bool copy_a = sums_in_fp32 && whole.N >= kSharing && rows_collide(a, a.transposed);
  const bool copy_b = sums_in_fp32 && whole.M >= kSharing && rows_collide(b, !b.transposed);
  run_or_explain(whole, [&] {
    if (!copy_a && !copy_b) return cache_->run_slice(whole, c, a, b, bias, false, false);
    // Copies of a few hundred kilobytes are read again from the L2 cache.
    constexpr int64_t kDepth = 512, kUnit = 16;
    const int64_t depth = ceil_div(ceil_div(whole.K, ceil_div(whole.K, kDepth)), kUnit) * kUnit;
    for (int64_t k = 0; k < whole.K; k += depth) {
      Shape slice = whole;
      slice.K = std::min(depth, whole.K - k);
      slice.accumulate = accumulate || k > 0;
      cache_->run_slice(slice, c, inner_columns(a, k, slice.K), inner_rows(b, k, slice.K), nullptr,
                        copy_a, copy_b);
    }
  });
}

/// The product by tiles. Rows of A and B that collide are copied first, tile by tile.
void Matmul::Cache::run_slice(const Shape& whole, const Matrix& c, const Matrix& a, const Matrix& b,
                              const float* bias, bool copy_a, bool copy_b) {
  const auto [m, n] = tile_sizes(whole.M, whole.N);
  const int64_t rows = ceil_div(whole.M, m), columns = ceil_div(whole.N, n);
  const auto rows_of = [&, m = m](int64_t i) { return std::min(m, whole.M - i * m); };
  const auto columns_of = [&, n = n](int64_t j) { return std::min(n, whole.N - j * n); };
  // Compiled before the parallel region: [last row of tiles][last column of tiles].
  Product* compiled[2][2];
  for (int last_row = 0; last_row < 2; ++last_row) {
    for (int last_column = 0; last_column < 2; ++last_column) {
      Shape tile = whole;
      tile.M = rows_of(last_row ? rows - 1 : 0);
      tile.N = columns_of(last_column ? columns - 1 : 0);
      if (copy_a) tile.lda = Panel::ld(m);
      if (copy_b) tile.ldb = Panel::ld(n);
      compiled[last_row][last_column] = &get(tile);
    }
  }
  ++round;
  parallel_for(rows * columns, [&, m = m, n = n](int64_t tile) {
    // Neighbouring tiles share their columns of B, the operand that a product of a tall A reads
    // repeatedly.
    const int64_t i = tile % rows, j = tile / rows;
    const auto index = static_cast<size_t>(thread_index());
    Thread& thread = threads[index];
    void* left = element(a, i * m, 0);
    void* right = element(b, 0, j * n);
    if (copy_a) {
      left = thread.a.hold(round, static_cast<float*>(left), whole.K, rows_of(i), a.ld, m);
    }
    if (copy_b) {
      right = thread.b.hold(round, static_cast<float*>(right), whole.K, columns_of(j), b.ld, n);
    }
    const OneThread one;
    call(*compiled[i == rows - 1][j == columns - 1], index)
        .execute(element(c, i * m, j * n), left, right, bias ? bias + j * n : nullptr,
                 thread.scratch);
  });
}

std::function<void()> prepare_unguarded(const Matrix& c, const Matrix& a, const Matrix& b) {
  struct Prepared {
    Call call;
    Scratch scratch;
  };
  const Shape s = shape_of(c, a, b, false, false);
  std::shared_ptr<Prepared> p;
  run_or_explain(s, [&] { p = std::make_shared<Prepared>(Prepared{Call(compile(s)), {}}); });
  return [p, s, to = c.data, left = a.data, right = b.data] {
    run_or_explain(s, [&] { p->call.execute(to, left, right, nullptr, p->scratch); });
  };
}

void matmul_unguarded(const Matrix& c, const Matrix& a, const Matrix& b) {
  prepare_unguarded(c, a, b)();
}

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

std::string onednn_isa() {
  using Isa = dnnl::cpu_isa;
  // 0 is `all` in oneDNN 2 and `isa_default` in oneDNN 3.
  constexpr std::pair<Isa, const char*> kNames[] = {{Isa{}, "ALL"},
                                                    {Isa::sse41, "SSE41"},
                                                    {Isa::avx, "AVX"},
                                                    {Isa::avx2, "AVX2"},
                                                    {Isa::avx2_vnni, "AVX2_VNNI"},
                                                    {Isa::avx512_core, "AVX512_CORE"},
                                                    {Isa::avx512_core_vnni, "AVX512_CORE_VNNI"},
                                                    {Isa::avx512_core_bf16, "AVX512_CORE_BF16"},
                                                    {Isa::avx512_core_amx, "AVX512_CORE_AMX"}};
  const Isa isa = dnnl::get_effective_cpu_isa();
  for (const auto& [known, name] : kNames) {
    if (known == isa) return name;
  }
  return "number " + std::to_string(static_cast<unsigned>(isa));
}

}  // namespace bamtrain
