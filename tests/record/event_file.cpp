// Event files, decoded by an independent reader.

#include "record/event_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include "catch.h"
#include "core/error.h"
#include "train/bound_by_permissions.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;

/// CRC-32C by its definition, bit by bit, then rotated and offset as in TFRecord.
uint32_t masked_checksum(const std::string& bytes) {
  uint64_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc % 2 == 1 ? crc / 2 ^ 0x82F63B78 : crc / 2;
  }
  crc ^= 0xFFFFFFFF;
  return static_cast<uint32_t>(crc / 32768 + crc * 131072 + 0xA282EAD8);
}

uint64_t from_little_endian(const std::string& bytes, size_t at, size_t width) {
  REQUIRE(at + width <= bytes.size());
  uint64_t n = 0;
  for (size_t i = width; i-- > 0;) n = n * 256 + static_cast<unsigned char>(bytes[at + i]);
  return n;
}

/// The data of a file's records. Checks every checksum, and that nothing is left over.
std::vector<std::string> records(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string bytes = text.str();
  std::vector<std::string> out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = from_little_endian(bytes, at, 8);
    REQUIRE(from_little_endian(bytes, at + 8, 4) == masked_checksum(bytes.substr(at, 8)));
    REQUIRE(at + 16 + length <= bytes.size());
    out.push_back(bytes.substr(at + 12, length));
    REQUIRE(from_little_endian(bytes, at + 12 + length, 4) == masked_checksum(out.back()));
    at += 16 + length;
  }
  return out;
}

/// The fields of a protocol buffer by number, as bits or as bytes.
struct Message {
  std::multimap<uint64_t, uint64_t> numbers;
  std::multimap<uint64_t, std::string> bytes;

  explicit Message(const std::string& data) {
    for (size_t at = 0; at < data.size();) {
      const auto varint = [&] {
        uint64_t n = 0;
        for (uint64_t factor = 1;; factor *= 128) {
          const uint64_t byte = from_little_endian(data, at++, 1);
          n += byte % 128 * factor;
          if (byte < 128) return n;
        }
      };
      const uint64_t key = varint(), field = key / 8;
      switch (key % 8) {
        case 0:
          numbers.emplace(field, varint());
          break;
        case 1:
          numbers.emplace(field, from_little_endian(data, at, 8));
          at += 8;
          break;
        case 2: {
          const uint64_t length = varint();
          REQUIRE(at + length <= data.size());
          bytes.emplace(field, data.substr(at, length));
          at += length;
          break;
        }
        case 5:
          numbers.emplace(field, from_little_endian(data, at, 4));
          at += 4;
          break;
        default:
          FAIL("wire type " << key % 8);
      }
    }
  }

  uint64_t number(uint64_t field) const {
    REQUIRE(numbers.count(field) == 1);
    return numbers.find(field)->second;
  }
  std::string text(uint64_t field) const {
    REQUIRE(bytes.count(field) == 1);
    return bytes.find(field)->second;
  }
  double real(uint64_t field) const {
    const uint64_t bits = number(field);
    double x;
    std::memcpy(&x, &bits, 8);
    return x;
  }
  float single(uint64_t field) const {
    const auto bits = static_cast<uint32_t>(number(field));
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
  }
  std::vector<double> reals(uint64_t field) const {
    const std::string packed = text(field);
    std::vector<double> out(packed.size() / 8);
    REQUIRE(packed.size() == 8 * out.size());
    std::memcpy(out.data(), packed.data(), packed.size());
    return out;
  }
};

/// The content of a folder of event files, in the order of their names.
struct Events {
  std::vector<uint64_t> starts;  // steps of SessionLog.START
  std::map<std::string, std::vector<std::pair<int64_t, float>>> scalars;
  std::map<std::string, std::vector<std::pair<int64_t, Message>>> histograms;

  explicit Events(const std::string& folder) {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) {
      INFO(path);
      CHECK(path.filename().string().find(".tfevents.") != std::string::npos);
      const std::vector<std::string> data = records(path);
      REQUIRE(!data.empty());
      CHECK(Message(data[0]).text(3) == "brain.Event:2");
      for (const std::string& d : data) add(Message(d));
    }
  }

 private:
  void add(const Message& event) {
    CHECK(event.real(1) > 1.6e9);  // seconds since 1970: after September 2020
    const auto step = event.number(2);
    if (event.bytes.count(7) == 1) {
      CHECK(Message(event.text(7)).number(1) == 1);
      starts.push_back(step);
    }
    if (event.bytes.count(5) == 0) return;
    const Message summary(event.text(5));
    for (auto [v, end] = summary.bytes.equal_range(1); v != end; ++v) {
      const Message value(v->second);
      const std::string tag = value.text(1);
      if (value.bytes.count(5) == 1) {
        histograms[tag].emplace_back(step, Message(value.text(5)));
      } else {
        scalars[tag].emplace_back(step, value.single(2));
      }
    }
  }
};

