#include "checkpoint/safetensors.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "core/sha256.h"
#include "folder.h"

namespace bamtrain {
namespace {

std::string golden(const std::string& name) {
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  return std::string(source ? source : ".") + "/tests/golden/" + name;
}

struct Described {
  std::string name;
  Dtype dtype;
  std::vector<int64_t> shape;
};

/// The tensors of scripts/golden/safetensors_golden.py. A tensor's index is t in `value`.
const std::vector<Described> kGolden = {
    {"model.layers.0.self_attn.q_proj.weight", Dtype::f32, {3, 5}},
    {"model.norm.weight", Dtype::bf16, {7}},
    {"moments", Dtype::f64, {2, 1, 3}},
    {"steps", Dtype::i32, {4}},
    {"scalar", Dtype::f32, {}},
    {"nothing", Dtype::f32, {0, 9}},
    {"a \"quoted\" \u03b8", Dtype::bf16, {1, 1}}};
const std::map<std::string, std::string> kGoldenMetadata = {{"format", "pt"},
                                                            {"note", "\u03b1 \\ \"\n"}};

int64_t elements(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

double value(size_t t, int64_t i) {
  return static_cast<double>(t) + static_cast<double>(i) / 4 - 1;
}

void put(Dtype dtype, size_t t, int64_t i, char* out) {
  const double v = value(t, i);
  if (dtype == Dtype::f64) {
    std::memcpy(out, &v, 8);
  } else if (dtype == Dtype::i32) {
    const int32_t n = static_cast<int32_t>(t) - static_cast<int32_t>(i);
    std::memcpy(out, &n, 4);
  } else {
    const float f = static_cast<float>(v);
    const size_t size = size_of(dtype);  // bf16: the upper half of the float
    std::memcpy(out, reinterpret_cast<const char*>(&f) + 4 - size, size);
  }
}

struct Memory {
  std::vector<NamedTensor> tensors;
  std::vector<std::string> bytes;
};

/// Memory for the golden tensors, with their values if `filled`, else all bits set.
Memory golden_memory(bool filled) {
  Memory m;
  m.bytes.resize(kGolden.size());
  for (size_t t = 0; t < kGolden.size(); ++t) {
    const Described& g = kGolden[t];
    const size_t size = size_of(g.dtype);
    m.bytes[t].assign(static_cast<size_t>(elements(g.shape)) * size, '\xFF');
    for (int64_t i = 0; filled && i < elements(g.shape); ++i) {
      put(g.dtype, t, i, m.bytes[t].data() + static_cast<size_t>(i) * size);
    }
    m.tensors.push_back({g.name, g.dtype, g.shape, m.bytes[t].data()});
  }
  return m;
}

TEST_CASE("safetensors files of an independent program are read, whatever their layout") {
  for (const char* name : {"small.safetensors", "foreign.safetensors"}) {
    INFO(name);
    const SafetensorsFile file = SafetensorsFile::open(golden(name));
    CHECK(file.metadata() == kGoldenMetadata);
    REQUIRE(file.tensors().size() == kGolden.size());
    const Memory found = golden_memory(false);
    read_tensors(file, found.tensors);
    CHECK(found.bytes == golden_memory(true).bytes);
    for (const Described& g : kGolden) {
      const SafetensorsFile::Entry* entry = file.find(g.name);
      REQUIRE(entry != nullptr);
      CHECK(entry->name == g.name);
      CHECK(entry->dtype == g.dtype);
      CHECK(entry->shape == g.shape);
    }
    CHECK(file.find("moment") == nullptr);
    CHECK(file.find("zzz") == nullptr);
  }
}

TEST_CASE("safetensors files are written byte for byte as an independent program writes them") {
  const TemporaryFolder folder;
  const std::string expected = read_bytes(golden("small.safetensors"));
  Memory memory = golden_memory(true);
  for (int permutation = 0; permutation < 5; ++permutation) {
    const FileDigest digest = write_safetensors(folder / "file", memory.tensors, kGoldenMetadata);
    const std::string written = read_bytes(folder / "file");
    CHECK(written == expected);
    CHECK(digest.bytes == static_cast<int64_t>(expected.size()));
    CHECK(digest.sha256 == sha256_hex(expected));
    std::rotate(memory.tensors.begin(), memory.tensors.begin() + 3, memory.tensors.end());
  }
}

/// Parses the format independently of the code under test.
std::map<std::string, std::string> parse(const std::string& file) {
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length * 256 + static_cast<unsigned char>(file.at(i));
  const auto header = nlohmann::json::parse(file.substr(8, length));
  std::map<std::string, std::string> tensors;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const size_t begin = tensor["data_offsets"][0], end = tensor["data_offsets"][1];
    CHECK((8 + length + begin) % (tensor["dtype"] == "F64" ? 8 : 2) == 0);
    tensors[name + " " + tensor["dtype"].get<std::string>() + tensor["shape"].dump()] =
        file.substr(8 + length + begin, end - begin);
  }
  CHECK((8 + length) % 8 == 0);
  return tensors;
}

TEST_CASE("what is written has the tensors' names, dtypes, shapes and bytes, aligned") {
  const TemporaryFolder folder;
  std::string odd = "ab", real = "01234567", text = "0123456789abcdef";
  write_safetensors(folder / "file",
                    {{"odd", Dtype::bf16, {1}, odd.data()},
                     {"z", Dtype::f64, {1, 2}, text.data()},
                     {"y", Dtype::f32, {2, 1}, real.data()}},
                    {});
  const std::map<std::string, std::string> expected = {
      {"odd BF16[1]", odd}, {"z F64[1,2]", text}, {"y F32[2,1]", real}};
  CHECK(parse(read_bytes(folder / "file")) == expected);
}

TEST_CASE("a file without tensors can be written and read") {
  const TemporaryFolder folder;
  write_safetensors(folder / "file", {}, {});
  CHECK(read_bytes(folder / "file") == std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  CHECK(SafetensorsFile::open(folder / "file").tensors().empty());
}

TEST_CASE("a tensor larger than one system call writes survives the way to disk and back") {
  const TemporaryFolder folder;
  std::vector<int32_t> numbers((20 << 20) / 4 + 3), found(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i * 2654435761u);
  const std::vector<int64_t> shape = {static_cast<int64_t>(numbers.size())};
  const FileDigest digest =
      write_safetensors(folder / "file", {{"n", Dtype::i32, shape, numbers.data()}}, {});
  CHECK(digest.sha256 == sha256_file(folder / "file"));
  read_tensors(SafetensorsFile::open(folder / "file"), {{"n", Dtype::i32, shape, found.data()}});
  CHECK(found == numbers);
}

TEST_CASE("reading names the tensor that is missing, unexpected, or of other shape or dtype") {
  const SafetensorsFile file = SafetensorsFile::open(golden("small.safetensors"));
  Memory memory = golden_memory(false);
  const auto untouched = memory.bytes;
  const auto message = [&] {
    return error_of(ExitCode::checkpoint, [&] { read_tensors(file, memory.tensors); });
  };
  std::vector<std::string> expected;
  SECTION("missing") {
    memory.tensors.push_back({"model.extra", Dtype::f32, {2, 8}, nullptr});
    expected = {"model.extra", "missing ((2, 8) F32)"};
  }
  SECTION("unexpected") {
    memory.tensors.erase(memory.tensors.begin() + 2);
    expected = {"\"moments\": unexpected tensor, (2, 1, 3) F64"};
  }
  SECTION("another shape of the same size") {
    memory.tensors[0].shape = {5, 3};
    expected = {"q_proj", "(5, 3) F32", "(3, 5) F32"};
  }
  SECTION("another dtype of the same size") {
    memory.tensors[3].dtype = Dtype::f32;
    expected = {"\"steps\"", "(4) F32", "(4) I32"};
  }
  const std::string found = message();
  INFO(found);
  expected.push_back("small.safetensors");
  for (const std::string& part : expected) CHECK(contains(found, part));
  CHECK(memory.bytes == untouched);
}

TEST_CASE("names that the format cannot hold twice or at all are refused before writing") {
  const TemporaryFolder folder;
  float x = 0;
  const auto message = [&](const std::vector<NamedTensor>& tensors) {
    return error_of(ExitCode::internal, [&] {
      write_safetensors(folder / "file", tensors, {{"format", "pt"}});
    });
  };
  CHECK(message({{"a", Dtype::f32, {1}, &x}, {"a", Dtype::f32, {1}, &x}}) != "");
  CHECK(message({{"__metadata__", Dtype::f32, {1}, &x}}) != "");
  CHECK(message({{"", Dtype::f32, {1}, &x}}) != "");
  CHECK(message({{"\xff", Dtype::f32, {1}, &x}}) != "");
  CHECK(message({{"a", Dtype::f32, {-1}, &x}}) != "");
  CHECK(message({{"a", Dtype::f32, {int64_t{1} << 62, 4}, &x}}) != "");
  CHECK(names_in(folder.path()).empty());
}

}  // namespace
}  // namespace bamtrain
