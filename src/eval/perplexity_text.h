#pragma once
// The text of a perplexity evaluation: which tokens are read in which windows, and which of their
// targets count.
//
//   documents   single documents longer than the longest length, each cut to a whole number of
//               longest windows; the same targets at every length
//   beginnings  the first window of each length of such documents
//   packed      all tokens concatenated as in the shards, or without special tokens (BOS, EOS);
//               cut into windows of each length; a remainder that fills no window is dropped
//   short       whole documents up to the longest length, once each; a length stands for the
//               documents longer than the previous length and up to this one
//
// In documents, no attention crosses into another document, so no mask is needed. In packed text it
// does, as in the papers that use it.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/shard_set.h"
#include "eval/token_stream.h"

namespace bamtrain {

enum class PerplexityText { documents, beginnings, packed, short_documents };

/// Their names on the command line and in results.
inline const std::vector<std::pair<std::string, PerplexityText>> kPerplexityTexts = {
    {"documents", PerplexityText::documents},
    {"beginnings", PerplexityText::beginnings},
    {"packed", PerplexityText::packed},
    {"short", PerplexityText::short_documents}};
std::string name_of(PerplexityText text);

struct PerplexityRequest {
  static constexpr int64_t kMostLength = int64_t{1} << 24;
  static constexpr int64_t kBin = 1024;        // default width of bins
  static constexpr int64_t kLastTokens = 256;  // default K
  static constexpr int64_t kMostPositions = 4096;

  PerplexityText text = PerplexityText::documents;
  std::vector<int64_t> lengths;  // ascending, unique, from 1 to kMostLength
  /// Among windows, last and bins (perplexity.h). Short documents are always read whole.
  std::vector<std::string> protocols = {"windows", "last", "bins"};
  int64_t last_tokens = 0;  // K; 0: 256, or less for shorter lengths (last_tokens_at)
  int64_t max_tokens = 0;   // targets per length and protocol; 0: all
  /// The first N documents, or windows of packed text: one N for all lengths, or for packed text
  /// one per length. Empty: all.
  std::vector<int64_t> counts = {};
  int64_t bin = kBin;                 // positions per bin
  int64_t positions = 0;              // first positions of the longest length to report; 0: none
  int64_t document_start = 0;         // the id that begins a document; unused for packed text
  std::vector<int64_t> dropped = {};  // ids removed from packed text
  bool apart = false;                 // windows of packed text share no token
  /// Bytes of text of each id; ids past its end have no bytes. Empty: unknown.
  std::vector<int64_t> token_bytes = {};

  bool asks_for(const std::string& protocol) const;
  /// K for windows of `length`. With `documents` the shortest length limits it, so that every
  /// length has the same targets.
  int64_t last_tokens_at(int64_t length) const;
  /// Number of documents or windows at the n-th length; nullopt: all.
  std::optional<int64_t> count_at(size_t n) const;
};

/// Removes from `request` the lengths, with their counts, for which the text has no window: every
/// document, or the packed text, is too short, or no short document is in the length's group.
/// Returns which and why, "2048, 4096 left out: the longest document of PATH has 900 tokens", or ""
/// if all remain. Errors: (ExitCode::config) as ShardSet::documents.
std::string leave_out_lengths(const ShardSet& shards, PerplexityRequest* request);

/// Document counts of the data; 0 for packed text.
struct DocumentCounts {
  int64_t all = 0;
  /// For `documents` and `beginnings`: those with room for a window of the longest length, which
  /// are the ones read, and of the shortest. Ignores PerplexityRequest::counts.
  int64_t of_longest = 0, of_shortest = 0;
};

/// Tokens [begin, begin + length] of the text; the last one is only a target.
struct Window {
  int64_t begin = 0, length = 0;
  int64_t from = 0;    // first position whose target counts; earlier ones are context
  size_t cluster = 0;  // its document or stretch, whose targets are correlated
};

/// Windows that the model reads in sequence.
struct Pass {
  std::string name;  // its protocol, or the first of several
  std::vector<Window> windows;
  size_t all = 0;   // in the first `all` windows, targets from Window::from on count for all
  size_t last = 0;  // in the first `last` windows, the last K targets count for last
};

class EvaluatedText {
 public:
  /// Reads all tokens of the shards. `shards` and `request` must outlive this. Throws Error
  /// (ExitCode::data) if the text has no window of the longest length, fewer documents or windows
  /// than `counts`, or no document in a group of short documents. Throws Error (ExitCode::usage) if
  /// last_tokens exceeds the shortest length or positions the longest, or the number of counts does
  /// not fit the lengths. Throws Error (ExitCode::config) as ShardSet::documents.
  EvaluatedText(const ShardSet& shards, const PerplexityRequest& request);

  const TokenStream& stream() const { return stream_; }
  /// Number of documents read; 0 for packed text.
  int64_t documents() const { return std::ssize(documents_); }
  const DocumentCounts& document_counts() const { return document_counts_; }
  /// Greater than any Window::cluster.
  size_t clusters() const;
  /// Passes at the n-th length; empty if no protocol needs it. Windows of one length are
  /// consecutive, longest first.
  std::vector<Pass> passes(size_t n) const;

 private:
  int64_t windows_of_packed(int64_t length) const;
  int64_t stride(int64_t length) const { return length + (request_.apart ? 1 : 0); }
  std::vector<Pass> passes_of_stretches(size_t n) const;
  Pass pass_of_windows(size_t n) const;
  Pass pass_of_short(size_t n) const;

  const PerplexityRequest& request_;
  DocumentCounts document_counts_;  // counts of the data that stream_ was made from
  TokenStream stream_;
  std::vector<TokenStream::Part> documents_;
};

}  // namespace bamtrain
