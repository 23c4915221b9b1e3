// docs/config.md matches the schema and has its every key. docs/attention.md has a row for every
// prior, and a line for every normalizer that takes no scale.

#include "config/reference.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"
#include "config/examples.h"
#include "config/keys.h"
#include "config/schema.h"
#include "core/json.h"
#include "fixture.h"
#include "normalizers/registry.h"
#include "priors/registry.h"

namespace {

/// The paths of all keys below `schema`, without sections.
void find_keys(const nlohmann::ordered_json& schema, const std::string& path,
               std::vector<std::string>& found) {
  for (const auto& [key, member] : schema["properties"].items()) {
    const std::string full = path.empty() ? key : path + "." + key;
    if (member.contains("properties")) {
      find_keys(member, full, found);
    } else {
      found.push_back(full);
    }
  }
}

}  // namespace

TEST_CASE("docs/config.md is the reference of today's schema") {
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  REQUIRE(source != nullptr);
  std::ifstream in(std::string(source) + "/docs/config.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  INFO("build/src/bamtrain help config > docs/config.md");
  CHECK(page == bamtrain::config_reference());
}

TEST_CASE("the reference says what a key with alternatives takes, and what a list of them holds") {
  const std::string text = bamtrain::config_reference();
  for (const char* part :
       {"\n- `model.attention.prior` (name, or object with a name, or list of such; default",
        "\n- `model.attention.scale` (name, or object with a name; default",
        "\n- `data.train` (string, or task, or list of such; required;",
        "\n  - a list: interleaved sources, shards or tasks, each with a weight\n    - `path` "
        "(string; "
        "required): a folder",
        "\n    - `weight` (number; above 0; required): relative share",
        "\n- `eval.tasks` (list of objects; default `[]`;",
        "\n    - `lengths` (list of integers): source lengths in tokens; default: the longest of "
        "the",
        "\n    - `every` (integer; from 0): steps between passes"}) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text.find("a list: \n") == std::string::npos);
  CHECK(text.find("a list:\n") == std::string::npos);
}

TEST_CASE("the examples of the reference are valid, and show the section that they stand in") {
  CHECK(message(bamtrain::minimal_config()) == "");
  const nlohmann::json minimal = nlohmann::json::parse(bamtrain::minimal_config());
  std::vector<std::string> sections = {""};
  for (const bamtrain::KeyGroup& group : bamtrain::all_groups()) sections.push_back(group.path);
  for (const std::string& section : sections) {
    INFO(section);
    const std::string text = "{" + bamtrain::config_example(section) + "}";
    const nlohmann::json example = nlohmann::json::parse(text);
    CHECK((section.empty() || bamtrain::find_value(example, section) != nullptr));
    nlohmann::json whole = minimal;
    whole.merge_patch(example);
    CHECK(message(whole.dump()) == "");
  }
}

TEST_CASE("the reference describes what several mechanisms share once") {
  const std::string text = bamtrain::config_reference();
  for (const char* part :
       {"\n    - `randomized`, `randomized_length`, `eval_positions`: as for `alibi`\n",
        "\n  - a task: as for `data.train`\n"}) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("the reference has every key once and no line past 100 columns but of one word") {
  const std::string text = bamtrain::config_reference();
  std::vector<std::string> keys;
  find_keys(bamtrain::schema_json(), "", keys);
  CHECK(keys.size() > 40);
  for (const std::string& key : keys) {
    const std::string entry = "\n- `" + key + "` (";
    const size_t at = text.find(entry);
    INFO(key);
    REQUIRE(at != std::string::npos);
    CHECK(text.find(entry, at + 1) == std::string::npos);
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK((line.size() <= 100 || line.rfind("##", 0) == 0));
  }
}

TEST_CASE("docs/attention.md has every prior in the row of its bias, those with tables as others") {
  using namespace bamtrain;
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  REQUIRE(source != nullptr);
  std::ifstream in(std::string(source) + "/docs/attention.md");
  std::vector<std::string> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("| ")) rows.push_back(line);
  }
  CHECK(std::count(rows.begin(), rows.end(), "| a table by distance | all others |") == 1);
  std::map<size_t, std::string> of_family;  // priors without a bias share a row
  for (const PriorInfo& p : all_priors()) {
    INFO(p.name);
    const auto has_it = [&p](const std::string& row) {
      return row.find(" " + p.name + ",") != std::string::npos ||
             row.find(" " + p.name + " |") != std::string::npos;
    };
    CHECK(std::count_if(rows.begin(), rows.end(), has_it) == (p.is<TableFamily>() ? 0 : 1));
    if (p.is<TableFamily>()) continue;
    const std::string row = *std::find_if(rows.begin(), rows.end(), has_it);
    const bool none = p.is<RotaryFamily>() || p.is<EmbeddingFamily>();
    const size_t family = none ? 0 : p.family.index();
    CHECK(of_family.emplace(family, row).first->second == row);
    CHECK(row.starts_with("| none |") == (family == 0));
  }
  for (const auto& [family, row] : of_family) {
    for (const auto& [other, its] : of_family) CHECK((its == row) == (other == family));
  }
}