using Points = std::vector<std::pair<int64_t, float>>;

std::string file(const std::string& folder, int number) {
  return folder + "/events.out.tfevents.00000" + std::to_string(number);
}

}  // namespace

TEST_CASE("scalars come back with their steps, tags and bits") {
  const Workplace w;
  const int64_t large = int64_t{1} << 40;
  {
    EventFile events(w.path("board"), 0);
    const Scalar two[] = {{"loss", 10.4551f}, {"lr", 1e-38f}};
    events.write_scalars(1, two);
    const Scalar one[] = {{"loss", -0.1f}};
    events.write_scalars(300, one);
    events.write_scalars(large, one);
    const std::string long_tag(1000, 'x');
    const Scalar named[] = {{long_tag, 1}};
    events.write_scalars(large, named);
  }
  const Events found(w.path("board"));
  CHECK(found.starts == std::vector<uint64_t>{1});
  CHECK(found.scalars.at("loss") == Points{{1, 10.4551f}, {300, -0.1f}, {large, -0.1f}});
  CHECK(found.scalars.at("lr") == Points{{1, 1e-38f}});
  CHECK(found.scalars.at(std::string(1000, 'x')) == Points{{large, 1.0f}});
}

TEST_CASE("a histogram counts every finite value once, in thirty buckets of equal width") {
  const Workplace w;
  {
    EventFile events(w.path("board"), 0);
    std::vector<float> ramp;
    for (int i = 0; i <= 60; ++i) ramp.push_back(0.5f * static_cast<float>(i) - 3);
    events.write_histogram(7, "ramp", ramp);
    events.write_histogram(7, "equal", std::vector<float>(5, -2.5f));
    events.write_histogram(7, "damaged", std::vector<float>{NAN, 1, INFINITY, 3, -INFINITY});
    events.write_histogram(7, "empty", std::vector<float>());
  }
  const Events found(w.path("board"));
  const auto only = [&](const std::string& tag) {
    REQUIRE(found.histograms.at(tag).size() == 1);
    CHECK(found.histograms.at(tag)[0].first == 7);
    return found.histograms.at(tag)[0].second;
  };
  // -3, -2.5, ..., 27: a bucket has width 1 and holds two values; the last one also holds 27.
  const Message ramp = only("ramp");
  CHECK(ramp.real(1) == -3);
  CHECK(ramp.real(2) == 27);
  CHECK(ramp.real(3) == 61);
  CHECK(ramp.real(4) == 61 * 12);
  CHECK(ramp.real(5) == 61 * 144 + 0.25 * 2 * (30 * 31 * 61 / 6));  // around the mean, 12
  std::vector<double> limits, counts(30, 2);
  for (int b = 1; b <= 30; ++b) limits.push_back(b - 3);
  counts.back() = 3;
  CHECK(ramp.reals(6) == limits);
  CHECK(ramp.reals(7) == counts);

  const Message equal = only("equal");
  CHECK(equal.real(1) == -2.5);
  CHECK(equal.real(2) == -2.5);
  CHECK(equal.reals(6) == std::vector<double>{-2.5});
  CHECK(equal.reals(7) == std::vector<double>{5});

  const Message damaged = only("damaged");
  CHECK(damaged.real(1) == 1);
  CHECK(damaged.real(2) == 3);
  CHECK(damaged.real(3) == 2);
  CHECK(only("empty").real(3) == 0);
}

