#include "core/json_digest.h"

#include <nlohmann/json.hpp>

#include "catch.h"
#include "data/files.h"

using namespace bamtrain;
using nlohmann::ordered_json;

namespace {

const JsonSource kDigested = {"f.json", ExitCode::io, "restore it"};

std::string digest_refusal(const std::string& text) {
  return testing::error_of(ExitCode::io, [&] { parse_digested_json(text, kDigested); });
}

ordered_json with_digest(ordered_json object, const char* digest) {
  object["digest"] = digest;
  return object;
}

}  // namespace

TEST_CASE("a digest is that of the members in their order, as another program has it") {
  // From: printf '{"format":2,"b":1}' | sha256sum, and likewise for the other.
  const ordered_json first = {{"format", 1}, {"b", 1}};
  CHECK(ordered_json::parse(digested_json(first)) ==
        with_digest({{"format", 2}, {"b", 1}},
                    "db740973a60af83d689cb5a21d1f53bc8aa8daab5652662778aff0295e34cf64"));
  const ordered_json last = {{"b", 1}, {"a", {{"loss", 1.0 / 3}, {"x", nullptr}}}};
  const std::string text = digested_json(last);
  CHECK(text == with_digest({{"b", 1}, {"a", {{"loss", 1.0 / 3}, {"x", nullptr}}}, {"format", 2}},
                            "16d001483408f80f076a4ed6990012cb939f3fa617eced6794e775b7add2a9ce")
                        .dump(2) +
                    "\n");
  // Reading returns what was written, in the same order.
  CHECK(parse_digested_json(text, kDigested).dump() == last.dump());
  CHECK(parse_digested_json(digested_json(ordered_json::parse(text)), kDigested).dump() ==
        last.dump());
}

TEST_CASE("no bit of a file with a digest flips unnoticed") {
  const ordered_json object = {
      {"format", 1}, {"name", "run"}, {"results", {{"a@1", {{"loss", -0.0}, {"n", 12345678901}}}}}};
  const std::string whole = digested_json(object);
  const std::string meant = parse_digested_json(whole, kDigested).dump();
  int refused = 0;
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string text = whole;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    std::string read;
    try {
      read = parse_digested_json(text, kDigested).dump();
    } catch (const Error& e) {
      CHECK(std::string(e.what()).starts_with("f.json"));
      ++refused;
      continue;
    }
    CHECK(read == meant);  // only the kind of white space changed
  }
  CHECK(refused > static_cast<int>(7 * whole.size()));
  CHECK(digest_refusal(std::string(whole).replace(whole.find("run"), 3, "ruN"))
            .find("f.json: digest: mismatch: recorded ") != std::string::npos);
}

TEST_CASE("files of before there were digests are read, those of newer programs are not") {
  CHECK(parse_digested_json(R"({"b": 1})", kDigested) == ordered_json{{"b", 1}});
  CHECK(parse_digested_json(R"({"format": 1, "b": 1})", kDigested) == ordered_json{{"b", 1}});
  CHECK(digest_refusal(R"({"format": 3, "b": 1})") ==
        "f.json: format: expected at most 2, found 3; read it with a newer bamtrain");
  CHECK(digest_refusal(R"({"format": 2, "b": 1})").find("digest: missing (a string)") !=
        std::string::npos);
  CHECK(digest_refusal(R"({"b": 1, "digest": 3})").find("digest: expected a string, found 3") !=
        std::string::npos);
  CHECK(digest_refusal(R"({"b": 1, "digest": "3"})")
            .find("digest: mismatch: recorded 3, computed ") != std::string::npos);
  CHECK(digest_refusal(R"({"format": 0})").find("expected 1 or 2, found 0") != std::string::npos);
  CHECK(digest_refusal(R"({"format": "1"})").find("format: expected an integer") !=
        std::string::npos);
  CHECK(digest_refusal("[]").find("a JSON object") != std::string::npos);
  CHECK(digest_refusal("{").find("f.json:1:") != std::string::npos);
}
