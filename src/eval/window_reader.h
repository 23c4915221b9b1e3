#pragma once
// Runs a model over windows of a text and reports the loss at each of their targets.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "eval/perplexity_text.h"
#include "eval/task_scores.h"

namespace bamtrain {

/// How a window passes through the model. full: in one forward pass, with all activations in
/// memory. chunked: by chunked prefill, with the KV cache in memory. Losses differ by rounding
/// only. automatic: chunked where that is preferred (prefers_chunked_prefill) and takes less
/// memory.
enum class ForwardMode { automatic, full, chunked };

class WindowReader {
 public:
  /// Allocates memory for windows of up to `longest` positions. `stream`, and what `model` refers
  /// to, must outlive this. Throws Error (ExitCode::config) for a model that is not a decoder
  /// (check_causal_lm) or does not support the length, and if chunked as
  /// check_incremental_decoding. Throws Error (ExitCode::device) if memory is insufficient.
  WindowReader(const ScoredModel& model, const TokenStream& stream, int64_t longest,
               ForwardMode mode = ForwardMode::automatic);
  ~WindowReader();

  bool is_chunked() const { return chunked_; }
  int64_t planned_bytes() const;
  /// planned_bytes() of a reader with ForwardMode::automatic, without creating one. Errors as the
  /// constructor's.
  static int64_t bytes(const ScoredModel& model, int64_t longest);

  /// Calls f(n, position, target, loss) for the targets of the n-th window from Window::from on, in
  /// order, and progress(share) now and then. Consecutive windows of one length are batched;
  /// positions that are only context get no logits. REQUIRES: no window is longer than `longest`.
  using Take = std::function<void(size_t n, int64_t position, int32_t target, double loss)>;
  void read(const std::vector<Window>& windows, const std::function<void(double)>& progress,
            const Take& f);

 private:
  struct Planned;
  /// Sets `pieces` to whether it is chunked.
  static std::unique_ptr<Planned> plan(const ScoredModel& model, int64_t longest, ForwardMode mode,
                                       bool* pieces);
  void read_chunked(int64_t rows, int64_t length, const std::function<void(int64_t)>& progress);

  const ScoredModel& model_;
  const TokenStream& stream_;
  int64_t longest_, batch_;
  bool chunked_ = false;
  std::unique_ptr<Planned> planned_;
  std::vector<int32_t> row_, inputs_, targets_;
  std::vector<double> losses_;
};

}  // namespace bamtrain
