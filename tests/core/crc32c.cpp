#include "core/crc32c.h"

#include <string>

#include "catch.h"

using namespace bamtrain;

TEST_CASE("CRC-32C of RFC 3720's examples") {
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AA);
  CHECK(crc32c(std::string(32, '\xFF')) == 0x62A8AB43);
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  for (int i = 31; i >= 0; --i) falling += static_cast<char>(i);
  CHECK(crc32c(rising) == 0x46DD794E);
  CHECK(crc32c(falling) == 0x113FDB5C);
}

TEST_CASE("CRC-32C of the catalogue's check string, and of nothing") {
  CHECK(crc32c("123456789") == 0xE3069283);
  CHECK(crc32c("") == 0);
}
