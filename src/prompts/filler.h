#pragma once

namespace bamtrain {

/// Filler sentences: a passkey is hidden among them, and they are a line of RULER's noise.
inline constexpr const char* kFiller =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

}  // namespace bamtrain
