#pragma once
// Marks functions that kernels call too.

#if defined(__CUDACC__)
#define BAMTRAIN_HD __host__ __device__
#else
#define BAMTRAIN_HD
#endif
