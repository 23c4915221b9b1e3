#include "config/document.h"

#include <filesystem>
#include <fstream>

#include "fixture.h"

using bamtrain::read_run_config;
using bamtrain::resolved_json;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// A folder of configurations, removed at the end of the test.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "bamtrain_bases_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }

  /// Writes a configuration and returns its path.
  std::string write(const std::string& name, const json& config) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name)) << config.dump();
    return path(name);
  }

 private:
  std::string path_;
};

/// The message of the Error (config) that reading the file throws.
std::string refusal(const std::string& file, const std::vector<std::string>& overrides = {}) {
  try {
    read_run_config(file, overrides);
  } catch (const bamtrain::Error& e) {
    CHECK(e.code() == bamtrain::ExitCode::config);
    return e.what();
  }
  return "";
}

json valid() { return json::parse(kValid); }

}  // namespace

TEST_CASE("a configuration has its base's keys where it has none") {
  const Folder folder;
  json base = valid();
  base["name"] = "parent";
  base["optimizer"] = {{"lr", 2e-3}, {"lr_multipliers", {{"theta_beta", 0.5}}}};
  base["data"]["val"] = "v";
  base["eval"] = {{"lengths", {16, 32, 64}}};
  folder.write("base.json", base);
  const std::string child = folder.write(
      "sub/child.json", {{"base", "../base.json"},
                         {"out_dir", "child"},
                         {"model", {{"heads", 6}, {"attention", {{"prior", {{"name", "bam"}}}}}}},
                         {"optimizer", {{"lr_multipliers", {{"theta_alpha", 2}}}}},
                         {"eval", {{"lengths", {8}}}}});
  // The same by hand: objects merged, the list and the mechanism replaced whole.
  json merged = base;
  merged.erase("name");
  merged["out_dir"] = "child";
  merged["model"]["heads"] = 6;
  merged["model"]["attention"]["prior"] = {{"name", "bam"}};
  merged["optimizer"]["lr_multipliers"] = {{"theta_beta", 0.5}, {"theta_alpha", 2}};
  merged["eval"]["lengths"] = {8};
  CHECK(resolved_json(read_run_config(child, {})) == resolved_json(read_config(merged)));
  CHECK(read_run_config(child, {"model.width=96"}).model.width == 96);
}

TEST_CASE("a base may have a base, up to eight files") {
  const Folder folder;
  folder.write("0.json", valid());
  std::string file;
  for (int i = 1; i < bamtrain::kMostConfigFiles; ++i) {
    file = folder.write(std::to_string(i) + ".json", {{"base", std::to_string(i - 1) + ".json"},
                                                      {"out_dir", "o"},
                                                      {"train", {{"steps", 100 * i}}}});
  }
  CHECK(read_run_config(file, {}).train.steps == 700);
  const std::string ninth = folder.write("8.json", {{"base", "7.json"}, {"out_dir", "o"}});
  check_mentions(refusal(ninth), {"1.json: base: expected at most 8 files", "0.json"});
}

TEST_CASE("a base that is missing, or its own, or no configuration is refused with its file") {
  const Folder folder;
  const auto child = [&](const std::string& name, const json& base) {
    return folder.write(name, {{"base", base}, {"out_dir", "o"}});
  };
  check_mentions(refusal(child("a.json", "none.json")),
                 {"a.json: base: ", "none.json: no such file", "relative to the folder of"});
  check_mentions(refusal(child("self.json", "self.json")),
                 {"self.json: base:", "is this file itself"});
  child("x.json", "y.json");
  child("y.json", "z.json");
  check_mentions(refusal(child("z.json", "x.json")), {"y.json: base:", "its own base"});
  check_mentions(refusal(child("n.json", 3)), {"n.json: base: expected the path", "number 3"});
  check_mentions(refusal(child("e.json", "")), {"e.json: base: expected the path", "\"\""});
  folder.write("list.json", json::array());
  check_mentions(refusal(child("l.json", "list.json")), {"list.json: expected an object"});
}

TEST_CASE("a base is found from where a symbolic link leads") {
  const Folder folder;
  json base = valid();
  base["seed"] = 1;
  folder.write("real/base.json", base);
  base["seed"] = 777;
  folder.write("base.json", base);  // beside the link
  folder.write("real/configs/v.json", {{"base", "../base.json"}, {"out_dir", "o"}});
  fs::create_directory_symlink(folder.path("real/configs"), folder.path("link"));
  CHECK(read_run_config(folder.path("link/v.json"), {}).seed == 1);
}

