// The plain launchers of biases that read queries and keys, compiled for the engine.

#include "kernels/attention_content_reference.cu"

namespace bamtrain::kernels {

// Of attention_launchers.cpp's plain kernels in bf16.
template LaunchStatus content_gradients_reference(const ContentGradients<bf16>&, Stream);

}  // namespace bamtrain::kernels
