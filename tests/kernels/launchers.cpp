// The launchers of kernels/, compiled for the engine.

#include "kernels/activation.cu"
#include "kernels/adaptive_scale.cu"
#include "kernels/bias.cu"
#include "kernels/embedding.cu"
#include "kernels/fire.cu"
#include "kernels/flat.cu"
#include "kernels/loss.cu"
#include "kernels/mechanisms.cu"
#include "kernels/norm.cu"
#include "kernels/optimizer.cu"
#include "kernels/rotation.cu"
#include "kernels/sums.cu"
