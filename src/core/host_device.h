#pragma once
// Marks functions that kernels also call.

#if defined(__CUDACC__)
#define BAMTRAIN_HD __host__ __device__
/// For template instances used on host or device, but never on both in one compilation.
#define BAMTRAIN_EITHER __device__ __forceinline__
#else
#define BAMTRAIN_HD
#define BAMTRAIN_EITHER inline
#endif
