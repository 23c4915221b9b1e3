#pragma once
// A context and its continuation, as ids.

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace bamtrain {

struct EncodedRequest {
  std::vector<int32_t> ids;
  int64_t begin = 1;  // start of the continuation; at least 1: it needs a context
};

/// Encodes requests as lm-evaluation-harness does. White space at the context's end moves to the
/// continuation. The context keeps the ids it has alone, n of them. The continuation gets the ids
/// of the joint text after the first n, even if a token spans the boundary. Texts begin with BOS if
/// training documents did: an exported folder's tokenizer adds it there. If documents began with
/// another id, it is only put before an empty context, as in that harness.
class RequestEncoder {
 public:
  /// `document_start`: the id that begins a document, if any. `bos`: false for texts without BOS.
  /// `tokenizer` must outlive it.
  RequestEncoder(const Tokenizer& tokenizer, std::optional<int64_t> document_start, bool bos = true)
      : tokenizer_(tokenizer), document_start_(document_start), bos_(bos) {
    context_ids_ = ids_of(context_);
  }

  /// Throws Error (ExitCode::data) at `where` for an empty context without a document-start id, and
  /// for a continuation that adds no ids to the context's. Not thread-safe.
  EncodedRequest encode(std::string_view context, std::string_view continuation,
                        const std::string& where);

 private:
  std::vector<int32_t> ids_of(const std::string& text);

  const Tokenizer& tokenizer_;
  std::optional<int64_t> document_start_;
  bool bos_;
  Tokenizer::Cache cache_;
  std::string context_;  // encoded last; choices often share it
  std::vector<int32_t> context_ids_;
};

}  // namespace bamtrain
