#pragma once
// Builds the type-erased hooks of a prior of family table from a struct for one head:
//
//   struct P {
//     static constexpr int kParameters;        // tensors
//     static constexpr int kValues;            // scalars of each per head
//     P(const Real* theta, TableHead head);    // theta[p * kValues + k]
//     Real bias(int64_t d) const;              // b at distance d
//     void accumulate(Real dz, int64_t d, Real* dtheta) const;  // adds dz * db/dtheta[...]
//     static constexpr bool kSigned = true;    // optional: d is i - j, negative after the query,
//   };                                         // instead of |i - j|

#include "core/host_device.h"
#include "priors/prior.h"

namespace bamtrain {

/// Head h of H, the index of the formula, and its numbers: see TableShape.
struct TableHead {
  int64_t h = 0, H = 1;
  int form = 0;
  double gain = 1, asymmetry = 0;
};

/// The argument of formula P where i - j is `d`.
template <class P>
BAMTRAIN_HD constexpr int64_t distance_of(int64_t d) {
  if constexpr (requires { P::kSigned; }) {
    return d;
  } else {
    return d < 0 ? -d : d;
  }
}

/// Maximum number of scalars per head, over all parameters.
constexpr int kMaxTableScalars = 32;

template <template <class> class P>
struct TableHooks {
  static constexpr int kParameters = P<double>::kParameters, kValues = P<double>::kValues;
  static_assert(kParameters * kValues <= kMaxTableScalars);

  static P<double> head(const double* const* theta, const TableShape& s, int64_t h) {
    double own[kMaxTableScalars] = {};
    for (int p = 0; p < kParameters; ++p) {
      for (int k = 0; k < kValues; ++k) own[p * kValues + k] = theta[p][h * kValues + k];
    }
    return P<double>(own, {h, s.H, s.form, s.gain, s.asymmetry});
  }

  static void table(const double* const* theta, const TableShape& s, double* table) {
    for (int64_t h = 0; h < s.H; ++h) {
      const P<double> prior = head(theta, s, h);
      for (int64_t n = 0; n < s.T; ++n) {
        table[h * s.T + n] = prior.bias(distance_of<P<double>>(s.first + n));
      }
    }
  }

  static double bias(const double* const* theta, const TableShape& s, int64_t h, int64_t d) {
    return head(theta, s, h).bias(distance_of<P<double>>(d));
  }

  static void adjoint(const double* const* theta, const TableShape& s, const double* dtable,
                      double* const* dtheta) {
    for (int64_t h = 0; h < s.H; ++h) {
      const P<double> prior = head(theta, s, h);
      double own[kMaxTableScalars] = {};
      for (int64_t n = 0; n < s.T; ++n) {
        prior.accumulate(dtable[h * s.T + n], distance_of<P<double>>(s.first + n), own);
      }
      for (int p = 0; p < kParameters; ++p) {
        for (int k = 0; k < kValues; ++k) dtheta[p][h * kValues + k] += own[p * kValues + k];
      }
    }
  }
};

/// With `form` and `gain` as in TableFamily.
template <template <class> class P>
TableFamily table_family(int (*form)(const Options&) = nullptr,
                         double (*gain)(const Options&, const ModelShape&) = nullptr) {
  return {TableHooks<P>::table, TableHooks<P>::adjoint, form, gain, nullptr, TableHooks<P>::bias};
}

}  // namespace bamtrain
