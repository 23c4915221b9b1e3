#include "data_tools/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/utf8.h"
#include "core/with_commas.h"
#include "data/tokenizer.h"
#include "data_tools/progress.h"
#include "data_tools/shard_folders.h"

namespace bamtrain {

DocumentLengths::DocumentLengths(const ShardSet& shards, int64_t document_start) {
  int64_t length = -1;  // of the current document; -1: no document yet
  const auto end_document = [&] {
    if (length < 0) return;
    ++count_of_[length];
    ++documents_;
    tokens_ += length;
  };
  for (int64_t i = 0; i < shards.size(); ++i) {
    const Shard& shard = shards.shard(i);
    int64_t at = 0;
    const auto pass_to = [&](int64_t position) {
      (length < 0 ? leading_tokens_ : length) += position - at;
      at = position;
    };
    shard.find_all(0, document_start, [&](int64_t start) {
      pass_to(start);
      end_document();
      length = 0;
    });
    pass_to(shard.tokens());
  }
  end_document();
}

double DocumentLengths::mean() const {
  return documents_ == 0 ? 0 : static_cast<double>(tokens_) / static_cast<double>(documents_);
}

int64_t DocumentLengths::quantile(double p) const {
  require(p >= 0 && p <= 1, "a share from 0 to 1");
  int64_t below = 0;
  for (const auto& [length, count] : count_of_) {
    below += count;
    if (static_cast<double>(below) >= p * static_cast<double>(documents_)) return length;
  }
  return 0;
}

std::map<int64_t, int64_t> DocumentLengths::histogram() const {
  std::map<int64_t, int64_t> bins;
  for (const auto& [length, count] : count_of_) {
    bins[static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(length)))] += count;
  }
  return bins;
}

