#pragma once
// NAPE: the first half of the heads uses ALiBi, the rest has no prior (ASEntmax, section 4.2).

#include "priors/alibi.h"

namespace bamtrain {

BAMTRAIN_HD constexpr int64_t nape_alibi_heads(int64_t H) { return H / 2; }

template <class Real>
struct Nape {
  static constexpr const char* kName = "nape";
  static constexpr int kParameters = 0, kValues = 1;
  /// Slopes for h from 1. kExponential: ALiBi's slopes for half as many heads. kExponentialOfAll:
  /// the first of ALiBi's slopes for all heads (language models). kHarmonic: 1 / h (synthetic
  /// tasks). kHalving: 2^(1 - h) (in the authors' code, unused).
  enum Form { kExponential, kExponentialOfAll, kHarmonic, kHalving };

  Real slope = 0;

  BAMTRAIN_HD Nape(const Real*, TableHead head) {
    const int64_t heads = nape_alibi_heads(head.H);
    if (head.h >= heads) return;
    slope = static_cast<Real>(slope_of(head, heads));
  }
  BAMTRAIN_HD static double slope_of(TableHead head, int64_t heads) {
    if (head.form == kHarmonic) return 1 / static_cast<double>(head.h + 1);
    if (head.form == kHalving) return exp2(-static_cast<double>(head.h));
    return alibi_slope(head.h, head.form == kExponentialOfAll ? head.H : heads);
  }
  BAMTRAIN_HD Real bias(int64_t d) const { return -slope * static_cast<Real>(d); }
  BAMTRAIN_HD void accumulate(Real, int64_t, Real*) const {}  // nothing is trained
};

}  // namespace bamtrain
