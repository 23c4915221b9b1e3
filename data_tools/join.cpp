#include "data_tools/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/durable_file.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/json.h"
#include "core/json_object.h"
#include "core/output_folder.h"
#include "core/print_message.h"
#include "data/shard.h"
#include "data/tokenizer_file.h"
#include "data_tools/interrupt.h"
#include "data_tools/shard_folders.h"

namespace bamtrain {
namespace {

namespace fs = std::filesystem;

struct Part {
  std::string folder;
  int64_t number = 0, of = 0;  // 0: not a part
  std::string inputs;          // digest of all inputs of all parts
  nlohmann::json settings;     // options
};

Part read_part(const std::string& folder) {
  Part part;
  part.folder = folder;
  const std::string path = folder + "/" + kPartName;
  if (!fs::exists(path)) return part;
  constexpr int64_t kMostBytes = 1 << 20;
  const JsonPlace where{path, ExitCode::data, "tokenize this part again"};
  const std::string text =
      InputFile(path, ExitCode::io, "check permissions and the disk").text(kMostBytes);
  const nlohmann::json json = parse_json(text, {path, ExitCode::data, where.remedy});
  const JsonObject o(json, where);
  part.number = o.count("part");
  part.of = o.count("of");
  part.inputs = o.text("inputs");
  part.settings = o.object("settings").value();
  if (part.number < 1 || part.number > part.of)
    where.refuse("a part number from 1 to the number of parts", json.dump());
  return part;
}

/// Sorted in the order of their shards in the output.
std::vector<Part> ordered_parts(const std::vector<std::string>& folders) {
  std::vector<Part> parts;
  for (const std::string& folder : folders) parts.push_back(read_part(folder));
  const int64_t of = parts.front().of;
  for (const Part& part : parts) {
    const auto refuse = [&](const std::string& expected, const std::string& found) {
      throw Error(ExitCode::data, part.folder, expected, found,
                  "join all parts of one call, made by commands that differ in --part only");
    };
    const auto name = [](const Part& p) {
      return p.of == 0 ? std::string("no part") : fmt::format("part {} of {}", p.number, p.of);
    };
    if (part.of != of) refuse("a part of the same set as " + parts.front().folder, name(part));
    if (part.inputs != parts.front().inputs) {
      refuse("a part of the same files as " + parts.front().folder, "a part of other files");
    }
    for (const auto& item : parts.front().settings.items()) {
      const auto it = part.settings.find(item.key());
      const nlohmann::json found = it == part.settings.end() ? nlohmann::json() : *it;
      if (found == item.value()) continue;
      refuse(item.key() + " " + item.value().dump() + ", as " + parts.front().folder, found.dump());
    }
  }
  if (of == 0) return parts;
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.number < b.number; });
  for (int64_t number = 1; number <= of; ++number) {
    const auto count = std::count_if(parts.begin(), parts.end(),
                                     [&](const Part& part) { return part.number == number; });
    if (count != 1) {
      throw Error::fault(ExitCode::data, "inputs",
                         fmt::format("part {} of {} is {}", number, of,
                                     count == 0 ? "missing" : fmt::format("given {} times", count)),
                         "give each part once");
    }
  }
  return parts;
}

/// Merges the shards of several sets in a new folder.
class JoinedSet {
 public:
  JoinedSet(std::string folder, std::FILE* log) : folder_(std::move(folder)), log_(log) {}

  void add(const std::string& folder) {
    const Manifest m = read_manifest(folder + "/" + kManifestName);
    if (manifest_.shards.empty()) {
      manifest_ = m;
      manifest_.tokenizer_file.clear();
      manifest_.shards.clear();
      manifest_.tokens = manifest_.documents = 0;
      first_ = folder;
    }
    if (m.tokenizer_sha256 != manifest_.tokenizer_sha256 || m.vocab != manifest_.vocab ||
        m.bos != manifest_.bos || m.eos != manifest_.eos ||
        m.document_start != manifest_.document_start) {
      throw Error(ExitCode::data, folder,
                  "the tokenizer of " + first_ + ", SHA-256 " + manifest_.tokenizer_sha256,
                  m.tokenizer_sha256, "join sets of the same tokenizer");
    }
    take_tokenizer(folder, m.tokenizer_file);
    for (const Manifest::ShardEntry& entry : m.shards) add_shard(folder + "/" + entry.file, entry);
  }

