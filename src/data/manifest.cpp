#include "data/manifest.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/checked.h"
#include "core/durable_file.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/input_file.h"
#include "core/json.h"
#include "core/sha256.h"
#include "core/utf8.h"

namespace bamtrain {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxBytes = int64_t{1} << 28;  // enough for more than a million shards
constexpr const char* kManifestRemedy =
    "restore the manifest, or make the shards again with bamdata";

/// One JSON object of the manifest, and its name in errors.
class Fields {
 public:
  Fields(const Json& object, std::string path, std::string prefix)
      : object_(object), path_(std::move(path)), prefix_(std::move(prefix)) {
    if (!object_.is_object()) refuse("", "an object", object_.type_name());
  }

  /// "FILE: shards[0].tokens".
  std::string place(const std::string& field) const {
    std::string name = prefix_;
    if (!name.empty() && !field.empty()) name += '.';
    name += field;
    return name.empty() ? path_ : path_ + ": " + name;
  }

  [[noreturn]] void refuse(const std::string& field, const std::string& expected,
                           const std::string& found) const {
    throw Error(ExitCode::data, place(field), expected, found, kManifestRemedy);
  }

  /// Throws Error for a field that is not among `names`.
  void allow(std::initializer_list<std::string_view> names) const {
    for (const auto& item : object_.items()) {
      if (std::find(names.begin(), names.end(), item.key()) != names.end()) continue;
      std::string known;
      for (std::string_view n : names) known += (known.empty() ? "" : ", ") + std::string(n);
      throw Error::fault(ExitCode::data, place(item.key()), "unknown field (known: " + known + ")",
                         kManifestRemedy);
    }
  }

  const Json& at(const std::string& field) const {
    const auto it = object_.find(field);
    if (it == object_.end()) throw missing(ExitCode::data, place(field), "", kManifestRemedy);
    return *it;
  }

  /// REQUIRES: minimum >= 0.
  int64_t integer(const std::string& field, int64_t minimum, int64_t maximum) const {
    const Json& v = at(field);
    const std::string expected =
        "an integer from " + std::to_string(minimum) + " to " + std::to_string(maximum);
    if (!v.is_number_integer()) {
      refuse(field, expected, v.is_number() ? v.dump() : v.type_name());
    }
    // A number from 2^63 to 2^64 becomes negative, hence below any minimum.
    const int64_t n = v.get<int64_t>();
    if (n < minimum || n > maximum) refuse(field, expected, v.dump());
    return n;
  }

  std::optional<int64_t> id_or_null(const std::string& field, int64_t vocab) const {
    if (at(field).is_null()) return std::nullopt;
    return integer(field, 0, vocab - 1);
  }

  const std::string& text(const std::string& field) const {
    const Json& v = at(field);
    if (!v.is_string()) refuse(field, "a string", v.type_name());
    return v.get_ref<const std::string&>();
  }

  const std::string& sha256(const std::string& field) const {
    const std::string& s = text(field);
    if (s.size() != 64 || s.find_first_not_of("0123456789abcdef") != std::string::npos) {
      refuse(field, "64 lower-case hex digits", at(field).dump());
    }
    return s;
  }

 private:
  const Json& object_;
  std::string path_;
  std::string prefix_;
};

/// All fields except the digest.
OrderedJson fields_of(const Manifest& m) {
  const auto or_null = [](const std::optional<int64_t>& id) {
    return id ? OrderedJson(*id) : OrderedJson(nullptr);
  };
  OrderedJson json;
  json["format"] = m.format;
  if (m.format > 2) {
    json["tokenizer"]["file"] =
        m.tokenizer_file.empty() ? OrderedJson(nullptr) : OrderedJson(m.tokenizer_file);
  }
  json["tokenizer"].update({{"sha256", m.tokenizer_sha256},
                            {"vocab", m.vocab},
                            {"bos", or_null(m.bos)},
                            {"eos", or_null(m.eos)}});
  json["document_start"] = or_null(m.document_start);
  json["tokens"] = m.tokens;
  json["documents"] = m.documents;
  json["shards"] = OrderedJson::array();
  for (const Manifest::ShardEntry& e : m.shards) {
    json["shards"].push_back(
        {{"file", e.file}, {"tokens", e.tokens}, {"documents", e.documents}, {"sha256", e.sha256}});
  }
  return json;
}

/// Whether this is the name of a file, without a folder.
bool is_base_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string("/\0", 2)) == std::string::npos;
}

std::string digest_of(const Manifest& m) { return sha256_hex(fields_of(m).dump()); }

Manifest::ShardEntry read_entry(const Fields& f) {
  f.allow({"file", "tokens", "documents", "sha256"});
  Manifest::ShardEntry e;
  e.file = f.text("file");
  if (!is_base_name(e.file)) {
    f.refuse("file", "the name of a file in the manifest's folder", f.at("file").dump());
  }
  e.tokens = f.integer("tokens", 0, kMaxInt32);
  e.documents = f.integer("documents", 0, e.tokens);
  e.sha256 = f.sha256("sha256");
  return e;
}

