#pragma once
// Every scale of the number of visible keys with a few scalars per head, once:
// kernels/scale_rows.cu works from this list.

#include "scales/constant.h"
#include "scales/sentmax.h"
#include "scales/ssmax.h"

namespace bamtrain {

template <template <class> class...>
struct LengthScaleList {};
/// S<Real> is the struct for one head, S<Real>::kName the scale's name.
using LengthScales = LengthScaleList<Ssmax, Sentmax, ConstantScale>;

}  // namespace bamtrain
