#include "ops/cuda/gemm.h"

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <string>

#include "core/error.h"
#include "ops/cuda/library.h"
#include "ops/cuda/runtime.h"

namespace bamtrain::cuda {

namespace {

constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;

/// cuBLASLt, loaded at the first products: the program starts without it.
struct Library {
  const LoadedLibrary cublas{BAMTRAIN_SONAME("libcublasLt", CUBLAS_VER_MAJOR), "cuBLASLt",
                             ExitCode::device,
                             "install the CUDA toolkit's cuBLAS and name its folder in "
                             "LD_LIBRARY_PATH"};
  decltype(&cublasLtCreate) create = cublas["cublasLtCreate"];
  decltype(&cublasLtDestroy) destroy = cublas["cublasLtDestroy"];
  decltype(&cublasLtGetStatusString) status_string = cublas["cublasLtGetStatusString"];
  decltype(&cublasLtMatmul) matmul = cublas["cublasLtMatmul"];
  decltype(&cublasLtMatmulDescCreate) description_create = cublas["cublasLtMatmulDescCreate"];
  decltype(&cublasLtMatmulDescDestroy) description_destroy = cublas["cublasLtMatmulDescDestroy"];
  decltype(&cublasLtMatmulDescSetAttribute) description_set =
      cublas["cublasLtMatmulDescSetAttribute"];
  decltype(&cublasLtMatrixLayoutCreate) layout_create = cublas["cublasLtMatrixLayoutCreate"];
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = cublas["cublasLtMatrixLayoutDestroy"];
  decltype(&cublasLtMatmulPreferenceCreate) preference_create =
      cublas["cublasLtMatmulPreferenceCreate"];
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy =
      cublas["cublasLtMatmulPreferenceDestroy"];
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set =
      cublas["cublasLtMatmulPreferenceSetAttribute"];
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = cublas["cublasLtMatmulAlgoGetHeuristic"];
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

void check(cublasStatus_t status, const std::string& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error::fault(ExitCode::device, "cuBLASLt",
                     library().status_string(status) + (", for " + what),
                     "report it with the output of nvidia-smi");
}

cudaDataType_t type_of(Dtype t) { return t == Dtype::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

/// The largest power of two up to 16 that divides the address. A larger one would not speed up
/// loads. It would make algorithms, and so results, depend on where tensors lie, which varies with
/// the number of processes and with activation checkpointing.
uint32_t alignment_of(const void* p) {
  return 1u << std::min(4, std::countr_zero(reinterpret_cast<uintptr_t>(p)));
}

/// The library is column-major: it sees a row-major matrix as its transpose, so c = a b is computed
/// as c' = b' a'.
struct Plan {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
};

using Key = std::array<int64_t, 14>;

Key key_of(const Matrix& c, const Matrix& a, const Matrix& b, bool accumulate) {
  return {c.rows,
          c.columns,
          a.columns,
          c.ld,
          a.ld,
          b.ld,
          a.transposed,
          b.transposed,
          static_cast<int64_t>(c.dtype),
          static_cast<int64_t>(a.dtype),
          accumulate,
          alignment_of(c.data),
          alignment_of(a.data),
          alignment_of(b.data)};
}

std::string describe(const Matrix& c, const Matrix& a) {
  return "a product (" + std::to_string(c.rows) + ", " + std::to_string(a.columns) + ") x (" +
         std::to_string(a.columns) + ", " + std::to_string(c.columns) + ") " + name_of(a.dtype);
}

cublasLtMatrixLayout_t layout_of(const Matrix& m) {
  const auto in_memory_rows = static_cast<uint64_t>(m.transposed ? m.columns : m.rows);
  const auto in_memory_columns = static_cast<uint64_t>(m.transposed ? m.rows : m.columns);
  cublasLtMatrixLayout_t layout = nullptr;
  check(library().layout_create(&layout, type_of(m.dtype), in_memory_columns, in_memory_rows, m.ld),
        "a matrix layout");
  return layout;
}

}  // namespace

struct Gemm::State {
  cublasLtHandle_t handle = nullptr;
  std::map<Key, Plan> plans;
  void* workspace = nullptr;

  const bool tf32;

  explicit State(bool tf32_products) : tf32(tf32_products) {
    check(library().create(&handle), "a handle");
    workspace = allocate(kWorkspaceBytes);
  }
  ~State() {
    release(workspace);
    for (const auto& [key, plan] : plans) {
      (void)library().layout_destroy(plan.result);
      (void)library().layout_destroy(plan.second);
      (void)library().layout_destroy(plan.first);
      (void)library().description_destroy(plan.description);
    }
    (void)library().destroy(handle);
  }

  const Plan& plan(const Matrix& c, const Matrix& a, const Matrix& b, bool accumulate) {
    const Key key = key_of(c, a, b, accumulate);
    if (const auto found = plans.find(key); found != plans.end()) return found->second;
    Plan p;
    const bool rounded = tf32 && a.dtype == Dtype::f32;
    check(library().description_create(&p.description,
                                       rounded ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                       CUDA_R_32F),
          "a product's description");
    const auto operation = [&](cublasLtMatmulDescAttributes_t which, bool transposed) {
      const cublasOperation_t op = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
      check(library().description_set(p.description, which, &op, sizeof op),
            "an operation on an operand");
    };
    operation(CUBLASLT_MATMUL_DESC_TRANSA, b.transposed);
    operation(CUBLASLT_MATMUL_DESC_TRANSB, a.transposed);
    p.first = layout_of(b);
    p.second = layout_of(a);
    p.result = layout_of(c);

    cublasLtMatmulPreference_t preference = nullptr;
    check(library().preference_create(&preference), "a preference");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) {
      check(library().preference_set(preference, which, &value, sizeof value), "a preference");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kWorkspaceBytes));
    // Split-K partial sums are added in fp32, in separate memory, never in the result's dtype.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(b.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(a.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(c.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(c.data));
    cublasLtMatmulHeuristicResult_t best = {};
    int count = 0;
    const cublasStatus_t status = library().heuristic(
        handle, p.description, p.first, p.second, p.result, p.result, preference, 1, &best, &count);
    (void)library().preference_destroy(preference);
    check(status, "an algorithm for " + describe(c, a));
    require(count > 0, "an algorithm of cuBLASLt for the shape");
    p.algorithm = best.algo;
    return plans.emplace(key, p).first->second;
  }
};

Gemm::Gemm(bool tf32) : state_(std::make_unique<State>(tf32)) {}
Gemm::Gemm(NoDevice) {}
Gemm::~Gemm() = default;

void Gemm::multiply(const Matrix& c, const Matrix& a, const Matrix& b, bool accumulate,
                    device::Stream stream) {
  require(a.dtype == b.dtype && (c.dtype == Dtype::f32 || c.dtype == a.dtype) && !c.transposed &&
              a.columns == b.rows && c.rows == a.rows && c.columns == b.columns,
          "operands of one type and matching shapes");
  const Plan& p = state_->plan(c, a, b, accumulate);
  const float one = 1, beta = accumulate ? 1.0f : 0.0f;
  check(library().matmul(state_->handle, p.description, &one, b.data, p.first, a.data, p.second,
                         &beta, c.data, p.result, c.data, p.result, &p.algorithm, state_->workspace,
                         static_cast<size_t>(kWorkspaceBytes), stream),
        describe(c, a));
}

}  // namespace bamtrain::cuda