TEST_CASE("files have a version only if their base has one") {
  const Folder folder;
  json base = valid();
  base.erase("config_version");
  folder.write("base.json", base);
  const std::string plain = folder.write("plain.json", {{"base", "base.json"}, {"out_dir", "o"}});
  CHECK_FALSE(read_run_config(plain, {}).names_version);
  CHECK(read_run_config(plain, {}, 1).config_version == 1);
  const std::string own =
      folder.write("own.json", {{"base", "base.json"}, {"out_dir", "o"}, {"config_version", 3}});
  check_mentions(refusal(own), {"own.json: config_version: expected none, as in", "base.json"});
}

TEST_CASE("the version of a base holds for the files on it") {
  const Folder folder;
  json first = valid();
  first["config_version"] = 1;
  first["data"]["val"] = "v";
  first["eval"] = {{"lengths", {16}}, {"insist", true}};
  folder.write("base.json", first);
  const std::string plain = folder.write("plain.json", {{"base", "base.json"}, {"out_dir", "o"}});
  CHECK(read_run_config(plain, {}).config_version == 1);
  const std::string same = folder.write("same.json", {{"base", "base.json"},
                                                      {"out_dir", "o"},
                                                      {"config_version", 1},
                                                      {"eval", {{"insist", false}}}});
  CHECK_FALSE(read_run_config(same, {}).eval.require_all_lengths);
  const std::string other =
      folder.write("other.json", {{"base", "base.json"}, {"out_dir", "o"}, {"config_version", 3}});
  check_mentions(refusal(other), {"other.json: config_version: expected 1, as in",
                                  "base.json, found 3; remove it"});
}

TEST_CASE("a run's own name and folder do not come from a base") {
  const Folder folder;
  json base = valid();
  base["name"] = "parent";
  folder.write("base.json", base);
  check_mentions(refusal(folder.write("a.json", {{"base", "base.json"}})),
                 {"a.json: out_dir: missing"});
  const std::string b = folder.write("b.json", {{"base", "base.json"}, {"out_dir", "o"}});
  CHECK(read_run_config(b, {}).name.empty());
}

TEST_CASE("errors name the file that wrote the key") {
  const Folder folder;
  json base = valid();
  base["optimizer"] = {{"lr", -1}};
  base["data"]["val"] = 3;
  folder.write("base.json", base);
  const auto child = [&](json config) {
    config["base"] = "base.json";
    config["out_dir"] = "o";
    return folder.write("child.json", config);
  };
  check_mentions(refusal(child({{"data", {{"val", "v"}}}})), {"base.json: optimizer.lr:"});
  check_mentions(refusal(child({{"optimizer", {{"lr", 1}}}})), {"base.json: data.val:"});
  check_mentions(refusal(child({{"optimizer", {{"lr", -2}}}, {"data", {{"val", "v"}}}})),
                 {"child.json: optimizer.lr:", "-2"});
  check_mentions(refusal(child({{"data", {{"val", "v"}}}}), {"optimizer.lr=-3"}),
                 {"--set optimizer.lr=-3: expected"});
}

TEST_CASE("only a file has a base") {
  check_mentions(message(kValid, {"base=x.json"}),
                 {"--set base=x.json: unknown key", "in the configuration's file"});
  check_mentions(message(replaced("\"out_dir\"", "\"base\": \"x\", \"out_dir\"")),
                 {"run.json: base: unknown key"});
}

TEST_CASE("no shipped configuration repeats a value of its base") {
  const auto check = [](const json& base, const json& own, const std::string& path,
                        const auto& self) -> void {
    for (const auto& [key, value] : own.items()) {
      const std::string at = path.empty() ? key : path + "." + key;
      INFO(at);
      if (!base.contains(key)) continue;
      CHECK(base[key] != value);
      if (value.is_object() && base[key].is_object() && !value.contains("name") &&
          !value.contains("task")) {
        self(base[key], value, at, self);
      }
    }
  };
  int with_base = 0;
  for (const char* folder : {"configs", "configs/tasks"}) {
    for (const fs::path& file : shipped_configs(folder)) {
      INFO(file.string());
      json own = json::parse(std::ifstream(file));
      if (!own.contains("base")) continue;
      ++with_base;
      const fs::path base = file.parent_path() / own["base"].get<std::string>();
      const bamtrain::ConfigDocument document = bamtrain::read_config_document(base.string());
      own.erase("base");
      CHECK(own.contains("name"));
      CHECK(own.contains("out_dir"));
      CHECK_FALSE(own.contains("config_version"));
      check(document.root, own, "", check);
    }
  }
  CHECK(with_base > 40);
}
