#include "data_tools/tokenize_journal.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/durable_file.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/json.h"
#include "core/json_object.h"
#include "data_tools/tokenize_settings.h"

namespace bamtrain {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr int64_t kMostBytes = int64_t{1} << 28;
// The writer of the file may need what is next to it.
constexpr const char* kRemedy =
    "not a journal of `bamdata tokenize`: move its folder elsewhere, or choose another --output";

OrderedJson writer_state_json(const ShardSetWriter::State& state) {
  OrderedJson list = OrderedJson::array();
  for (const Manifest::ShardEntry& e : state) {
    list.push_back(
        {{"file", e.file}, {"tokens", e.tokens}, {"documents", e.documents}, {"sha256", e.sha256}});
  }
  return list;
}

ShardSetWriter::State state_of(const Json& list, const JsonPlace& where) {
  ShardSetWriter::State state;
  for (const Json& item : list) {
    const JsonObject o(item, where);
    Manifest::ShardEntry e{o.text("file"), o.count("tokens", ShardFormat::kMaxTokens),
                           o.count("documents"), o.text("sha256")};
    if (e.file.empty() || e.file.front() == '.' || e.file.find('/') != std::string::npos) {
      (where / "file").refuse("a shard's name", e.file);
    }
    // Only the last shard may be open.
    if (!state.empty() && state.back().sha256.empty()) (where / "sha256").refuse("a digest", "");
    state.push_back(std::move(e));
  }
  return state;
}

DocumentShuffle::State shuffle_of(const JsonObject& o) {
  DocumentShuffle::State state;
  state.documents = o.count("documents");
  const Json& bytes = o.list("bytes");
  if (bytes.size() != state.bytes.size()) {
    o.where().refuse(std::to_string(state.bytes.size()) + " files", std::to_string(bytes.size()));
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!bytes[i].is_number_unsigned()) o.where().refuse("a size", bytes[i].dump());
    state.bytes[i] = bytes[i].get<int64_t>();
  }
  return state;
}

TokenizeJournal parse(const std::string& text, const JsonPlace& where) {
  const Json json = parse_json(text, {where.text, where.code, kRemedy});
  const JsonObject o(json, where);
  if (const int64_t format = o.count("format"); format != TokenizeJournal::kFormat) {
    (where / "format").refuse(std::to_string(TokenizeJournal::kFormat), std::to_string(format));
  }
  TokenizeJournal j;
  o.object("settings");
  // Settings are compared in this order.
  j.settings = OrderedJson::parse(text).at("settings");
  j.position = {static_cast<size_t>(o.count("input")), o.count("documents_of_input")};
  j.text_bytes = o.count("text_bytes");
  j.counts = {o.count("empty"), o.count("replaced"), o.count("skipped"), 0, ""};
  // Missing if nothing was invalid.
  if (o.has("invalid_bytes")) {
    j.counts.invalid_bytes = o.count("invalid_bytes");
    j.counts.first_invalid = o.text("first_invalid");
  }
  j.seconds = o.number("seconds");
  for (const Json& warning : o.list("warnings")) {
    if (!warning.is_string()) (where / "warnings").refuse("a string", warning.dump());
    j.warnings.push_back(warning);
  }
  j.train = state_of(o.list("train"), where / "train");
  j.val = state_of(o.list("val"), where / "val");
  const JsonObject split = o.object("split");
  j.split = {split.count("documents"), split.count("train"), split.count("tokens"),
             split.count("held_bytes")};
  if (o.has("shuffle")) j.shuffle = shuffle_of(o.object("shuffle"));
  if (o.has("placed")) j.placed = o.count("placed", DocumentShuffle::kBuckets);
  j.finished = o.text("finished");
  return j;
}

}  // namespace

TokenizeJournal read_journal(const std::string& path) {
  const InputFile file(path, ExitCode::io, "check the path, permissions and the disk");
  const JsonPlace where{path, ExitCode::io, kRemedy};
  if (file.bytes() > kMostBytes) {
    where.refuse("at most " + std::to_string(kMostBytes) + " bytes", std::to_string(file.bytes()));
  }
  return parse(file.text(kMostBytes), where);
}

void write_journal(const std::string& path, const TokenizeJournal& j) {
  OrderedJson json;
  json["format"] = TokenizeJournal::kFormat;
  json["settings"] = j.settings;
  json["input"] = j.position.input;
  json["documents_of_input"] = j.position.documents;
  json["text_bytes"] = j.text_bytes;
  json["empty"] = j.counts.empty;
  json["replaced"] = j.counts.replaced;
  json["skipped"] = j.counts.skipped;
  if (j.counts.invalid_bytes > 0) {
    json["invalid_bytes"] = j.counts.invalid_bytes;
    json["first_invalid"] = j.counts.first_invalid;
  }
  json["seconds"] = j.seconds;
  json["warnings"] = j.warnings;
  json["train"] = writer_state_json(j.train);
  json["val"] = writer_state_json(j.val);
  json["split"] = {{"documents", j.split.documents},
                   {"train", j.split.train},
                   {"tokens", j.split.tokens},
                   {"held_bytes", j.split.held_bytes}};
  if (j.shuffle) {
    json["shuffle"] = {{"documents", j.shuffle->documents}, {"bytes", j.shuffle->bytes}};
  }
  if (j.placed) json["placed"] = *j.placed;
  json["finished"] = j.finished;
  AtomicFile file(path);
  file.write(json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
  file.commit();
}

void require_same_settings(const OrderedJson& before, const OrderedJson& now,
                           const std::string& folder) {
  for (const auto& item : now.items()) {
    const auto it = before.find(item.key());
    const OrderedJson found = it == before.end() ? OrderedJson() : *it;
    if (found == item.value()) continue;
    if (item.key() == "--invalid-utf8" && found == "error") continue;
    if (item.key() == kTokenizerName && found.is_null()) continue;
    throw Error(ExitCode::usage, item.key(), found.dump() + ", as when " + folder + " was started",
                item.value().dump(),
                "give the same value to resume, or remove the folder to start over");
  }
}

}  // namespace bamtrain
