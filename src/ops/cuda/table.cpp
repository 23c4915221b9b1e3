#include "ops/mechanisms/table.h"

#include "kernels/prior_table.h"
#include "ops/cuda/arguments.h"
#include "ops/cuda/mechanisms.h"

namespace bamtrain {

using namespace cuda;

namespace {

kernels::TablePrior prior_of(const PriorUse& use, const Tensor& table,
                             std::span<const Tensor> theta) {
  require(theta.size() <= kernels::kMaxPriorParameters && table.contiguous(),
          "a contiguous table and at most 8 parameters");
  kernels::TablePrior p;
  p.name = use.info.name.c_str();
  p.form = use.form;
  p.gain = use.gain;
  const TableShape shape = use.shape(table);
  p.H = shape.H;
  p.T = shape.T;
  p.first = shape.first;
  p.asymmetry = shape.asymmetry;
  for (size_t n = 0; n < theta.size(); ++n) p.theta[n] = f32(theta[n]);
  return p;
}

}  // namespace

void TableForward::on_cuda(const cuda::CudaWork& work) const {
  check(kernels::table_prior_forward(f32(table), prior_of(prior, table, theta), work.stream),
        kName);
}

void TableBackward::on_cuda(const cuda::CudaWork& work) const {
  kernels::TablePriorGradients g;
  for (size_t p = 0; p < dtheta.size(); ++p) g.dtheta[p] = f32(dtheta[p]);
  g.dtable = f32(dtable);
  check(kernels::table_prior_backward(g, prior_of(prior, dtable, theta), work.stream), kName);
}

// --- in attention

void TableBias::on_cuda(kernels::BiasInputs& in) const {
  in.table = f32(table) + (in.causal ? 0 : (table.shape[1] - 1) / 2);
  in.table_head = table.stride[0];
}

void TableBiasGradients::on_cuda(kernels::BiasOutputs& g) const {
  g.dtable = f32(dtable) + (g.causal ? 0 : (dtable.shape[1] - 1) / 2);
  g.dtable_head = dtable.stride[0];
}

int64_t TableBiasGradients::cuda_partial(const AttentionShape& s) {
  return kernels::attention_partial_floats(as_int(s.B), as_int(s.T), as_int(s.H), as_int(s.K),
                                           s.distances());
}

}  // namespace bamtrain
