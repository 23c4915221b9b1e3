#pragma once
// The list of all scales that depend on the number of visible keys and have a few scalars per head;
// kernels/scale_rows.cu iterates over it.

#include "scales/constant.h"
#include "scales/sentmax.h"
#include "scales/ssmax.h"

namespace bamtrain {

template <template <class> class...>
struct LengthScaleList {};
/// S<Real> is the struct for one head, S<Real>::kName the scale's name.
using LengthScales = LengthScaleList<Ssmax, Sentmax, ConstantScale>;

}  // namespace bamtrain
