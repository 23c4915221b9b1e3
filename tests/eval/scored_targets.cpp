// Sums by document and the digest of targets.

#include "eval/scored_targets.h"

#include "catch.h"

using namespace bamtrain;

namespace {

struct Target {
  size_t document;
  int64_t place;
  int32_t id;
};

std::string digest_of(const std::vector<Target>& targets) {
  ScoredTargets scored(5);
  for (const Target& t : targets) scored.add(t.document, t.place, t.id, 1);
  return scored.digest();
}

}  // namespace

TEST_CASE("sums and counts are by document") {
  ScoredTargets scored(3);
  scored.add(0, 1, 7, 0.5);
  scored.add(0, 2, 8, 1.5);
  scored.add(2, 9, 7, 4);
  const std::vector<Cluster>& clusters = scored.clusters();
  REQUIRE(clusters.size() == 3);
  CHECK(clusters[0].sum == 2);
  CHECK(clusters[0].count == 2);
  CHECK(clusters[1].count == 0);
  CHECK(clusters[2].sum == 4);
}

TEST_CASE("a digest is equal for the same targets only") {
  std::vector<Target> targets;
  for (int64_t place = 1; place <= 20'000; ++place) {
    targets.push_back(
        {place <= 9000 ? size_t{0} : size_t{1}, place, static_cast<int32_t>(place % 91)});
  }
  const std::string digest = digest_of(targets);
  CHECK(digest == digest_of(targets));
  const auto changed = [&](size_t at, const Target& by) {
    std::vector<Target> other = targets;
    other[at] = by;
    return digest_of(other);
  };
  CHECK(digest != changed(5, {0, 6, 90}));                     // another id
  CHECK(digest != changed(8999, {1, 9000, 9000 % 91}));        // of another document
  CHECK(digest != changed(19'999, {1, 20'001, 20'000 % 91}));  // at another place
  targets.pop_back();
  CHECK(digest != digest_of(targets));
}

TEST_CASE("the loss does not change the digest") {
  ScoredTargets a(1), b(1);
  a.add(0, 1, 7, 0.5);
  b.add(0, 1, 7, 2.5);
  CHECK(a.digest() == b.digest());
}