namespace {

using OrderedJson = nlohmann::ordered_json;

template <class T>
OrderedJson or_null(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

/// Tokens [from, from + count) of all shards, in order.
std::vector<int32_t> read_slice(const ShardSet& shards, int64_t from, int64_t count) {
  if (from < 0 || count < 0 || from > shards.tokens() || count > shards.tokens() - from) {
    throw Error(ExitCode::usage, "--from and --count",
                "tokens within the " + with_commas(shards.tokens()) + " of " + shards.source(),
                fmt::format("{} from {}", count, from), "ask for fewer, or start earlier");
  }
  std::vector<int32_t> ids(static_cast<size_t>(count));
  int64_t begin = 0;  // first token of the shard, among all tokens
  for (int64_t i = 0; i < shards.size(); ++i) {
    const Shard& shard = shards.shard(i);
    const int64_t first = std::max(from, begin);
    const int64_t last = std::min(from + count, begin + shard.tokens());
    if (first < last) {
      shard.read(first - begin, last - first, ids.data() + (first - from), shards.vocab());
    }
    begin += shard.tokens();
  }
  return ids;
}

/// The tokenizer's file next to the shards, which their manifest names; "" if it is not there.
std::string tokenizer_of(const ShardSet& shards) {
  if (!shards.manifest() || shards.manifest()->tokenizer_file.empty()) return {};
  const std::filesystem::path shard = shards.shard(0).path();
  const std::filesystem::path file = shard.parent_path() / shards.manifest()->tokenizer_file;
  std::error_code ignored;
  return std::filesystem::exists(file, ignored) ? file.string() : "";
}

OrderedJson describe_manifest(const Manifest& m) {
  return {
      {"tokenizer",
       {{"file", m.tokenizer_file.empty() ? OrderedJson(nullptr) : OrderedJson(m.tokenizer_file)},
        {"sha256", m.tokenizer_sha256},
        {"vocab", m.vocab},
        {"bos", or_null(m.bos)},
        {"eos", or_null(m.eos)}}},
      {"document_start", or_null(m.document_start)},
      {"documents", m.documents}};
}

OrderedJson describe_documents(const DocumentLengths& lengths) {
  OrderedJson histogram = OrderedJson::array();
  for (const auto& [length, count] : lengths.histogram()) {
    histogram.push_back({{"from", length}, {"to", 2 * length - 1}, {"documents", count}});
  }
  return {{"count", lengths.documents()}, {"leading_tokens", lengths.leading_tokens()},
          {"min", lengths.quantile(0)},   {"median", lengths.quantile(0.5)},
          {"mean", lengths.mean()},       {"p90", lengths.quantile(0.9)},
          {"max", lengths.quantile(1)},   {"histogram", histogram}};
}

OrderedJson describe_slice(const ShardSet& shards, const InspectOptions& options) {
  const std::vector<int32_t> ids = read_slice(shards, options.from, options.count);
  OrderedJson slice = {{"from", options.from}, {"ids", ids}};
  const std::string path = options.tokenizer.empty() ? tokenizer_of(shards) : options.tokenizer;
  if (path.empty()) return slice;
  const Tokenizer tokenizer = Tokenizer::open(path);
  if (shards.manifest() && shards.manifest()->tokenizer_sha256 != tokenizer.sha256()) {
    throw Error(
        ExitCode::data, path,
        "the tokenizer of " + shards.source() + ", SHA-256 " + shards.manifest()->tokenizer_sha256,
        tokenizer.sha256(), "give the tokenizer that made these shards");
  }
  OrderedJson pieces = OrderedJson::array();
  for (int32_t id : ids) pieces.push_back(tokenizer.piece(id));
  slice["pieces"] = pieces;
  slice["text"] = tokenizer.decode(ids);
  return slice;
}

OrderedJson describe(const std::string& source, const InspectOptions& options) {
  const ShardSet shards = ShardSet::open(source, int64_t{1} << 31);
  OrderedJson set = {{"source", source},
                     {"tokens", shards.tokens()},
                     {"fingerprint", shards.fingerprint()},
                     {"manifest", nullptr},
                     {"shards", OrderedJson::array()}};
  if (shards.manifest()) set["manifest"] = describe_manifest(*shards.manifest());
  for (int64_t i = 0; i < shards.size(); ++i) {
    const Shard& shard = shards.shard(i);
    const ShardFormat format = ShardFormat::of_width(shard.width());
    set["shards"].push_back({{"file", shard.path()},
                             {"magic", format.magic},
                             {"version", format.version},
                             {"bytes_per_token", shard.width()},
                             {"tokens", shard.tokens()}});
  }
  const auto start = options.document_start ? options.document_start : shards.document_start({});
  set["documents"] =
      start ? describe_documents(DocumentLengths(shards, *start)) : OrderedJson(nullptr);
  if (options.count > 0) set["slice"] = describe_slice(shards, options);
  return set;
}

void print_documents(const OrderedJson& documents, std::FILE* out) {
  if (documents.is_null()) {
    fmt::print(out, "documents    unknown: no manifest; give --document-start\n");
    return;
  }
  const auto number = [&](const char* key) { return with_commas(documents[key].get<int64_t>()); };
  fmt::print(out, "documents    {}\n", number("count"));
  if (documents["count"] == 0) {
    fmt::print(out, "             no token is the document start\n");
    return;
  }
  fmt::print(out, "  tokens     min {}, median {}, mean {:.1f}, p90 {}, max {}\n", number("min"),
             number("median"), documents["mean"].get<double>(), number("p90"), number("max"));
  if (documents["leading_tokens"] != 0) {
    fmt::print(out, "  before     {} tokens before the first document\n", number("leading_tokens"));
  }
  int64_t most = 1;
  for (const OrderedJson& bin : documents["histogram"]) {
    most = std::max(most, bin["documents"].get<int64_t>());
  }
  for (const OrderedJson& bin : documents["histogram"]) {
    const auto count = bin["documents"].get<int64_t>();
    fmt::print(out, "  {:>9} to {:>9}  {:>12}  {}\n", with_commas(bin["from"].get<int64_t>()),
               with_commas(bin["to"].get<int64_t>()), with_commas(count),
               std::string(static_cast<size_t>((40 * count + most - 1) / most), '#'));
  }
}

void print(const OrderedJson& set, std::FILE* out) {
  fmt::print(out, "{}\ntokens       {}\n", printable(set["source"].get<std::string>()),
             with_commas(set["tokens"].get<int64_t>()));
  const OrderedJson& manifest = set["manifest"];
  if (manifest.is_null()) {
    fmt::print(out, "manifest     missing\n");
  } else {
    const OrderedJson& tokenizer = manifest["tokenizer"];
    const OrderedJson& file = tokenizer["file"];
    fmt::print(out, "tokenizer    {}vocab {}, BOS {}, EOS {}, SHA-256 {}\n",
               file.is_null() ? "" : printable(file.get<std::string>()) + ", ",
               tokenizer["vocab"].dump(), tokenizer["bos"].dump(), tokenizer["eos"].dump(),
               tokenizer["sha256"].get<std::string>());
    fmt::print(out, "document     begins at token id {}\n", manifest["document_start"].dump());
  }
  fmt::print(out, "fingerprint  {}\n", set["fingerprint"].get<std::string>());
  for (const OrderedJson& shard : set["shards"]) {
    fmt::print(out, "shard        {}: magic {}, version {}, {} tokens of {} bytes\n",
               printable(shard["file"].get<std::string>()), shard["magic"].dump(),
               shard["version"].dump(), with_commas(shard["tokens"].get<int64_t>()),
               shard["bytes_per_token"].dump());
  }
  print_documents(set["documents"], out);
  if (!set.contains("slice")) return;
  const OrderedJson& slice = set["slice"];
  fmt::print(out, "ids          {}\n", slice["ids"].dump());
  if (slice.contains("text"))
    fmt::print(out, "text\n{}\n", printable(slice["text"].get<std::string>()));
}

}  // namespace

void inspect(const InspectOptions& options, std::FILE* out) {
  const std::vector<std::string> sources = shard_sources(options.path);
  if (options.count > 0 && sources.size() > 1) {
    throw Error(ExitCode::usage, "--count", "one set of shards", sources[0] + " and " + sources[1],
                "name one of them");
  }
  OrderedJson sets = OrderedJson::array();
  for (const std::string& source : sources) sets.push_back(describe(source, options));
  if (options.json) {
    fmt::print(
        out, "{}\n",
        OrderedJson{{"sets", sets}}.dump(2, ' ', false, OrderedJson::error_handler_t::replace));
    return;
  }
  for (const OrderedJson& set : sets) print(set, out);
}

}  // namespace bamtrain