std::string read_tokenizer_file(const Fields& f) {
  if (f.at("file").is_null()) return "";
  const std::string& name = f.text("file");
  if (const std::string fault = tokenizer_name_fault(name); !fault.empty()) {
    f.refuse("file", "the name of a file next to the shards",
             f.at("file").dump() + " (" + fault + ")");
  }
  return name;
}

Manifest parse(const std::string& text, const std::string& path) {
  const Json json = parse_json(text, {path, ExitCode::data, kManifestRemedy});
  const Fields top(json, path, "");
  // The format comes first: a newer one may have other fields.
  const int64_t format = top.integer("format", 1, std::numeric_limits<int64_t>::max());
  if (format > Manifest::kFormat) {
    throw Error(ExitCode::data, path + ": format", "at most " + std::to_string(Manifest::kFormat),
                std::to_string(format), "use a newer bamtrain");
  }
  const bool digested = format > 1;
  if (digested) {
    top.allow({"format", "tokenizer", "document_start", "tokens", "documents", "shards", "digest"});
  } else {
    top.allow({"format", "tokenizer", "document_start", "tokens", "documents", "shards"});
  }

  Manifest m;
  m.format = format;
  const Fields tokenizer(top.at("tokenizer"), path, "tokenizer");
  if (format > 2) {
    tokenizer.allow({"file", "sha256", "vocab", "bos", "eos"});
    m.tokenizer_file = read_tokenizer_file(tokenizer);
  } else {
    tokenizer.allow({"sha256", "vocab", "bos", "eos"});
  }
  m.tokenizer_sha256 = tokenizer.sha256("sha256");
  m.vocab = tokenizer.integer("vocab", 1, kMaxInt32);
  m.bos = tokenizer.id_or_null("bos", m.vocab);
  m.eos = tokenizer.id_or_null("eos", m.vocab);
  m.document_start = top.id_or_null("document_start", m.vocab);
  m.tokens = top.integer("tokens", 0, std::numeric_limits<int64_t>::max());
  m.documents = top.integer("documents", 0, std::numeric_limits<int64_t>::max());

  const Json& shards = top.at("shards");
  if (!shards.is_array()) top.refuse("shards", "an array", shards.type_name());
  std::set<std::string> names = {m.tokenizer_file};
  int64_t tokens = 0, documents = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const Fields f(shards[i], path, "shards[" + std::to_string(i) + "]");
    m.shards.push_back(read_entry(f));
    const Manifest::ShardEntry& e = m.shards.back();
    if (!names.insert(e.file).second) f.refuse("file", "each file once", e.file + " twice");
    tokens = checked_add(tokens, e.tokens, path);
    documents = checked_add(documents, e.documents, path);
  }
  if (tokens != m.tokens) {
    top.refuse("tokens", std::to_string(tokens) + ", the sum over the shards",
               std::to_string(m.tokens));
  }
  if (documents != m.documents) {
    top.refuse("documents", std::to_string(documents) + ", the sum over the shards",
               std::to_string(m.documents));
  }
  if (digested && top.sha256("digest") != digest_of(m)) {
    throw Error::fault(ExitCode::data, path + ": digest",
                       "mismatch: recorded " + top.text("digest") + ", computed " + digest_of(m),
                       kManifestRemedy);
  }
  return m;
}

}  // namespace

std::string tokenizer_name_fault(const std::string& name) {
  constexpr size_t kMost = 200;  // a temporary name of the file is a little longer
  if (!is_base_name(name)) return "not the name of a file";
  if (name.front() == '.') return "a hidden file";
  if (name.ends_with(".bin")) return "*.bin are shards";
  if (name == kManifestName) return "the manifest has this name";
  if (name.size() > kMost) return "longer than " + std::to_string(kMost) + " bytes";
  return first_invalid_utf8(name) == std::string_view::npos ? "" : "not valid UTF-8";
}

Manifest read_manifest(const std::string& path) {
  const InputFile file(path, ExitCode::io, "check the path, permissions and the disk");
  if (file.bytes() > kMaxBytes) {
    throw Error(ExitCode::data, path, "at most " + std::to_string(kMaxBytes) + " bytes",
                std::to_string(file.bytes()), kManifestRemedy);
  }
  return parse(file.text(kMaxBytes), path);
}

void write_manifest(const std::string& path, const Manifest& manifest) {
  Manifest m = manifest;
  m.format = Manifest::kFormat;
  OrderedJson json = fields_of(m);
  std::string text;
  try {
    json["digest"] = digest_of(m);
    text = json.dump(2) + "\n";
  } catch (const Json::exception& e) {
    throw Error::fault(ExitCode::data, path,
                       std::string("file names that are not valid UTF-8: ") + e.what(),
                       "rename the files");
  }
  parse(text, path);  // checks that it can be read

  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace bamtrain
