#include "prompts/encoded_request.h"

#include <algorithm>

#include "core/abbreviate.h"
#include "core/error.h"
#include "prompts/python_text.h"

namespace bamtrain {

std::vector<int32_t> RequestEncoder::ids_of(const std::string& text) {
  std::vector<int32_t> ids;
  if (bos_ && document_start_ && *document_start_ == tokenizer_.bos()) {
    ids.push_back(tokenizer_.bos());
  }
  tokenizer_.encode(text, &cache_, &ids);
  return ids;
}

EncodedRequest RequestEncoder::encode(std::string_view context, std::string_view continuation,
                                      const std::string& where) {
  const std::string_view before = without_space_behind(context);
  if (before != context_) {
    context_ = before;
    context_ids_ = ids_of(context_);
  }
  EncodedRequest request;
  request.ids = ids_of(std::string(context) + std::string(continuation));
  request.begin = std::ssize(context_ids_);
  if (request.begin <= std::ssize(request.ids)) {
    std::copy(context_ids_.begin(), context_ids_.end(), request.ids.begin());
  }
  if (request.begin == 0) {
    if (!document_start_) {
      throw Error(ExitCode::data, where,
                  "a context: neither the shards nor the tokenizer have a BOS id",
                  "an empty context", "give some text before it, or remove it");
    }
    request.ids.insert(request.ids.begin(), static_cast<int32_t>(*document_start_));
    request.begin = 1;
  }
  if (request.begin >= std::ssize(request.ids)) {
    throw Error(ExitCode::data, where, "a continuation that adds tokens to its context",
                "\"" + abbreviate(std::string(continuation)) + "\", which adds none",
                "change it, or remove it");
  }
  return request;
}

}  // namespace bamtrain
