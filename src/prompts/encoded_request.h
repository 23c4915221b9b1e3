#pragma once
// A context and what continues it, as ids.

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
  int64_t begin = 1;  // of the continuation in them, 1 at least: something is read before it
};

/// Ids as lm-evaluation-harness takes them. White space at the context's end moves to the
/// continuation. The context has the ids that it has by itself; the continuation those that both as
/// one text have beyond as many, though a piece may reach over from the context. Texts begin with
/// BOS where documents of the training did, which is where an exported folder's tokenizer adds it;
/// documents that began with another id have it before an empty context alone, as that harness puts
/// it there.
class RequestEncoder {
 public:
  /// `document_start`: the id that begins a document, if any. `bos`: false for texts without BOS.
  /// `tokenizer` must outlive it.
  RequestEncoder(const Tokenizer& tokenizer, std::optional<int64_t> document_start, bool bos = true)
      : tokenizer_(tokenizer), document_start_(document_start), bos_(bos) {
    context_ids_ = ids_of(context_);
  }

  /// Error (ExitCode::data) at `where`: no context and nothing that begins a document, or a
  /// continuation that adds no ids to the context's. Not for several threads.
  EncodedRequest encode(std::string_view context, std::string_view continuation,
                        const std::string& where);

 private:
  std::vector<int32_t> ids_of(const std::string& text);

  const Tokenizer& tokenizer_;
  std::optional<int64_t> document_start_;
  bool bos_;
  Tokenizer::Cache cache_;
  std::string context_;  // encoded last: choices share it
  std::vector<int32_t> context_ids_;
};

}  // namespace bamtrain
