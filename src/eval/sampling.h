#pragma once
// Draws the next token from a model's logits.

#include <cstdint>
#include <span>
#include <vector>

#include "core/rng.h"

namespace bamtrain {

/// Sampling settings, applied in this order:
///   temperature  p = softmax(logits / temperature); 0: always the likeliest token
///   top_k        keep the k likeliest; 0: all
///   top_p        keep the fewest of these, likeliest first, that have top_p of their sum (nucleus
///                sampling, Holtzman et al. 2020); 1: all
///   min_p        keep those at least min_p times as likely as the likeliest (Nguyen et al.
///                2024); 0: all
/// Ties go to the smaller id.
struct Sampling {
  double temperature = 1;
  int64_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
};

class Sampler {
 public:
  /// REQUIRES: temperature >= 0 and finite, top_k >= 0, 0 < top_p <= 1, 0 <= min_p <= 1.
  Sampler(const Sampling& sampling, const Rng& rng);

  /// Draws a token, a pure function of (logits, rng, index), in fp64. Throws Error
  /// (ExitCode::nonfinite) if a logit is NaN or no logit is finite. REQUIRES: at least one logit.
  int32_t draw(std::span<const double> logits, uint64_t index);

 private:
  struct Candidate {
    double weight;  // its probability, up to a common factor
    int32_t id;
  };
  void keep_likeliest();

  Sampling sampling_;
  Rng rng_;
  std::vector<Candidate> candidates_;
};

}  // namespace bamtrain
