#pragma once
// A model that reads windows of a text and says the loss at each of their targets.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "eval/perplexity_text.h"
#include "eval/task_scores.h"

namespace bamtrain {

/// How a window passes through the model: as one sequence, whose activations all lie in memory; or
/// piece by piece as a text that grows, of which keys and values do. Losses are the same but for
/// rounding. automatic: in pieces where they are the better way (reads_in_pieces) and take less
/// memory.
enum class Passage { automatic, whole, pieces };

class WindowReader {
 public:
  /// Takes memory for windows of up to `longest` positions. What `model` and `stream` refer to
  /// outlives this. Error (ExitCode::config) for a model that is no decoder (check_text_model) or
  /// knows no such length, and for pieces as check_grows; (ExitCode::device) without that memory.
  WindowReader(const ScoredModel& model, const TokenStream& stream, int64_t longest,
               Passage passage = Passage::automatic);
  ~WindowReader();

  bool reads_pieces() const { return pieces_; }
  int64_t planned_bytes() const;
  /// Those of a reader that chooses its passage, which takes none yet. Errors as its own.
  static int64_t bytes(const ScoredModel& model, int64_t longest);

  /// Calls f(n, position, target, loss) for the targets of the n-th window from Window::from on, in
  /// order, and progress(share) now and then. Windows of one length that follow each other are read
  /// together; of what is context alone there are no logits.
  /// REQUIRES: none is longer than `longest`.
  using Take = std::function<void(size_t n, int64_t position, int32_t target, double loss)>;
  void read(const std::vector<Window>& windows, const std::function<void(double)>& progress,
            const Take& f);

 private:
  struct Planned;
  /// And whether it reads in pieces.
  static std::unique_ptr<Planned> plan(const ScoredModel& model, int64_t longest, Passage passage,
                                       bool* pieces);
  void read_pieces(int64_t rows, int64_t length, const std::function<void(int64_t)>& progress);

  const ScoredModel& model_;
  const TokenStream& stream_;
  int64_t longest_, batch_;
  bool pieces_ = false;
  std::unique_ptr<Planned> planned_;
  std::vector<int32_t> row_, inputs_, targets_;
  std::vector<double> losses_;
};

}  // namespace bamtrain
