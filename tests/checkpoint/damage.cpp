// Checkpoints that differ from what was written.

#include <nlohmann/json.hpp>

#include "catch.h"
#include "core/sha256.h"
#include "scenario.h"
#include "train/bound_by_permissions.h"

namespace bamtrain {
namespace {

const std::vector<std::string> kFiles = {"manifest.json", "model.safetensors",
                                         "optimizer.safetensors", "state.json"};

std::string refusal(const std::string& folder) {
  return error_of(ExitCode::checkpoint, [&] { open_checkpoint(folder); });
}

/// Replaces a file and its entry in the manifest.
void forge(const std::string& folder, const std::string& name, const std::string& bytes) {
  write_bytes(folder + "/" + name, bytes);
  auto manifest = nlohmann::json::parse(read_bytes(folder + "/manifest.json"));
  manifest["files"][name] = {{"bytes", bytes.size()}, {"sha256", sha256_hex(bytes)}};
  write_bytes(folder + "/manifest.json", manifest.dump(2) + "\n");
}

TEST_CASE("a change of any byte of any file is noticed") {
  const TemporaryFolder out;
  save(out.path(), 1, 10);
  const std::string folder = out / "checkpoint-00000001";
  REQUIRE(names_in(folder) == kFiles);
  for (const std::string& name : kFiles) {
    const std::string path = folder + "/" + name;
    const std::string good = read_bytes(path);
    for (size_t i = 0; i < good.size(); ++i) {
      std::vector<int> masks = {1 << (i % 8), 0xFF};
      if (name == "manifest.json") masks = {1, 2, 4, 8, 16, 32, 64, 128, 0xFF};
      for (int mask : masks) {
        std::string bad = good;
        bad[i] = static_cast<char>(bad[i] ^ mask);
        write_bytes(path, bad);
        INFO(name << " byte " << i << " mask " << mask);
        REQUIRE(contains(refusal(folder), folder));
      }
    }
    write_bytes(path, good);
  }
  CHECK(holds(open_checkpoint(folder), 10));
}

TEST_CASE("a state is believed by its own digest and the manifest's, without the weights'") {
  const TemporaryFolder out;
  save(out.path(), 1, 10);
  const std::string folder = out / "checkpoint-00000001";
  const nlohmann::json whole = verified_state(folder);
  CHECK(whole == open_checkpoint(folder).state);
  const auto refused = [&] {
    return error_of(ExitCode::checkpoint, [&] { verified_state(folder); });
  };
  const std::string path = folder + "/state.json", good = read_bytes(path);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1 << (i % 8));
    write_bytes(path, bad);
    INFO("byte " << i);
    REQUIRE(contains(refused(), path));
  }
  write_bytes(path, good);
  const std::string manifest = folder + "/manifest.json", listed = read_bytes(manifest);
  write_bytes(manifest, listed + " ");
  CHECK(contains(refused(), manifest));
  write_bytes(manifest, listed);
  write_bytes(folder + "/model.safetensors", "other");
  CHECK(verified_state(folder) == whole);
  forge(folder, "state.json", R"({"format": 2, "step": 1})");
  CHECK(contains(refused(), "expected format 1 or older"));
  std::filesystem::remove(folder + "/state.json");
  CHECK(contains(refused(), "state.json: no such file; use another checkpoint"));
}

TEST_CASE("a file of any other length is noticed, and named") {
  const TemporaryFolder out;
  save(out.path(), 1, 10);
  const std::string folder = out / "checkpoint-00000001";
  for (const std::string& name : kFiles) {
    const std::string path = folder + "/" + name;
    const std::string good = read_bytes(path);
    for (size_t length = 0; length < good.size(); ++length) {
      write_bytes(path, good.substr(0, length));
      INFO(name << " cut to " << length);
      REQUIRE(contains(refusal(folder), path));
    }
    for (const char* more : {" ", "\n", "x", "{}"}) {
      write_bytes(path, good + more);
      INFO(name << " with more at its end");
      REQUIRE(contains(refusal(folder), path));
    }
    std::filesystem::remove(path);
    CHECK(contains(refusal(folder), path + ": no such file"));
    std::filesystem::create_directory(path);
    CHECK(contains(refusal(folder), path));
    std::filesystem::remove(path);
    write_bytes(path, good);
  }
  CHECK(holds(open_checkpoint(folder), 10));
}

