#include "record/logs.h"

#include "catch.h"
#include "core/json.h"

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

TEST_CASE("a line of metrics.jsonl is short enough to be read again, whatever the values") {
  std::vector<Parameter> parameters(17);  // one more than it takes
  std::vector<Learned> learned;
  for (size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].name = "p" + std::to_string(i);
    // As long as a float gets: 23 characters and a comma.
    learned.push_back({&parameters[i], std::vector<float>(kMostOfALine, -1.17549444e-38f)});
  }
  const nlohmann::ordered_json line = {{"parameters", parameters_json(learned)}};
  CHECK(line["parameters"].size() == 16);
  CHECK(parse_json_line(line.dump(), {"f", ExitCode::io}) == nlohmann::json(line));
}
