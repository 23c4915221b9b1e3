#pragma once
// Student's t distribution.

namespace bamtrain {

/// P(|t| >= `t`) of Student's distribution with `freedom` > 0 degrees of freedom.
double student_two_sided(double t, double freedom);

}  // namespace bamtrain
