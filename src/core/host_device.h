#pragma once
// Marks functions that kernels call too.

#if defined(__CUDACC__)
#define BAMTRAIN_HD __host__ __device__
/// Of what a template makes for either, and never for both in one compilation.
#define BAMTRAIN_EITHER __device__ __forceinline__
#else
#define BAMTRAIN_HD
#define BAMTRAIN_EITHER inline
#endif
