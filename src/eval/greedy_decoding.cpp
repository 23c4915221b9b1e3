#include "eval/greedy_decoding.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/element.h"
#include "core/error.h"
#include "model/model.h"
#include "model/projection_views.h"

namespace bamtrain {

namespace {

using Ids = std::vector<int32_t>;

/// Longest first: what takes the most memory and time shows at once.
std::vector<size_t> prompts_by_length(std::span<const Ids> prompts) {
  std::vector<size_t> order(prompts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t i, size_t j) { return prompts[i].size() > prompts[j].size(); });
  return order;
}

/// Decodes batches of up to B texts of up to `longest` tokens.
class Writer {
 public:
  Writer(const ScoredModel& of, std::optional<int64_t> document_start, int64_t B, int64_t longest)
      : of_(of),
        document_start_(document_start),
        model_(of.config, of.training_length, of.backend, of.activations) {
    model_.plan(arena_, B, longest, ModelUse::generation);
    const Dtype P = of.backend.parameter_dtype();
    arena_.add("head.logits", &logits_, P, {B, logits_stride_of(of.config.outputs())});
    arena_.add("head.likeliest", &likeliest_, Dtype::i32, {B});
    arena_.add("head.losses", &losses_, P, {B});
    host_losses_.resize(static_cast<size_t>(losses_.bytes()));
  }

  int64_t planned_bytes() const { return arena_.total_bytes(); }
  void commit() {
    arena_.commit(of_.backend.memory());
    model_.set_master_weights(of_.master_weights);
    model_.refresh();
  }

  /// REQUIRES: the first prompt is the longest.
  std::vector<Ids> write(std::span<const Ids* const> prompts, const GreedyDecodingLimits& limits) {
    read(prompts);
    std::vector<Ids> written(prompts.size());
    std::vector<bool> ended(prompts.size());
    for (int64_t n = 1;; ++n) {
      const Ids next = likeliest(prompts.size(), limits.ids, ended);
      for (size_t b = 0; b < prompts.size(); ++b) {
        if (ended[b]) continue;
        ended[b] = std::find(limits.ends.begin(), limits.ends.end(), next[b]) != limits.ends.end();
        if (!ended[b]) written[b].push_back(next[b]);
      }
      if (n == limits.most || std::find(ended.begin(), ended.end(), false) == ended.end()) break;
      model_.append(next.data(), 1, document_start_, logits(prompts));
    }
    return written;
  }

 private:
  void read(std::span<const Ids* const> prompts) {
    const int64_t longest = std::ssize(*prompts[0]);
    std::vector<int64_t> padding;
    for (const Ids* p : prompts) padding.push_back(longest - std::ssize(*p));
    model_.begin_decoding(padding);
    Ids piece;
    for (int64_t at = 0; at < longest;) {
      const int64_t end = std::min(at + kMaxPrefillChunk, longest);
      piece.clear();
      for (size_t b = 0; b < prompts.size(); ++b) {
        for (int64_t i = at - padding[b]; i < end - padding[b]; ++i) {
          piece.push_back(i < 0 ? 0 : (*prompts[b])[static_cast<size_t>(i)]);
        }
      }
      const bool last = end == longest;
      model_.append(piece.data(), end - at, document_start_, last ? logits(prompts) : Tensor());
      at = end;
    }
  }

  Tensor logits(std::span<const Ids* const> prompts) const {
    return logits_.slice(0, 0, std::ssize(prompts)).slice(1, 0, of_.config.outputs());
  }

  /// The likeliest id for each text. Rows of ended texts also get one, which is ignored. The loss
  /// of the likeliest id is finite exactly if all logits are numbers and at least one is finite.
  Ids likeliest(size_t texts, int64_t ids, const std::vector<bool>& ended) {
    const auto of_texts = [&](const Tensor& t) {
      return t.slice(0, 0, static_cast<int64_t>(texts));
    };
    const Tensor z = of_texts(logits_).slice(1, 0, ids), place = of_texts(likeliest_),
                 loss = of_texts(losses_);
    Backend& backend = of_.backend;
    backend.argmax(place, z);
    backend.cross_entropy(loss, {}, z, place, 1);
    Ids next(texts);
    backend.download(next.data(), place);
    backend.download(host_losses_.data(), loss);
    const Tensor host(host_losses_.data(), losses_.dtype, {losses_.size()});
    for (size_t b = 0; b < texts; ++b) {
      if (ended[b] || std::isfinite(get(host, static_cast<int64_t>(b)))) continue;
      throw Error(ExitCode::nonfinite, "logits of the next token", "numbers", "NaN or infinity",
                  "the model has diverged: use an earlier checkpoint");
    }
    return next;
  }