TEST_CASE("a folder that is missing, or no checkpoint, is named") {
  const TemporaryFolder out;
  CHECK(contains(refusal(out / "none"), out / "none: no such folder; check the name"));
  CHECK(contains(refusal(out.path()), "found a folder with neither"));
}

TEST_CASE("a manifest vouches for exactly the files of the format, all in its folder") {
  const TemporaryFolder out;
  save(out.path(), 1, 10);
  const std::string folder = out / "checkpoint-00000001", path = folder + "/manifest.json";
  const auto good = nlohmann::json::parse(read_bytes(path));
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    auto manifest = good;
    manifest["files"].erase(name);
    write_bytes(path, manifest.dump(2) + "\n");
    CHECK(contains(refusal(folder), std::string("manifest.json: no entry for ") + name));
  }
  forge(folder, "../outside", "text");
  CHECK(contains(refusal(folder), "files.../outside: expected the name of a file in the same"));
  write_bytes(path, good.dump(2) + "\n");
  forge(folder, "more.safetensors", "text");
  CHECK(contains(refusal(folder), "manifest.json: expected 3 files, found 4"));
  for (const char* text : {"", "null", "[]", "{}", "{\"files\":[]}", "{\"files\":{\"a\":1}}",
                           "{\"files\":{\"a\":{\"bytes\":-1,\"sha256\":\"\"}}}"}) {
    write_bytes(path, text);
    CHECK(contains(refusal(folder), path));
  }
  write_bytes(path, std::string((1 << 20) + 1, ' '));
  CHECK(contains(refusal(folder), "at most 1048576 bytes"));
  write_bytes(path, good.dump(2) + "\n");
  CHECK(holds(open_checkpoint(folder), 10));
}

TEST_CASE("a file that the manifest does not list is left alone") {
  const TemporaryFolder out;
  save(out.path(), 1, 10);
  write_bytes(out / "checkpoint-00000001/config.json", "{}");
  CHECK(holds(open_checkpoint(out / "checkpoint-00000001"), 10));
}

TEST_CASE("a newer format is refused as such, and no older checkpoint taken in its place") {
  const TemporaryFolder out;
  save(out.path(), 1, 10);
  save(out.path(), 2, 20);
  const std::string folder = out / "checkpoint-00000002";
  auto state = nlohmann::json::parse(read_bytes(folder + "/state.json"));
  state["format"] = 2;
  forge(folder, "state.json", state.dump());
  forge(folder, "a.file.of.format.2", "");
  const std::string message = refusal(folder);
  CHECK(contains(message, folder + "/state.json"));
  CHECK(contains(message, "expected format 1 or older, found the newer format 2; use the version"));
  CHECK_THROWS_AS(newest_checkpoint(out.path(), no_warning), NewerFormat);
}

TEST_CASE("a state without its own step and format is refused") {
  const TemporaryFolder out;
  save(out.path(), 1, 10);
  const std::string folder = out / "checkpoint-00000001";
  for (const char* text :
       {"{}", "[]", "{\"format\":1}", "{\"format\":\"1\",\"step\":1}", "{\"format\":1,\"step\":-1}",
        "{\"format\":1,\"step\":1.0}", "{\"format\":1,\"step\":9223372036854775808}",
        "{\"format\":1,\"step\":1,\"step\":1}", "{\"format\":1,\"step\":1} {}",
        "\xEF\xBB\xBF{\"format\":1,\"step\":1}"}) {
    forge(folder, "state.json", text);
    INFO(text);
    CHECK(contains(refusal(folder), "state.json"));
  }
  const auto refused_as = [&](const char* text, const std::string& message) {
    forge(folder, "state.json", text);
    INFO(text);
    CHECK(contains(refusal(folder), "state.json: " + message));
  };
  refused_as("{}", "format: missing (an integer from 0 to 9223372036854775807)");
  refused_as("{\"format\":1,\"step\":true}", "step: expected an integer from 0 to ");
  refused_as("{\"format\":1,\"step\":[2]}",
             "step: expected an integer from 0 to 9223372036854775807, found [2]; ");
  forge(folder, "state.json", "{\"format\":1,\"step\":1}");
  CHECK(open_checkpoint(folder).step == 1);
}

