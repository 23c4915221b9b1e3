// Weights in one file, or in several with an index: what is written, and which folders are refused.

#include "checkpoint/weights_folder.h"

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "catch.h"
#include "core/durable_file.h"
#include "folder.h"

namespace bamtrain {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kIndex = "model.safetensors.index.json";

/// Tensors a, b, c and d of 4, 8, 12 and 16 bytes.
struct Tensors {
  std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  std::vector<NamedTensor> list = {{"a", Dtype::f32, {1}, &values[0]},
                                   {"b", Dtype::f32, {2, 1}, &values[1]},
                                   {"c", Dtype::f32, {3}, &values[3]},
                                   {"d", Dtype::f32, {2, 2}, &values[6]}};
};

std::vector<float> values_of(const WeightsFolder& weights, const std::string& name) {
  const WeightsFolder::Place place = weights.tensors().at(name);
  std::vector<float> values(static_cast<size_t>(place.entry->bytes) / sizeof(float));
  place.file->read(*place.entry, values.data());
  return values;
}

/// Checks that the tensors of `folder` are those that were written.
void check_all(const std::string& folder) {
  const Tensors written;
  const WeightsFolder weights = WeightsFolder::open(folder);
  REQUIRE(weights.tensors().size() == 4);
  for (const NamedTensor& t : written.list) {
    const auto* first = static_cast<const float*>(t.data);
    const std::vector<float> found = values_of(weights, t.name);
    CHECK(weights.tensors().at(t.name).entry->shape == t.shape);
    CHECK(found == std::vector<float>(first, first + found.size()));
  }
}

/// The index of a folder of shards: "a" and "b" are in the first shard, "c" and "d" in others.
Json read_index(const TemporaryFolder& folder) { return Json::parse(read_bytes(folder / kIndex)); }

/// The message with which `folder` is refused when its index is `index`.
std::string refused(const TemporaryFolder& folder, const Json& index) {
  write_bytes(folder / kIndex, index.dump());
  return error_of(ExitCode::checkpoint, [&] { WeightsFolder::open(folder.path()); });
}

}  // namespace

TEST_CASE("what fits into one file is one") {
  const TemporaryFolder folder;
  write_weights(folder.path(), Tensors().list, 40);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"model.safetensors"});
  check_all(folder.path());
}

TEST_CASE("what does not is cut into full shards with an index of every tensor") {
  struct Case {
    int64_t limit;
    std::vector<std::string> expected;  // shards of a, b, c, d
  };
  for (const auto& [limit, expected] : std::vector<Case>{{39, {"1", "1", "1", "2"}},
                                                         {24, {"1", "1", "1", "2"}},
                                                         {23, {"1", "1", "2", "3"}},
                                                         {12, {"1", "1", "2", "3"}},
                                                         {1, {"1", "2", "3", "4"}}}) {
    INFO(limit);
    const TemporaryFolder folder;
    write_weights(folder.path(), Tensors().list, limit);
    const Json index = read_index(folder);
    CHECK(index["metadata"] == Json{{"total_size", 40}});
    CHECK(index["weight_map"].size() == 4);
    for (size_t i = 0; i < 4; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      CHECK(index["weight_map"][name] ==
            "model-0000" + expected[i] + "-of-0000" + expected[3] + ".safetensors");
    }
    CHECK(names_in(folder.path()).size() == static_cast<size_t>(std::stoi(expected[3])) + 1);
    check_all(folder.path());
  }
}

TEST_CASE("each tensor's SHA-256 lies in its file") {
  const TemporaryFolder folder;
  write_weights(folder.path(), Tensors().list, 39);
  const auto metadata =
      SafetensorsFile::open(folder / "model-00001-of-00002.safetensors").metadata();
  CHECK(metadata.size() == 4);
  CHECK(metadata.at("format") == "pt");
  // sha256sum of bytes 00 00 80 3f.
  CHECK(metadata.at("sha256:a") ==
        "e00e5eb9444182f352323374ef4e08ebcb784725fdd4fd612d7730540b3e0c8c");
}

TEST_CASE("a tensor with another digest than its file says is refused by its name") {
  const TemporaryFolder folder;
  write_weights(folder.path(), Tensors().list, 40);
  std::string bytes = read_bytes(folder / "model.safetensors");
  bytes[bytes.size() - 1] ^= 1;  // in d, the last by name
  write_bytes(folder / "model.safetensors", bytes);
  const WeightsFolder weights = WeightsFolder::open(folder.path());
  CHECK(values_of(weights, "c").size() == 3);
  const std::string message = error_of(ExitCode::checkpoint, [&] { values_of(weights, "d"); });
  CHECK(contains(message, "model.safetensors: tensor \"d\": expected SHA-256 "));
  CHECK(contains(message, "; restore the file from a copy"));
}

