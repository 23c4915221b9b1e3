#include "core/with_commas.h"

#include "catch.h"

using namespace bamtrain;

TEST_CASE("commas part the digits of a number in threes from the right") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1000) == "1,000");
  CHECK(with_commas(-999) == "-999");
  CHECK(with_commas(-123456) == "-123,456");
  CHECK(with_commas(12345678) == "12,345,678");
  CHECK(with_commas(INT64_MAX) == "9,223,372,036,854,775,807");
  CHECK(with_commas(INT64_MIN) == "-9,223,372,036,854,775,808");
}
