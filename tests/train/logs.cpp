#include "record/logs.h"

#include "catch.h"

using namespace bamtrain;

TEST_CASE("a line of metrics.jsonl has no parameter of very many numbers") {
  Parameter gates, square;
  gates.name = "gates";
  square.name = "square";
  const std::vector<Learned> learned = {{&gates, std::vector<float>(kMostOfALine, 1.5f)},
                                        {&square, std::vector<float>(kMostOfALine + 1)}};
  const nlohmann::ordered_json line = parameters_json(learned);
  REQUIRE(line.size() == 1);
  CHECK(line["gates"].get<std::vector<float>>() == learned[0].values);
}
