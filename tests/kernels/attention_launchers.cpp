// The attention launchers that serve every head dimension, compiled for the engine. Those that
// mutants.py mutates have separate units.

#include "kernels/attention_dispatch.cu"
#include "kernels/attention_entropy.cu"
#include "kernels/attention_reference.cu"
#include "kernels/attention_reference_sticks.cu"
#include "kernels/attention_statistics.cu"
