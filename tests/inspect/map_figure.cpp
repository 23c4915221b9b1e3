// Maps as images: the file's checksums, and the meaning of each colour.

#include "inspect/map_figure.h"

#include <cmath>

#include "catch.h"

namespace bamtrain {
namespace {

uint32_t u32(const std::string& s, size_t at) {
  uint32_t x = 0;
  for (size_t n = 0; n < 4; ++n) x = x << 8 | static_cast<uint8_t>(s[at + n]);
  return x;
}

TEST_CASE("base 64 is that of RFC 4648") {
  CHECK(base64("").empty());
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foobar") == "Zm9vYmFy");
  CHECK(base64(std::string("\xff\xfe\x00", 3)) == "//4A");
}

TEST_CASE("a picture's chunks have the sums that their format asks for") {
  const std::string png = indexed_png(2, 1, {7, 9}, std::vector<uint32_t>(256, 0x01020304));
  CHECK(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  // Every PNG ends with the CRC of "IEND" without data.
  CHECK(u32(png, png.size() - 4) == 0xAE426082);
  CHECK(u32(png, 16) == 2);
  CHECK(u32(png, 20) == 1);
  // One stored block of filter, 7, 9: Adler-32 a = 1 + 16, b = 1 + 8 + 17.
  const size_t data = png.find("IDAT") + 4;
  CHECK(png.substr(data, 2) == "\x78\x01");
  CHECK(png[data + 2] == 1);
  CHECK(static_cast<uint8_t>(png[data + 3]) == 3);
  CHECK(static_cast<uint8_t>(png[data + 5]) == 0xFC);
  CHECK(png.substr(data + 7, 3) == std::string("\0\7\11", 3));
  CHECK(u32(png, data + 10) == (uint32_t{26} << 16 | 17));
}

TEST_CASE("means over blocks are over the pairs that see each other") {
  const float nan = NAN;
  // Blocks of two queries and two keys; on the diagonal, three of four pairs are visible. Invisible
  // pairs have weight 0 and logit NaN.
  const std::vector<float> seen = {3, 0, 0, 4, 3, 0, 4, 4, 3};
  for (const float none : {0.0F, nan}) {
    const std::vector<float> m = averaged({1, none, none, 3, 5, none, 7, 8, 9}, seen, 3, 2);
    REQUIRE(m.size() == 4);
    CHECK(m[0] == Approx((3 * 1 + 4 * 3 + 3 * 5) / 10.0));
    CHECK(std::isnan(m[1]));
    CHECK(m[2] == 7.5);
    CHECK(m[3] == 9);
  }
  CHECK(largest_size({1, -4, nan, INFINITY}) == 4);
}

TEST_CASE("names of tokens and titles cannot end the page's elements") {
  MapFigure map;
  map.title = "<b>";
  map.rows = map.columns = 1;
  map.values = {0.5F};
  CHECK(map_figure(map).find("<b>") == std::string::npos);
  CHECK(map_page_parts({"</script>"}).find("[\"\\u003c/script>\"]") != std::string::npos);
}

}  // namespace
}  // namespace bamtrain
