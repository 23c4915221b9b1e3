// The plain launchers of biases that read queries and keys, compiled for the engine.

#include "kernels/attention_content_reference.cu"
