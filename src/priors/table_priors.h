#pragma once
// Every prior of family table, once: the registry and kernels/prior_table.cu both work from this
// list.

#include "priors/alibi.h"
#include "priors/bam.h"
#include "priors/kerple.h"
#include "priors/nape.h"
#include "priors/t5.h"

/// X(name, formula): `formula` is the struct for one head, and `name`_prior() declares the rest.
#define BAMTRAIN_TABLE_PRIORS(X) \
  X(alibi, Alibi)                \
  X(nape, Nape)                  \
  X(bam, Bam)                    \
  X(kerple, Kerple)              \
  X(t5, T5)
