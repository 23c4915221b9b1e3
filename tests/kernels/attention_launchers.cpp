// The launchers of attention that serve every head dimension, compiled for the engine; but for
// those that mutants.py mutates, which have units of their own.

#include "kernels/attention_dispatch.cu"
#include "kernels/attention_entropy.cu"
#include "kernels/attention_reference.cu"
#include "kernels/attention_reference_sticks.cu"
#include "kernels/attention_statistics.cu"
