#pragma once

namespace bamtrain {

/// Sentences that say nothing: what a passkey is hidden in, and a line of RULER's noise.
inline constexpr const char* kFiller =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

}  // namespace bamtrain
