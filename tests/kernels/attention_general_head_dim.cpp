// The general attention launchers for one head dimension, BAMTRAIN_HEAD_DIM, compiled for the
// engine.

#include "kernels/attention_general.cu"