TEST_CASE("files are cut back to the step that a run continues after, a broken record included") {
  const Workplace w;
  const std::string folder = w.path("board");
  const auto steps = [&](int64_t after, int64_t last) {
    EventFile events(folder, after);
    for (int64_t step = after + 1; step <= last; ++step) {
      const Scalar loss[] = {{"loss", static_cast<float>(step)}};
      events.write_scalars(step, loss);
      if (step % 2 == 0) events.write_histogram(step, "theta", std::vector<float>{1, 2});
    }
  };
  const auto whole = [&](int64_t last) {
    const Events found(folder);
    Points truth;
    for (int64_t step = 1; step <= last; ++step) truth.emplace_back(step, step);
    CHECK(found.scalars.at("loss") == truth);
    CHECK(found.histograms.at("theta").size() == static_cast<size_t>(last / 2));
    return found.starts;
  };
  steps(0, 7);
  std::string broken;
  SECTION("with nothing behind") {}
  SECTION("half a header") { broken = std::string(7, '\x01'); }
  SECTION("a length past the end") { broken = std::string(40, '\xFF'); }
  SECTION("zeros") { broken = std::string(64, '\0'); }
  std::ofstream(file(folder, 1), std::ios::app | std::ios::binary) << broken;
  std::ofstream(folder + "/events.out.tfevents.1700000000.host") << "not ours";
  steps(4, 6);
  steps(5, 9);  // of the second run's events, step 6 is dropped and step 5 stays
  CHECK(records(file(folder, 1)).size() == 2 + 4 + 2);
  CHECK(records(file(folder, 2)).size() == 2 + 1);
  CHECK(records(file(folder, 3)).size() == 2 + 4 + 2);
  CHECK(fs::file_size(folder + "/events.out.tfevents.1700000000.host") == 8);
  fs::remove(folder + "/events.out.tfevents.1700000000.host");
  CHECK(whole(9) == std::vector<uint64_t>{1, 5, 6});
  {
    EventFile again(folder, 3);
  }  // the sessions after step 3 have nothing left, their START neither
  CHECK(whole(3) == std::vector<uint64_t>{1, 4});
  CHECK(records(file(folder, 2)).size() == 1);
}

TEST_CASE("a record with a flipped bit ends what is kept, wherever the bit is") {
  const Workplace w;
  const std::string folder = w.path("board"), path = file(folder, 1);
  {
    EventFile events(folder, 0);
    for (int64_t step = 1; step <= 3; ++step) {
      const Scalar loss[] = {{"loss", static_cast<float>(step)}};
      events.write_scalars(step, loss);
    }
  }
  const std::string whole = read_text(path);
  std::vector<size_t> ends = {0};
  for (const std::string& data : records(path)) ends.push_back(ends.back() + 16 + data.size());
  REQUIRE(ends.size() == 6);
  REQUIRE(ends.back() == whole.size());
  for (size_t at = 0; at < whole.size(); ++at) {
    INFO("byte " << at);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    std::ofstream(path, std::ios::binary) << damaged;
    EventFile(folder, 3);
    const size_t kept = *(std::upper_bound(ends.begin(), ends.end(), at) - 1);
    CHECK(read_text(path) == whole.substr(0, kept));
    fs::remove(file(folder, 2));
  }
  std::ofstream(path, std::ios::binary) << whole;
  EventFile(folder, 3);
  CHECK(read_text(path) == whole);
}

TEST_CASE("a folder that cannot be had is an error that names it") {
  const Workplace w;
  std::ofstream(w.path("file")) << "x";
  try {
    EventFile(w.path("file"), 0);
    FAIL("an Error was expected");
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::io);
    CHECK(e.where() == w.path("file"));
  }
}

TEST_CASE("a file of events that cannot be read is an error, and is left as it is") {
  const BoundByPermissions bound;
  if (!bound) {
    WARN("no user without root's rights: skipped");
    return;
  }
  const Workplace w;
  const std::string folder = w.path("board"), path = file(folder, 1);
  {
    EventFile events(folder, 0);
    const Scalar loss[] = {{"loss", 1.5f}};
    events.write_scalars(1, loss);
  }
  const std::string before = read_text(path);
  fs::permissions(path, fs::perms::owner_write);
  try {
    EventFile(folder, 1);
    FAIL("an Error was expected");
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::io);
    CHECK(e.where() == path);
  }
  fs::permissions(path, fs::perms::owner_read);
  CHECK(read_text(path) == before);
}