TEST_CASE("a checkpoint under the name of another step is refused, under any other name read") {
  const TemporaryFolder out;
  save(out.path(), 1, 10);
  std::filesystem::rename(out / "checkpoint-00000001", out / "checkpoint-00000009");
  CHECK(
      contains(refusal(out / "checkpoint-00000009/"), "expected the checkpoint of step 9, found"));
  std::filesystem::rename(out / "checkpoint-00000009", out / "best");
  CHECK(open_checkpoint(out / "best").step == 1);
}

TEST_CASE("a damaged newest checkpoint is named in a warning and the one before it used") {
  const TemporaryFolder out;
  for (int step : {1, 2, 3}) save(out.path(), step, 10 * step);
  std::vector<std::string> warnings;
  const auto newest = [&] {
    warnings.clear();
    return newest_checkpoint(out.path(), [&](const std::string& w) { warnings.push_back(w); });
  };
  std::filesystem::resize_file(out / "checkpoint-00000003/optimizer.safetensors", 50);
  auto found = newest();
  REQUIRE(found.has_value());
  CHECK(found->folder == out / "checkpoint-00000002");
  CHECK(holds(*found, 20));
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "checkpoint-00000003 is damaged"));
  CHECK(contains(warnings[0], "optimizer.safetensors"));

  std::filesystem::remove(out / "checkpoint-00000002/state.json");
  found = newest();
  REQUIRE(found.has_value());
  CHECK(holds(*found, 10));
  CHECK(warnings.size() == 2);

  std::filesystem::remove(out / "checkpoint-00000001/manifest.json");
  const std::string message = error_of(ExitCode::checkpoint, [&] { newest(); });
  CHECK(contains(message, out.path() + ": expected a valid checkpoint, found 3, all damaged"));
  CHECK(warnings.size() == 3);
}

TEST_CASE("pruning keeps the newest valid checkpoint and removes nothing where none is valid") {
  const TemporaryFolder out;
  for (int step : {1, 2, 3, 4}) save(out.path(), step, 10 * step);
  std::filesystem::remove(out / "checkpoint-00000004/state.json");
  std::filesystem::remove(out / "checkpoint-00000003/state.json");
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& w) { warnings.push_back(w); };
  prune_checkpoints(out.path(), 1, 0, std::nullopt, warn);
  CHECK(warnings.size() == 2);
  const std::vector<std::string> kept = {"checkpoint-00000002", "checkpoint-00000004"};
  CHECK(names_in(out.path()) == kept);
  std::filesystem::remove(out / "checkpoint-00000002/state.json");
  CHECK(error_of(ExitCode::checkpoint,
                 [&] { prune_checkpoints(out.path(), 1, 0, std::nullopt, warn); }) != "");
  CHECK(names_in(out.path()) == kept);
}

TEST_CASE("a checkpoint that cannot be read now is no damaged one") {
  const TemporaryFolder out;
  for (int step : {1, 2}) save(out.path(), step, 10 * step);
  std::filesystem::permissions(out.path(), std::filesystem::perms::all);
  for (const char* closed : {"checkpoint-00000002/model.safetensors", "checkpoint-00000002", "."}) {
    std::filesystem::permissions(out / closed, std::filesystem::perms::none);
    {
      const testing::BoundByPermissions bound;
      if (!bound) {
        WARN("skipped: there is no other user to become");
        return;
      }
      INFO(closed);
      const std::string refused =
          error_of(ExitCode::io, [&] { newest_checkpoint(out.path(), no_warning); });
      INFO(refused);
      CHECK(contains(refused, "Permission denied"));
    }
    std::filesystem::permissions(out / closed, std::filesystem::perms::all);
  }
  CHECK(newest_tag(out.path()) == 20);
}

}  // namespace
}  // namespace bamtrain