  const ScoredModel& of_;
  std::optional<int64_t> document_start_;
  Arena arena_;
  Model model_;
  Tensor logits_;     // (B, O padded) P
  Tensor likeliest_;  // (B) i32
  Tensor losses_;     // (B) P, loss of the likeliest
  std::vector<char> host_losses_;
};

/// Tokens read: the longest prompt and all new tokens but the last.
int64_t longest_text(int64_t longest_prompt, int64_t most) { return longest_prompt + most - 1; }

int64_t prompts_at_once(int64_t prompts, int64_t longest) {
  return std::min(prompts, evaluation_batch(longest));
}

/// The results of all processes. One process has a text's ids, the others zeros, so their sum is
/// exact.
class Shared {
 public:
  Shared(size_t texts, int64_t most)
      : stride_(static_cast<size_t>(most) + 1), slots_(texts * stride_) {}

  void put(size_t text, const Ids& written) {
    double* const slot = &slots_[text * stride_];
    *slot = static_cast<double>(written.size());
    std::copy(written.begin(), written.end(), slot + 1);
  }
  void put_nonfinite(size_t text) { slots_[text * stride_] = kNonfinite; }

  /// Throws Error (ExitCode::nonfinite) on all processes if one of them met it.
  std::vector<Ids> sum(const TaskShare& share) {
    share.sum(slots_.data(), std::ssize(slots_));
    std::vector<Ids> out(slots_.size() / stride_);
    for (size_t text = 0; text < out.size(); ++text) {
      const double* const slot = &slots_[text * stride_];
      if (*slot == kNonfinite) {
        throw Error(ExitCode::nonfinite, "logits of the next token", "numbers", "NaN or infinity",
                    "the model has diverged: use an earlier checkpoint");
      }
      for (int64_t n = 1; n <= static_cast<int64_t>(*slot); ++n) {
        out[text].push_back(static_cast<int32_t>(slot[n]));
      }
    }
    return out;
  }

 private:
  static constexpr double kNonfinite = -1;
  size_t stride_;
  std::vector<double> slots_;  // for each text the number of its ids, then the ids
};

}  // namespace

std::vector<Ids> greedy_decode(std::span<const Ids> prompts, const GreedyDecodingLimits& limits,
                               const ScoredModel& model, std::optional<int64_t> document_start,
                               const TaskShare& share, const TaskProgress& progress) {
  require(limits.most >= 1 && limits.ids >= 1 && limits.ids <= model.config.outputs(),
          "tokens to write, of the model's");
  if (prompts.empty()) return {};
  const std::vector<size_t> order = prompts_by_length(prompts);
  require(!prompts[order.back()].empty(), "prompts with a token at least");
  const int64_t longest = longest_text(std::ssize(prompts[order[0]]), limits.most);
  const auto B = static_cast<size_t>(prompts_at_once(std::ssize(prompts), longest));
  Writer writer(model, document_start, static_cast<int64_t>(B), longest);
  writer.commit();
  Shared out(prompts.size(), limits.most);
  int64_t batches = 0;
  for (size_t first = 0; first < order.size(); first += B) {
    const size_t end = std::min(first + B, order.size());
    if (batches++ % share.processes == share.rank) {
      std::vector<const Ids*> batch;
      for (size_t i = first; i < end; ++i) batch.push_back(&prompts[order[i]]);
      try {
        const std::vector<Ids> written = writer.write(batch, limits);
        for (size_t i = first; i < end; ++i) out.put(order[i], written[i - first]);
      } catch (const Error& e) {
        if (e.code() != ExitCode::nonfinite) throw;
        out.put_nonfinite(order[first]);  // all processes throw below
      }
    }
    progress(static_cast<double>(end) / static_cast<double>(order.size()));
  }
  return out.sum(share);
}

int64_t greedy_decode_bytes(int64_t longest, int64_t prompts, int64_t most,
                            const ScoredModel& model) {
  const int64_t text = longest_text(longest, most);
  return Writer(model, std::nullopt, prompts_at_once(prompts, text), text).planned_bytes();
}

}  // namespace bamtrain
