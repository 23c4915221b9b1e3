#pragma once
// NAPE: the first half of the heads is ALiBi, the rest has no prior (ASEntmax, section 4.2).

#include "priors/alibi.h"

namespace bamtrain {

BAMTRAIN_HD constexpr int64_t nape_alibi_heads(int64_t H) { return H / 2; }

template <class Real>
struct Nape {
  static constexpr int kParameters = 0, kValues = 1;
  /// Slopes: ALiBi's of half the heads (language models), or 1 / h, h from 1 (synthetic tasks).
  enum Form { kExponential, kHarmonic };

  Real slope = 0;

  BAMTRAIN_HD Nape(const Real*, TableHead head) {
    const int64_t heads = nape_alibi_heads(head.H);
    if (head.h >= heads) return;
    slope = static_cast<Real>(head.form == kHarmonic ? 1 / static_cast<double>(head.h + 1)
                                                     : alibi_slope(head.h, heads));
  }
  BAMTRAIN_HD Real bias(int64_t d) const { return -slope * static_cast<Real>(d); }
  BAMTRAIN_HD void accumulate(Real, int64_t, Real*) const {}  // nothing is trained
};

}  // namespace bamtrain
