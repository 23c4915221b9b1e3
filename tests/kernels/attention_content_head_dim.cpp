// The launchers of biases that read queries and keys, for one head dimension, BAMTRAIN_HEAD_DIM,
// compiled for the engine.

#include "kernels/attention_content.cu"