TEST_CASE("no flipped bit of a file of weights goes unnoticed") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  write_weights(folder.path(), Tensors().list, 40);
  const std::string good = read_bytes(path);
  int refused = 0, harmless = 0;
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    write_bytes(path, bytes);
    try {
      check_all(folder.path());
      ++harmless;
    } catch (const Error& e) {
      CHECK(e.code() == ExitCode::checkpoint);
      ++refused;
    }
  }
  // Only flips in "format": "pt" may be harmless: no tensor depends on it.
  CHECK(harmless <= 8 * 8);
  CHECK(refused + harmless == static_cast<int>(8 * good.size()));
}

TEST_CASE("digests of some tensors and not of others are refused") {
  const TemporaryFolder folder;
  const Tensors tensors;
  std::map<std::string, std::string> metadata = digests_of(tensors.list);
  const auto message = [&] {
    write_safetensors(folder / "model.safetensors", tensors.list, metadata);
    return error_of(ExitCode::checkpoint, [&] { WeightsFolder::open(folder.path()); });
  };
  CHECK(message().empty());
  const std::string of_b = metadata.at("sha256:b");
  metadata.erase("sha256:b");
  CHECK(contains(message(), "tensor \"b\": missing (its SHA-256"));
  metadata["sha256:b"] = of_b;
  metadata["sha256:e"] = of_b;
  CHECK(contains(message(), "tensor \"e\": missing (the metadata have its SHA-256"));
  // No digests at all: a file of another program.
  metadata.clear();
  CHECK(message().empty());
  check_all(folder.path());
}

TEST_CASE("a folder without weights, or with two forms of them, is refused") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& path) {
    return error_of(ExitCode::checkpoint, [&] { WeightsFolder::open(path); });
  };
  CHECK(contains(message(folder.path()), "neither"));
  CHECK(contains(message(folder / "absent"), "no such folder"));
  write_bytes(folder / "file", "");
  CHECK(contains(message(folder / "file"), "found a file"));
  write_weights(folder.path(), Tensors().list, 40);
  write_bytes(folder / kIndex, "{}");
  CHECK(contains(message(folder.path()), "both"));
}

TEST_CASE("an index that leads out of the folder is refused before any file is opened") {
  const TemporaryFolder folder;
  write_weights(folder.path(), Tensors().list, 12);
  const Json good = read_index(folder);
  fs::create_directory(folder / "below");
  for (const std::string& name :
       {std::string("../model-00001-of-00003.safetensors"), std::string("/etc/passwd"),
        std::string("below/x.safetensors"), std::string("..\\x"), std::string(".."),
        std::string("."), std::string(), std::string("a\0b", 3)}) {
    Json index = good;
    index["weight_map"]["a"] = name;
    INFO(name);
    CHECK(contains(refused(folder, index), "the name of a file in the same folder"));
  }
}

TEST_CASE("an index and files that disagree are refused, naming the tensor") {
  const TemporaryFolder folder;
  write_weights(folder.path(), Tensors().list, 12);
  const Json good = read_index(folder);
  Json index = good;
  index["weight_map"].erase("b");
  CHECK(contains(refused(folder, index), "found tensor \"b\"; "));
  index = good;
  index["weight_map"]["e"] = good["weight_map"]["a"];
  CHECK(contains(refused(folder, index), "no tensor \"e\", which "));
  index = good;
  index["weight_map"]["a"] = good["weight_map"]["d"];
  CHECK(!refused(folder, index).empty());
  index["weight_map"]["a"] = "absent.safetensors";
  CHECK(contains(refused(folder, index), "absent.safetensors"));
  for (const char* text : {"[]", "{}", R"({"weight_map": {}})", R"({"weight_map": {"a": 1}})"}) {
    INFO(text);
    CHECK(!refused(folder, Json::parse(text)).empty());
  }
  write_bytes(folder / kIndex, "{");
  CHECK(!error_of(ExitCode::checkpoint, [&] { WeightsFolder::open(folder.path()); }).empty());
  write_bytes(folder / kIndex, good.dump());
  check_all(folder.path());
}

TEST_CASE("a disk that is full while shards are written is an error of the file") {
  const TemporaryFolder folder;
  set_file_fault([](FileOp op, const std::string& path, const std::string&) {
    return op == FileOp::write && path.find("00002-of") != std::string::npos ? ENOSPC : 0;
  });
  const std::string message =
      error_of(ExitCode::io, [&] { write_weights(folder.path(), Tensors().list, 12); });
  set_file_fault(nullptr);
  CHECK(contains(message, "model-00002-of-00003.safetensors"));
}

}  // namespace bamtrain
