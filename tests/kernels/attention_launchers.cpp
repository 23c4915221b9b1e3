// The launchers of attention that serve every head dimension, compiled for the engine.

#include "kernels/attention_dispatch.cu"
#include "kernels/attention_entropy.cu"
#include "kernels/attention_reference.cu"
