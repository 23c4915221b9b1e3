#include "core/sha256.h"

#include "catch.h"
#include "core/error.h"

using namespace bamtrain;

TEST_CASE("SHA-256 of FIPS 180-4's examples, in one piece and in parts") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 parts;
  parts.update("a", 1);
  parts.update("bc", 2);
  CHECK(parts.hex() == sha256_hex("abc"));
}

TEST_CASE("a file that cannot be read is an error") {
  REQUIRE_THROWS_AS(sha256_file("/nowhere/at/all"), Error);
}
