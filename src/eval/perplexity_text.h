#pragma once
// The text of an evaluation of perplexity: which tokens are read in which windows, and which of
// their targets count.
//
//   documents   single documents longer than the longest length, each cut to a whole number of
//               longest windows; the same targets at every length
//   beginnings  the first window of each length of such documents
//   packed      all tokens in a row, as they lie in the shards or without the ids that begin and
//   end
//               documents, cut into windows of each length; a rest that fills none is left out
//   short       whole documents up to the longest length, each once; a length stands for the
//               documents that are longer than the length before it and no longer than itself
//
// Of documents no attention crosses into another, so that no mask is needed; that of packed text
// does, as in the papers that evaluate so.

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
  static constexpr int64_t kBin = 1024;        // where nobody chooses another width
  static constexpr int64_t kLastTokens = 256;  // likewise of K
  static constexpr int64_t kMostPositions = 4096;

  PerplexityText text = PerplexityText::documents;
  std::vector<int64_t> lengths;  // ascending, unique, from 1 to kMostLength
  /// Of windows, last, bins (perplexity.h). Of short documents there are whole ones alone.
  std::vector<std::string> protocols = {"windows", "last", "bins"};
  int64_t last_tokens = 0;  // K; 0: 256, or less where a length is shorter (last_tokens_at)
  int64_t max_tokens = 0;   // targets per length and protocol; 0: all
  /// The first so many documents, or windows of packed text: one number for all lengths, or of
  /// packed text one for each. Empty: all.
  std::vector<int64_t> counts = {};
  int64_t bin = kBin;                 // positions per bin
  int64_t positions = 0;              // whose mean losses are told, of the longest length; 0: none
  int64_t document_start = 0;         // the id that begins a document, of all texts but packed
  std::vector<int64_t> dropped = {};  // ids that packed text is without
  bool apart = false;                 // whether windows of packed text share no token
  /// How many bytes of text each id is; what is past its end has none. Empty: not known.
  std::vector<int64_t> token_bytes = {};

  bool asks_for(const std::string& protocol) const;
  /// K of windows of `length`. Of documents the shortest length limits it, so that every length has
  /// the same targets.
  int64_t last_tokens_at(int64_t length) const;
  /// Documents or windows at the n-th length; none: all.
  std::optional<int64_t> count_at(size_t n) const;
};

/// Takes the lengths, and counts of theirs, out of `request` that the text has nothing of: windows
/// that no document, or packed text, is long enough for, or of short documents none. Returns which
/// and why, "2048, 4096 left out: the longest document of PATH has 900 tokens"; "" where there are
/// none. Errors: (ExitCode::config) as ShardSet::documents.
std::string leave_out_lengths(const ShardSet& shards, PerplexityRequest* request);

/// Documents of the data of a text that has any.
struct DocumentCounts {
  int64_t all = 0;
  /// Where long ones are read: with room for a window of the longest length, as all that are read
  /// have, and of the shortest. Without regard to PerplexityRequest::counts.
  int64_t of_longest = 0, of_shortest = 0;
};

/// Tokens [begin, begin + length] of the text, the last of them a target alone.
struct Window {
  int64_t begin = 0, length = 0;
  int64_t from = 0;    // the first position whose target counts; those before it are context
  size_t cluster = 0;  // whose targets depend on each other: its document, or stretch
};

/// Windows that the model reads one after the other.
struct Pass {
  std::string name;  // the protocol that it is for, or the first of several
  std::vector<Window> windows;
  size_t all = 0;   // of the first so many all targets from Window::from on count for all
  size_t last = 0;  // of the first so many the last K do for last
};

class EvaluatedText {
 public:
  /// Reads all tokens of the shards. `shards` and `request` outlive this.
  /// Error (ExitCode::data) where the text has no window of the longest length, or fewer documents
  /// or windows than `counts` say, or of a group of short documents none; (ExitCode::usage) where
  /// last_tokens exceeds the shortest length, positions the longest, or there are other counts than
  /// lengths; (ExitCode::config) as ShardSet::documents.
  EvaluatedText(const ShardSet& shards, const PerplexityRequest& request);

  const TokenStream& stream() const { return stream_; }
  /// Documents that are read, of packed text 0.
  int64_t documents() const { return std::ssize(documents_); }
  const DocumentCounts& document_counts() const { return document_counts_; }
  /// More than any Window::cluster.
  size_t clusters() const;
  /// What is to be read at the n-th length; empty where nothing asks for it. Windows of one length
  /// follow each other, the longest first.
  std::vector<Pass> passes(size_t n) const;

 private:
  int64_t windows_of_packed(int64_t length) const;
  int64_t stride(int64_t length) const { return length + (request_.apart ? 1 : 0); }
  std::vector<Pass> passes_of_stretches(size_t n) const;
  Pass pass_of_windows(size_t n) const;
  Pass pass_of_short(size_t n) const;

  const PerplexityRequest& request_;
  DocumentCounts document_counts_;  // of what stream_ is made of
  TokenStream stream_;
  std::vector<TokenStream::Part> documents_;
};

}  // namespace bamtrain
