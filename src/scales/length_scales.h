#pragma once
// Every scale of the number of visible keys with a few scalars per head, once: the registry and
// kernels/scale_rows.cu both work from this list.

#include "scales/constant.h"
#include "scales/sentmax.h"
#include "scales/ssmax.h"

/// X(name, formula): `formula` is the struct for one head, and `name`_scale() declares the rest.
#define BAMTRAIN_LENGTH_SCALES(X) \
  X(ssmax, Ssmax)                 \
  X(sentmax, Sentmax)             \
  X(constant, ConstantScale)
