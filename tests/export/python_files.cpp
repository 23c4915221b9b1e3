// The embedded Python files match the source byte for byte.

#include "export/python_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "catch.h"
#include "normalizers/registry.h"
#include "priors/registry.h"
#include "scales/registry.h"

TEST_CASE("every Python file of the source is in the program, byte for byte") {
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  REQUIRE(source != nullptr);
  std::map<std::string, std::string> embedded;
  for (const bamtrain::EmbeddedFile& file : bamtrain::python_files()) {
    embedded[std::string(file.name)] = file.text;
  }
  size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(source) + "/src/export/huggingface")) {
    if (entry.path().extension() != ".py") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::string name = entry.path().filename().string();
    INFO(name);
    CHECK(text.size() > 1000);
    CHECK((embedded.count(name) == 1 && embedded[name] == text));
    ++count;
  }
  CHECK(count == 2);
  CHECK(embedded.size() == count);
}

TEST_CASE("the modeling file knows every prior, scale and normalizer by name") {
  std::string modeling;
  for (const bamtrain::EmbeddedFile& file : bamtrain::python_files()) {
    if (file.name == "modeling_bamtrain.py") modeling = file.text;
  }
  const auto knows = [&](const std::string& name) {
    INFO(name);
    CHECK(modeling.find("\"" + name + "\"") != std::string::npos);
  };
  for (const bamtrain::PriorInfo& prior : bamtrain::all_priors()) knows(prior.name);
  for (const bamtrain::ScaleInfo& scale : bamtrain::all_scales()) knows(scale.name);
  for (const bamtrain::NormalizerInfo& n : bamtrain::all_normalizers()) knows(n.name);
}
