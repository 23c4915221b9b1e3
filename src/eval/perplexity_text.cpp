#include "eval/perplexity_text.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "core/checked.h"
#include "core/error.h"
#include "core/join.h"

namespace bamtrain {

namespace {

void check_options(const PerplexityRequest& r) {
  require(!r.lengths.empty() && r.lengths.front() >= 1 &&
              std::adjacent_find(r.lengths.begin(), r.lengths.end(), std::greater_equal<>()) ==
                  r.lengths.end(),
          "ascending lengths");
  require(r.bin >= 1, "bins of a position at least");
  const int64_t shortest = r.lengths.front(), longest = r.lengths.back();
  if (r.asks_for("last") && r.last_tokens > shortest) {
    throw Error(ExitCode::usage, "--last-tokens",
                "at most the shortest length, " + std::to_string(shortest),
                std::to_string(r.last_tokens), "change it or the lengths");
  }
  if (r.positions > longest) {
    throw Error(ExitCode::usage, "--positions",
                "at most the longest length, " + std::to_string(longest),
                std::to_string(r.positions), "change it or the lengths");
  }
  const bool packed = r.text == PerplexityText::packed;
  if (r.counts.size() > 1 && (!packed || r.counts.size() != r.lengths.size())) {
    throw Error(ExitCode::usage, "--count",
                packed ? "one number, or one for each of the " + std::to_string(r.lengths.size()) +
                             " lengths"
                       : "one number: documents are the same at every length",
                std::to_string(r.counts.size()) + " numbers", "");
  }
}

[[noreturn]] void refuse_count(const ShardSet& shards, int64_t wanted, const std::string& of_what,
                               int64_t found) {
  throw Error(ExitCode::data, shards.source(), std::to_string(wanted) + " " + of_what,
              std::to_string(found), "lower --count, or evaluate more data");
}

/// Keeps the requested number of documents. Throws Error if there are fewer.
void take_count(const ShardSet& shards, const PerplexityRequest& r, const std::string& of_what,
                std::vector<DocumentSpan>* documents) {
  const std::optional<int64_t> count = r.count_at(0);
  if (!count) return;
  if (std::ssize(*documents) < *count) {
    refuse_count(shards, *count, of_what, std::ssize(*documents));
  }
  documents->resize(static_cast<size_t>(*count));
}

/// Documents with room for at least one longest window and the target after it.
std::vector<DocumentSpan> long_documents(const ShardSet& shards, const PerplexityRequest& r,
                                         DocumentCounts* counts) {
  const int64_t longest = r.lengths.back();
  const std::string what = "of at least " + std::to_string(longest + 1) + " tokens";
  std::vector<DocumentSpan> out;
  int64_t length = 0;
  for (const DocumentSpan& d : shards.documents(r.document_start)) {
    length = std::max(length, d.length);
    ++counts->all;
    counts->of_shortest += d.length >= r.lengths.front() + 1;
    if (d.length >= longest + 1) out.push_back(d);
  }
  if (out.empty()) {
    throw Error(
        ExitCode::data, shards.source(), "a document " + what,
        std::to_string(counts->all) + " documents, the longest of " + std::to_string(length),
        "evaluate at shorter lengths or on data with longer documents");
  }
  counts->of_longest = std::ssize(out);
  take_count(shards, r, "documents " + what, &out);
  return out;
}

/// Documents of 2 tokens (one target) up to the longest length.
std::vector<DocumentSpan> short_documents(const ShardSet& shards, const PerplexityRequest& r,
                                          DocumentCounts* counts) {
  std::vector<DocumentSpan> out = shards.documents(r.document_start);
  counts->all = std::ssize(out);
  std::erase_if(out,
                [&](const DocumentSpan& d) { return d.length < 2 || d.length > r.lengths.back(); });
  take_count(shards, r, "documents of 2 to " + std::to_string(r.lengths.back()) + " tokens", &out);
  int64_t before = 1;
  for (const int64_t length : r.lengths) {
    const bool any = std::any_of(out.begin(), out.end(), [&](const DocumentSpan& d) {
      return d.length > before && d.length <= length;
    });
    if (!any) {
      throw Error::fault(ExitCode::data, shards.source(),
                         "no document of " + std::to_string(before + 1) + " to " +
                             std::to_string(length) + " tokens",
                         "leave length " + std::to_string(length) + " out, or evaluate other data");
    }
    before = length;
  }
  return out;
}

std::vector<DocumentSpan> stretches_of(const ShardSet& shards, const PerplexityRequest& r,
                                       DocumentCounts* counts) {
  check_options(r);
  switch (r.text) {
    case PerplexityText::documents:
    case PerplexityText::beginnings:
      return long_documents(shards, r, counts);
    case PerplexityText::packed:
      return stretches_without(shards, r.dropped);
    case PerplexityText::short_documents:
      return short_documents(shards, r, counts);
  }
  require(false, "a text");
  return {};
}

/// Lengths of the text's documents, or the total length of packed text.
std::vector<int64_t> text_lengths(const ShardSet& shards, const PerplexityRequest& r) {
  const bool packed = r.text == PerplexityText::packed;
  std::vector<int64_t> out;
  for (const DocumentSpan& d :
       packed ? stretches_without(shards, r.dropped) : shards.documents(r.document_start)) {
    if (packed && !out.empty()) {
      out[0] += d.length;
    } else {
      out.push_back(d.length);
    }
  }
  return out;
}

/// Number of windows of `per` targets that a limit of max_tokens allows; max_tokens 0: all.
size_t most_windows(int64_t max_tokens, int64_t per) {
  return max_tokens == 0 ? std::numeric_limits<size_t>::max()
                         : static_cast<size_t>(ceil_div(max_tokens, per));
}

}  // namespace

std::string name_of(PerplexityText text) {
  for (const auto& [name, value] : kPerplexityTexts) {
    if (value == text) return name;
  }
  require(false, "a text");
  return "";
}

bool PerplexityRequest::asks_for(const std::string& protocol) const {
  return std::find(protocols.begin(), protocols.end(), protocol) != protocols.end();
}

int64_t PerplexityRequest::last_tokens_at(int64_t length) const {
  if (last_tokens > 0) return last_tokens;
  return std::min(kLastTokens, text == PerplexityText::documents ? lengths.front() : length);
}

std::optional<int64_t> PerplexityRequest::count_at(size_t n) const {
  if (counts.empty()) return std::nullopt;
  return counts.size() == 1 ? counts[0] : counts[n];
}

std::string leave_out_lengths(const ShardSet& shards, PerplexityRequest* request) {
  const std::vector<int64_t> before = request->lengths, counts = request->counts;
  const bool each_counted = counts.size() > 1;
  if (each_counted && counts.size() != before.size()) return "";  // every reader refuses it
  const std::vector<int64_t> texts = text_lengths(shards, *request);
  const int64_t longest = texts.empty() ? 0 : *std::max_element(texts.begin(), texts.end());
  const bool is_short = request->text == PerplexityText::short_documents;
  request->lengths.clear();
  if (each_counted) request->counts.clear();
  std::vector<std::string> left_out;
  for (size_t n = 0; n < before.size(); ++n) {
    const int64_t from = n > 0 ? before[n - 1] : 1;
    // A window has one more target than inputs; a short document is read whole.
    const bool any = is_short ? std::any_of(texts.begin(), texts.end(),
                                            [&](int64_t t) { return t > from && t <= before[n]; })
                              : before[n] < longest;
    if (!any) {
      left_out.push_back(std::to_string(before[n]));
      continue;
    }
    request->lengths.push_back(before[n]);
    if (each_counted) request->counts.push_back(counts[n]);
  }
  if (left_out.empty()) return "";
  const std::string all = join(left_out) + " left out: ",
                    tokens = std::to_string(longest) + " tokens";
  if (is_short) {
    return all + "no document of " + shards.source() +
           " has such a length (longer than the previous length, up to this one)";
  }
  if (request->text == PerplexityText::packed) return all + shards.source() + " has " + tokens;
  return all + "the longest document of " + shards.source() + " has " + tokens;
}

EvaluatedText::EvaluatedText(const ShardSet& shards, const PerplexityRequest& request)
    : request_(request), stream_(shards, stretches_of(shards, request, &document_counts_)) {
  if (request.text != PerplexityText::packed) {
    documents_ = stream_.parts();
    return;
  }
  for (size_t n = request.lengths.size(); n-- > 0;) {
    const int64_t length = request.lengths[n], windows = windows_of_packed(length);
    if (windows == 0) {
      throw Error(ExitCode::data, shards.source(),
                  "a stream of at least " + std::to_string(length + 1) + " tokens",
                  std::to_string(stream_.tokens()), "evaluate at shorter lengths or on more data");
    }
    const std::optional<int64_t> count = request.count_at(n);
    if (count && windows < *count) {
      refuse_count(shards, *count, "windows of length " + std::to_string(length), windows);
    }
  }
}

int64_t EvaluatedText::windows_of_packed(int64_t length) const {
  // The last target of a window is the next window's first token or, if apart, its own.
  const int64_t usable = stream_.tokens() - (request_.apart ? 0 : 1);
  return std::max<int64_t>(usable, 0) / stride(length);
}

size_t EvaluatedText::clusters() const {
  if (request_.text != PerplexityText::packed) return documents_.size();
  return static_cast<size_t>(stream_.tokens() / stride(request_.lengths.back()) + 1);
}

std::vector<Pass> EvaluatedText::passes(size_t n) const {
  switch (request_.text) {
    case PerplexityText::documents:
      return passes_of_stretches(n);
    case PerplexityText::beginnings:
    case PerplexityText::packed: {
      Pass pass = pass_of_windows(n);
      if (pass.windows.empty()) return {};  // bins only use the longest length
      return {std::move(pass)};
    }
    case PerplexityText::short_documents:
      return {pass_of_short(n)};
  }
  require(false, "a text");
  return {};
}

/// For `documents`: (a) cuts every stretch of the longest length into windows of this length. If it
/// is not a multiple, the last window ends with the stretch and counts only its new targets. (b)
/// takes the window at the end of each such stretch.
std::vector<Pass> EvaluatedText::passes_of_stretches(size_t n) const {
  const int64_t length = request_.lengths[n], longest = request_.lengths.back();
  const size_t most = most_windows(request_.max_tokens, longest);
  const int64_t last_tokens = request_.last_tokens_at(length);
  const size_t most_last = most_windows(request_.max_tokens, last_tokens);
  Pass all, last;
  size_t stretches = 0;
  for (size_t d = 0; d < documents_.size(); ++d) {
    const auto [start, tokens] = documents_[d];
    for (int64_t stretch = start; stretch + longest < start + tokens; stretch += longest) {
      if (stretches < most) {
        for (int64_t begin = 0; begin < longest; begin += length) {
          const int64_t at = std::min(begin, longest - length);
          all.windows.push_back({stretch + at, length, begin - at, d});
        }
      }
      if (stretches < most_last) {
        last.windows.push_back({stretch + longest - length, length, length - last_tokens, d});
      }
      ++stretches;
    }
  }
  const bool windows = request_.asks_for("windows");
  std::vector<Pass> out;
  // Windows of the longest length also serve protocol (c).
  const bool by_position = request_.asks_for("bins") || request_.positions > 0;
  if (windows || (by_position && length == longest)) {
    all.name = windows ? "windows" : "bins";
    all.all = all.windows.size();
    out.push_back(std::move(all));
  }
  if (request_.asks_for("last")) {
    last.name = "last";
    last.last = last.windows.size();
    out.push_back(std::move(last));
  }
  return out;
}

/// For `beginnings` and packed text, all protocols use the same windows.
Pass EvaluatedText::pass_of_windows(size_t n) const {
  const int64_t length = request_.lengths[n], longest = request_.lengths.back();
  const bool by_position =
      length == longest && (request_.asks_for("bins") || request_.positions > 0);
  const bool packed = request_.text == PerplexityText::packed;
  int64_t windows = packed ? windows_of_packed(length) : documents();
  if (const auto count = request_.count_at(n)) windows = *count;
  const auto limit = [&](bool wanted, int64_t per) {
    const size_t most = most_windows(request_.max_tokens, per);
    return wanted ? std::min(static_cast<size_t>(windows), most) : size_t{0};
  };
  Pass out;
  out.all = limit(request_.asks_for("windows") || by_position, length);
  const int64_t last_tokens = request_.last_tokens_at(length);
  out.last = limit(request_.asks_for("last"), last_tokens);
  out.name = request_.asks_for("windows") ? "windows" : out.last > 0 ? "last" : "bins";
  for (size_t w = 0; w < std::max(out.all, out.last); ++w) {
    const int64_t from = w < out.all ? 0 : length - last_tokens;
    if (packed) {
      const int64_t begin = static_cast<int64_t>(w) * stride(length);
      out.windows.push_back({begin, length, from, static_cast<size_t>(begin / stride(longest))});
    } else {
      out.windows.push_back({documents_[w].begin, length, from, w});
    }
  }
  return out;
}

Pass EvaluatedText::pass_of_short(size_t n) const {
  Pass out;
  out.name = "short";
  const int64_t length = request_.lengths[n], before = n > 0 ? request_.lengths[n - 1] : 1;
  int64_t targets = 0;
  for (size_t d = 0; d < documents_.size(); ++d) {
    const auto [begin, tokens] = documents_[d];
    if (tokens <= before || tokens > length) continue;
    if (request_.max_tokens > 0 && targets >= request_.max_tokens) break;
    targets += tokens - 1;
    out.windows.push_back({begin, tokens - 1, 0, d});
  }
  out.all = out.windows.size();
  std::stable_sort(out.windows.begin(), out.windows.end(),
                   [](const Window& a, const Window& b) { return a.length > b.length; });
  return out;
}

}  // namespace bamtrain
