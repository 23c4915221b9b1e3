#pragma once
// The list of all priors of family table; kernels/prior_table.cu iterates over it.

#include "priors/alibi.h"
#include "priors/bam.h"
#include "priors/kerple.h"
#include "priors/nape.h"
#include "priors/t5.h"

namespace bamtrain {

template <template <class> class...>
struct TablePriorList {};
/// P<Real> is the struct for one head, P<Real>::kName the prior's name.
using TablePriors = TablePriorList<Alibi, Nape, Bam, Kerple, T5>;

}  // namespace bamtrain
