#include "eval/window_reader.h"

#include <algorithm>

#include "core/error.h"
#include "model/causal_lm.h"
#include "model/incremental_decoder.h"

namespace bamtrain {

struct WindowReader::Planned {
  explicit Planned(const ScoredModel& of)
      : model(of.config, of.training_length, of.backend, of.activations) {}

  Arena arena;
  Model model;
};

WindowReader::WindowReader(const ScoredModel& model, const TokenStream& stream, int64_t longest,
                           ForwardMode mode)
    : model_(model), stream_(stream), longest_(longest), batch_(evaluation_batch(longest)) {
  planned_ = plan(model, longest, mode, &chunked_);
  planned_->arena.commit(model.backend.memory());
  planned_->model.set_master_weights(model.master_weights);
  planned_->model.refresh();
  row_.resize(static_cast<size_t>(longest + 1));
  inputs_.resize(static_cast<size_t>(batch_ * longest));
  targets_.resize(inputs_.size());
  losses_.resize(inputs_.size());
}

WindowReader::~WindowReader() = default;

int64_t WindowReader::planned_bytes() const { return planned_->arena.total_bytes(); }

int64_t WindowReader::bytes(const ScoredModel& model, int64_t longest) {
  bool pieces = false;
  return plan(model, longest, ForwardMode::automatic, &pieces)->arena.total_bytes();
}

std::unique_ptr<WindowReader::Planned> WindowReader::plan(const ScoredModel& model, int64_t longest,
                                                          ForwardMode mode, bool* pieces) {
  check_causal_lm(model.config);
  const auto as = [&](bool in_pieces) {
    auto out = std::make_unique<Planned>(model);
    out->model.check_length(longest);
    const int64_t B = in_pieces ? 1 : evaluation_batch(longest);
    out->model.plan(out->arena, B, longest,
                    in_pieces ? ModelUse::generation : ModelUse::evaluation);
    return out;
  };
  *pieces = mode == ForwardMode::chunked;
  if (*pieces) check_incremental_decoding(model.config);
  std::unique_ptr<Planned> planned = as(*pieces);
  if (mode != ForwardMode::automatic ||
      !prefers_chunked_prefill(model.config, model.backend, longest)) {
    return planned;
  }
  std::unique_ptr<Planned> grown = as(true);
  *pieces = grown->arena.total_bytes() < planned->arena.total_bytes();
  return *pieces ? std::move(grown) : std::move(planned);
}

void WindowReader::read(const std::vector<Window>& windows,
                        const std::function<void(double)>& progress, const Take& f) {
  int64_t positions = 0, read = 0;
  for (const Window& w : windows) positions += w.length;
  const auto share = [&](int64_t done) {
    progress(static_cast<double>(done) / static_cast<double>(positions));
  };
  for (size_t first = 0; first < windows.size();) {
    const int64_t length = windows[first].length;
    require(length >= 1 && length <= longest_, "windows that memory was taken for");
    int64_t rows = 0;
    for (size_t n = first; n < windows.size() && rows < batch_; ++n, ++rows) {
      if (windows[n].length != length) break;
      stream_.read(windows[n].begin, length + 1, row_.data());
      std::copy_n(row_.data(), length, inputs_.data() + rows * length);
      int32_t* const targets = targets_.data() + rows * length;
      std::fill_n(targets, windows[n].from, kIgnoreIndex);
      std::copy(row_.data() + 1 + windows[n].from, row_.data() + 1 + length,
                targets + windows[n].from);
    }
    if (chunked_) {
      read_chunked(rows, length, [&](int64_t done) { share(read + done); });
    } else {
      planned_->model.evaluate(inputs_.data(), targets_.data(), rows, length, std::nullopt,
                               losses_.data());
    }
    for (int64_t r = 0; r < rows; ++r) {
      const size_t n = first + static_cast<size_t>(r);
      for (int64_t i = windows[n].from; i < length; ++i) {
        const auto at = static_cast<size_t>(r * length + i);
        f(n, i, targets_[at], losses_[at]);
      }
    }
    first += static_cast<size_t>(rows);
    read += rows * length;
    share(read);
  }
}

void WindowReader::read_chunked(int64_t rows, int64_t length,
                                const std::function<void(int64_t)>& progress) {
  for (int64_t at = 0; at < rows * length; at += length) {
    evaluate_in_chunks(planned_->model, inputs_.data() + at, targets_.data() + at, length,
                       std::nullopt, losses_.data() + at, nullptr,
                       [&](int64_t done) { progress(at + done); });
  }
}

}  // namespace bamtrain