TEST_CASE(
    "a run's events are its metrics, perplexity against length beside them, the bits as without") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["eval"] = {{"every", 2}, {"lengths", {32, 64}}};
  const std::string plain = write_config(w, "plain.json", c);
  c["out_dir"] = w.path("board");
  c["log"] = {{"tensorboard", true}};
  const std::string config = write_config(w, "board.json", c);
  REQUIRE(run(bamtrain_command(plain), threads(2)).code == 0);
  REQUIRE(run(bamtrain_command(config), threads(2)).code == 0);
  const std::string last = "/checkpoint-00000008";
  CHECK(digest(w.path("out") + last) == digest(w.path("board") + last));
  CHECK_FALSE(fs::exists(w.path("out/tensorboard")));

  const auto check = [&](const std::vector<uint64_t>& starts) {
    const Events found(w.path("board/tensorboard"));
    CHECK(found.starts == starts);
    const std::vector<nlohmann::json> lines = read_metrics(w.path("board"));
    REQUIRE(lines.size() == 8);
    std::map<std::string, Points> truth;
    std::map<std::string, std::vector<int64_t>> learned;
    for (size_t i = 0; i < lines.size(); ++i) {
      const int64_t step = lines[i]["step"];
      CHECK(step == static_cast<int64_t>(i) + 1);
      for (const char* tag : {"loss", "lr", "grad_norm", "tokens_per_second", "matrix_rate_share",
                              "seconds", "data_wait", "validation_loss", "validation_loss_error"}) {
        if (lines[i].contains(tag)) truth[tag].emplace_back(step, lines[i][tag].get<float>());
      }
      for (const char* of : {"entropy", "support", "live_tiles"}) {
        if (!lines[i].contains("attention")) continue;
        for (size_t l = 0; l < 2; ++l) {
          const std::string tag = "attention/" + std::string(of) + "/layer_" + std::to_string(l);
          const auto heads = lines[i]["attention"][of][l].get<std::vector<double>>();
          const double sum = std::accumulate(heads.begin(), heads.end(), 0.0);
          truth[tag].emplace_back(step, static_cast<float>(sum / 4));
          learned[tag + "/heads"].push_back(step);
        }
      }
      if (!lines[i].contains("parameters")) continue;
      for (const auto& [name, values] : lines[i]["parameters"].items()) {
        const bool scale = name.find(".scale.") != std::string::npos;
        learned[(scale ? "scale/" : "prior/") + name].push_back(step);
      }
    }
    CHECK(truth["validation_loss"].size() == 4);
    CHECK(found.scalars == truth);
    // theta_alpha, theta_beta, theta_mu, s; entropy, nonzero keys and nonzero blocks: in two
    // layers.
    CHECK(learned.size() == 14);
    CHECK(found.histograms.size() == learned.size());
    for (const auto& [tag, steps] : learned) {
      INFO(tag);
      const auto& histograms = found.histograms.at(tag);
      REQUIRE(histograms.size() == steps.size());
      for (size_t i = 0; i < steps.size(); ++i) {
        CHECK(histograms[i].first == steps[i]);
        CHECK(histograms[i].second.real(3) == 4);  // heads
      }
    }
    const auto result = nlohmann::json::parse(std::ifstream(w.path("board/perplexity.json")));
    const Events lengths(w.path("board/tensorboard/perplexity"));
    REQUIRE(lengths.scalars.size() == 2);
    for (const char* protocol : {"windows", "last"}) {
      Points of_length;
      for (const auto& row : result[protocol]) {
        of_length.emplace_back(row["length"], row["perplexity"].get<float>());
      }
      CHECK(lengths.scalars.at(std::string("perplexity/") + protocol) == of_length);
    }
  };
  check({1});
  // Events and metrics remain after their checkpoint is removed.
  const std::string whole = digest(w.path("board") + last);
  fs::remove_all(w.path("board") + last);
  REQUIRE(run(bamtrain_command(config), threads(2)).code == 0);
  CHECK(digest(w.path("board") + last) == whole);
  check({1, 5});
  // No training is left: the new evaluation replaces the old one.
  REQUIRE(run(bamtrain_command(config), threads(2)).code == 0);
  check({1, 5, 9});
}

TEST_CASE("what a run is measured on while it trains is scalars, by task, length and number") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["stop_at"] = 4;
  c["log"] = {{"tensorboard", true}};
  c["eval"] = {{"tasks",
                {{{"task", "copy"}, {"lengths", {3, 8}}, {"samples", 5}, {"every", 2}},
                 {{"task", "copy"}, {"lengths", {5}}, {"samples", 5}, {"name", "at_end"}}}}};
  const Outcome o = run(bamtrain_command(write_config(w, "run.json", c)), threads(1));
  INFO(o.output);
  REQUIRE(o.code == 0);
  std::map<std::string, Points> truth, found;
  for (const nlohmann::json& line : read_metrics(w.path("out"))) {
    for (const char* result : {"copy@3", "copy@8"}) {
      for (const char* number : {"loss", "accuracy", "exact_match"}) {
        if (!line.contains("tasks")) continue;
        truth["tasks/" + std::string(result) + "/" + number].emplace_back(
            line["step"], line["tasks"][result][number].get<float>());
      }
    }
  }
  CHECK(truth.size() == 6);
  const Events events(w.path("out/tensorboard"));
  for (const auto& [tag, points] : events.scalars) {
    if (tag.starts_with("tasks/")) found[tag] = points;
  }
  CHECK(found == truth);
  CHECK(found["tasks/copy@8/loss"].size() == 2);
}
