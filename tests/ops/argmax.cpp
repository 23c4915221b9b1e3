#include <cmath>

#include "cases.h"
#include "catch.h"

namespace bamtrain::testing {
namespace {

TEST_CASE("the place of the largest element, of equal ones the first; NaN is passed over") {
  const double nan = std::nan("");
  for (Dtype t : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
    Machine m(t);
    const Memory x =
        m.memory({Role::parameter, {4, 5}, {1,         3,         2,        3,   0,    //
                                            nan,       -2,        -1,       nan, -3,   //
                                            nan,       nan,       nan,      nan, nan,  //
                                            -HUGE_VAL, -HUGE_VAL, HUGE_VAL, 7,   HUGE_VAL}});
    const Memory places = m.unwritten(Role::index, {4});
    m.backend().argmax(places.tensor(), x.tensor());
    CHECK(read(places.tensor(), Role::index).x == std::vector<double>{1, 2, 0, 2});
    // The first three columns of each row.
    m.backend().argmax(places.tensor(), x.tensor().slice(1, 0, 3));
    CHECK(read(places.tensor(), Role::index).x == std::vector<double>{1, 2, 0, 2});
  }
}

}  // namespace
}  // namespace bamtrain::testing
