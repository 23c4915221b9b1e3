// One thread per element of a table; in the adjoint one block per head.

#include "arguments.h"
#include "by_name.h"
#include "prior_table.h"
#include "priors/table_priors.h"
#include "reductions.cuh"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

constexpr int kTableWarps = 8, kTableThreads = 32 * kTableWarps;

template <template <class> class P>
BAMTRAIN_DEVICE P<double> prior_of_head(const TablePrior& prior, int64_t h) {
  constexpr int kValues = P<double>::kValues;
  double theta[kMaxTableScalars] = {};
  BAMTRAIN_UNROLL
  for (int p = 0; p < P<double>::kParameters; ++p) {
    BAMTRAIN_UNROLL
    for (int k = 0; k < kValues; ++k) {
      theta[p * kValues + k] = static_cast<double>(prior.theta[p][h * kValues + k]);
    }
  }
  return P<double>(theta, {h, prior.H, prior.form, prior.gain, prior.asymmetry});
}

template <template <class> class P>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kTableThreads)
    table_of_prior(float* table, const TablePrior prior) {
  const int64_t h = device::block_index().y;
  const int64_t n = int64_t{device::block_index().x} * kTableThreads + device::thread_index().x;
  if (n >= prior.T) return;
  const int64_t d = distance_of<P<double>>(prior.first + n);
  table[h * prior.T + n] = static_cast<float>(prior_of_head<P>(prior, h).bias(d));
}

template <template <class> class P>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kTableThreads)
    gradient_of_prior(const TablePriorGradients g, const TablePrior prior) {
  BAMTRAIN_SHARED(double, sums, kTableWarps);
  constexpr int kParameters = P<double>::kParameters, kValues = P<double>::kValues;
  const int64_t h = device::block_index().x;
  const P<double> of_head = prior_of_head<P>(prior, h);
  double own[kParameters * kValues] = {};
  for (int64_t n = device::thread_index().x; n < prior.T; n += kTableThreads) {
    const int64_t d = distance_of<P<double>>(prior.first + n);
    of_head.accumulate(static_cast<double>(g.dtable[h * prior.T + n]), d, own);
  }
  BAMTRAIN_UNROLL
  for (int p = 0; p < kParameters; ++p) {
    if (g.dtheta[p] == nullptr) continue;
    float* const to = g.dtheta[p] + h * kValues;
    for (int k = 0; k < kValues; ++k) {
      device::barrier();  // the previous sum has been read
      const double sum = block_sum<kTableWarps>(own[p * kValues + k], sums);
      if (device::thread_index().x == 0) add_to(to + k, sum);
    }
  }
}

struct TablePriorKernels {
  const char* name;
  int parameters;
  LaunchStatus (*forward)(float*, const TablePrior&, Stream);
  LaunchStatus (*backward)(const TablePriorGradients&, const TablePrior&, Stream);
};

template <template <class> class P>
LaunchStatus launch_table(float* table, const TablePrior& prior, Stream stream) {
  const auto blocks = static_cast<uint32_t>(blocks_of(prior.T, kTableThreads));
  return device::launch(table_of_prior<P>, {blocks, static_cast<uint32_t>(prior.H), 1},
                        {kTableThreads, 1, 1}, 0, stream, table, prior);
}

template <template <class> class P>
LaunchStatus launch_gradient(const TablePriorGradients& g, const TablePrior& prior, Stream stream) {
  if constexpr (P<double>::kParameters == 0) {
    return {};
  } else {
    return device::launch(gradient_of_prior<P>, {static_cast<uint32_t>(prior.H), 1, 1},
                          {kTableThreads, 1, 1}, 0, stream, g, prior);
  }
}

template <template <class> class P>
constexpr TablePriorKernels table_prior_kernels() {
  static_assert(P<double>::kParameters <= kMaxPriorParameters);
  return {P<double>::kName, P<double>::kParameters, launch_table<P>, launch_gradient<P>};
}
template <template <class> class... P>
constexpr std::array<TablePriorKernels, sizeof...(P)> kernels_of(TablePriorList<P...>) {
  return {table_prior_kernels<P>()...};
}
constexpr auto kTablePriors = kernels_of(TablePriors());

/// Ok, or why the prior is refused.
LaunchStatus check_table_prior(const TablePrior& prior, const TablePriorKernels* kernels) {
  if (kernels == nullptr) return device::refused("table prior: a name that has kernels");
  if (!is_head_count(prior.H) || prior.T < 1 || prior.T > kMaxBlocks) {
    return device::refused("table prior: H, 1 to 2^16 - 1, and T, 1 to 2^31 - 1");
  }
  for (int p = 0; p < kernels->parameters; ++p) {
    if (prior.theta[p] == nullptr) return device::refused("table prior: a theta per parameter");
  }
  return {};
}

}  // namespace

LaunchStatus table_prior_forward(float* table, const TablePrior& prior, Stream stream) {
  const TablePriorKernels* kernels = find_kernels(kTablePriors, prior.name);
  const LaunchStatus status = check_table_prior(prior, kernels);
  return status.ok() ? kernels->forward(table, prior, stream) : status;
}

LaunchStatus table_prior_backward(const TablePriorGradients& g, const TablePrior& prior,
                                  Stream stream) {
  const TablePriorKernels* kernels = find_kernels(kTablePriors, prior.name);
  const LaunchStatus status = check_table_prior(prior, kernels);
  if (!status.ok()) return status;
  bool any = false;
  for (int p = 0; p < kernels->parameters; ++p) any |= g.dtheta[p] != nullptr;
  return any ? kernels->backward(g, prior, stream) : LaunchStatus{};
}

}  // namespace bamtrain::kernels