  Manifest finish() {
    sync_folder(folder_);
    write_manifest(folder_ + "/" + kManifestName, manifest_);
    return manifest_;
  }

 private:
  /// Copies the first tokenizer that a manifest names; those of older formats name none.
  void take_tokenizer(const std::string& folder, const std::string& file) {
    if (file.empty() || !manifest_.tokenizer_file.empty()) return;
    TokenizerFile(folder + "/" + file, manifest_.tokenizer_sha256).write(folder_);
    manifest_.tokenizer_file = file;
  }

  void add_shard(const std::string& path, const Manifest::ShardEntry& entry) {
    check_interrupt();
    if (const int64_t tokens = Shard::open(path).tokens(); tokens != entry.tokens) {
      throw Error(ExitCode::data, path,
                  std::to_string(entry.tokens) + " tokens, as in its manifest",
                  std::to_string(tokens), "tokenize this part again");
    }
    Manifest::ShardEntry joined = entry;
    joined.file = fmt::format("{:06}.bin", manifest_.shards.size());
    put(path, folder_ + "/" + joined.file);
    manifest_.tokens += entry.tokens;
    manifest_.documents += entry.documents;
    manifest_.shards.push_back(std::move(joined));
  }

  void put(const std::string& from, const std::string& to) {
    std::error_code reason;
    fs::create_hard_link(from, to, reason);
    if (!reason) return;
    if (!std::exchange(copies_, true)) {
      print_message(log_, "copying shards, since they cannot be linked: " + reason.message());
    }
    constexpr int64_t kPiece = int64_t{1} << 20;
    const InputFile source(from, ExitCode::io, "check permissions and the disk");
    DurableFile file(to);
    std::string piece(static_cast<size_t>(std::min(kPiece, source.bytes())), '\0');
    for (int64_t at = 0; at < source.bytes(); at += kPiece) {
      const int64_t n = std::min(kPiece, source.bytes() - at);
      source.read(at, piece.data(), n);
      file.write(piece.data(), n);
      check_interrupt();
    }
    file.finish();
  }

  std::string folder_, first_;
  std::FILE* log_;
  Manifest manifest_;
  bool copies_ = false;
};

}  // namespace

namespace {

/// Checks that inputs are distinct, and that the output is neither an input nor inside one: it
/// would replace it.
void check_places(const JoinOptions& options) {
  const auto refuse = [](const std::string& what, const std::string& expected,
                         const std::string& found, const char* remedy) {
    throw Error(ExitCode::usage, what, expected, found, remedy);
  };
  std::map<std::string, std::string> seen;  // by canonical path
  for (const std::string& input : options.inputs) {
    const std::string place = fs::weakly_canonical(input).string();
    const auto [first, is_new] = seen.emplace(place, input);
    if (!is_new) refuse("inputs", "each set once", first->second + " twice", "name it once");
  }
  for (fs::path place = fs::weakly_canonical(options.output);; place = place.parent_path()) {
    if (const auto at = seen.find(place.string()); at != seen.end()) {
      refuse("--output", "a folder outside the inputs", "one inside " + at->second, "name another");
    }
    if (place == place.parent_path()) break;
  }
}

}  // namespace

JoinReport join(const JoinOptions& options, std::FILE* log) {
  check_places(options);
  const std::vector<Part> parts = ordered_parts(options.inputs);
  const InterruptGuard guard;
  OutputFolder output(options.output, may_replace_shards(options.overwrite));
  JoinReport report;
  for (const char* name : {"train", "val"}) {
    std::optional<JoinedSet> set;
    for (const Part& part : parts) {
      const std::string folder = part.folder + "/" + name;
      if (!fs::exists(folder + "/" + kManifestName)) {
        if (std::string_view(name) == "val") continue;  // a part may have no validation documents
        throw Error::fault(
            ExitCode::data, part.folder,
            "not an output of `bamdata tokenize`: no " + std::string(name) + "/" + kManifestName,
            "name its --output");
      }
      if (!set) set.emplace(output.subfolder(name), log);
      set->add(folder);
    }
    if (!set) continue;
    if (std::string_view(name) == "train") {
      report.train = set->finish();
    } else {
      report.val = set->finish();
    }
  }
  output.commit();
  return report;
}

}  // namespace bamtrain
