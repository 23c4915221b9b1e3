#pragma once
// Partial gradients of the bias in the CPU attention, of one head and one part of the queries each,
// and their sums in a fixed order.

#include "ops/cpu/attention.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// dtable of one head and one part of the queries, reversed (table_length).
float* partial_table(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h,
                     int64_t part);
/// The gradient of one head with respect to the numbers of its keys, (padded_keys(T)): where a
/// table has the first part's.
float* key_numbers(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h);
/// Fire's dfire_u and dfire_psi of keys behind queries of one part, (2, T): where a table has its
/// own.
float* partial_behind(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h,
                      int64_t part);
/// Partial sums of fire of one head and one part of the queries: (kFireSegments, 2).
double* partial_fire(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h,
                     int64_t part);

/// Where parts were cleared one by one (RowBias::clear_part): what is summed over a head.
void join_parts(const Attention& a, const AttentionScratch& s);
/// The gradients from their parts; of numbers of tokens, the keys' part is added to that of the
/// rows, which is there.
void join_partials(const BiasGradients& g, const Attention& a, const AttentionScratch& s);

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