TEST_CASE("docs/attention.md names the normalizers that take no scale, and no others as such") {
  using namespace bamtrain;
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  REQUIRE(source != nullptr);
  std::ifstream in(std::string(source) + "/docs/attention.md");
  std::string refused, line;
  while (std::getline(in, line)) {
    if (line.find("` with a scale: ") != std::string::npos) refused += line;
  }
  for (const NormalizerInfo& n : all_normalizers()) {
    INFO(n.name);
    CHECK((refused.find("`" + n.name + "`") == std::string::npos) == traits_of(n.kind).takes_scale);
  }
}

namespace {

/// The longest line that is of more than one word.
size_t longest_line(const std::string& text) {
  size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find_first_not_of(' ');
    if (line.find(' ', first) != std::string::npos) longest = std::max(longest, line.size());
  }
  return longest;
}

}  // namespace

TEST_CASE("every key and section has an entry of its own, within 80 columns") {
  std::vector<std::string> keys;
  find_keys(bamtrain::schema_json(), "", keys);
  for (const std::string& key : keys) {
    const std::string entry = bamtrain::config_entry(key);
    INFO(entry);
    CHECK(entry.starts_with("- `" + key + "` ("));
    CHECK(longest_line(entry) <= 80);
  }
  for (const std::string& path : bamtrain::config_paths()) {
    INFO(path);
    CHECK_FALSE(bamtrain::config_entry(path).empty());
  }
}

TEST_CASE("the entry of a section has its keys and sections, and no others") {
  const std::string entry = bamtrain::config_entry("model.norm");
  CHECK(
      entry.starts_with("## model.norm: normalization layers\n\n"
                        "    \"model\": {\"norm\": {\"kind\": \"layernorm\", \"eps\": 1e-5}}\n\n"
                        "- `model.norm.kind` ("));
  CHECK(entry.find("- `model.norm.eps` (") != std::string::npos);
  CHECK(entry.find("model.mlp") == std::string::npos);
  const std::string model = bamtrain::config_entry("model");
  CHECK(model.find("\n## model.mlp: ") != std::string::npos);
  CHECK(model.find("optimizer.") == std::string::npos);
}

TEST_CASE("the entry of a mechanism's option names the mechanisms that have it") {
  const std::string entry = bamtrain::config_entry("model.attention.prior.theta");
  CHECK(entry.starts_with("With rope:\n- `model.attention.prior.theta` (number;"));
  CHECK(entry.find("With rope_local:\n") != std::string::npos);
  CHECK(entry.find("alibi") == std::string::npos);
  CHECK(bamtrain::config_entry("eval.tasks.every").starts_with("- `eval.tasks[...].every` ("));
  for (const char* unknown : {"", "model.widht", "model.attention.prior.thet", "model.width.x",
                              "model.attention.prior.theta.x", "foo"}) {
    INFO(unknown);
    CHECK(bamtrain::config_entry(unknown).empty());
  }
}

TEST_CASE("every mechanism and task has a page, which says how to choose it, within 80 columns") {
  for (const std::string& name : bamtrain::mechanism_names()) {
    const std::string page = bamtrain::mechanism_page(name);
    INFO(page);
    CHECK(page.starts_with("# " + name + ": "));
    CHECK(page.find("=" + name + ",") != std::string::npos);
    CHECK(longest_line(page) <= 80);
  }
  for (const std::string& name : bamtrain::every_task_name()) {
    const std::string page = bamtrain::mechanism_page(name);
    INFO(page);
    CHECK(page.starts_with("# " + name + ": task "));
    CHECK(longest_line(page) <= 80);
  }
  const std::string rope = bamtrain::mechanism_page("rope");
  CHECK(rope.find("- `theta` (number;") != std::string::npos);
  CHECK(rope.find("default `10000.0`") != std::string::npos);
  CHECK(bamtrain::mechanism_page("nope").find("It has no options.") != std::string::npos);
  // One that is trained, and one on text.
  const std::string passkey = bamtrain::mechanism_page("passkey");
  CHECK(passkey.find("# passkey: task to train on\n") != std::string::npos);
  CHECK(passkey.find("\n# passkey: task on text, to measure\n") != std::string::npos);
  CHECK(bamtrain::mechanism_page("ropes").empty());
}
