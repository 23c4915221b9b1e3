#include "eval/likelihoods.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/error.h"
#include "core/no_target.h"
#include "model/growing_text.h"

namespace bamtrain {

namespace {

/// Tokens that the model reads: the last is only asked for.
int64_t inputs_of(const EncodedRequest& request) { return std::ssize(request.ids) - 1; }

bool same(const EncodedRequest& a, const EncodedRequest& b) {
  return a.begin == b.begin && a.ids == b.ids;
}

/// The longest first: what takes the most memory and time shows at once. Equal ones side by side.
std::vector<size_t> by_length(std::span<const EncodedRequest> requests) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    const EncodedRequest &a = requests[i], &b = requests[j];
    if (a.ids.size() != b.ids.size()) return a.ids.size() > b.ids.size();
    return a.ids != b.ids ? a.ids < b.ids : a.begin < b.begin;
  });
  return order;
}

/// The most different requests of one length, which follow each other.
int64_t most_of_a_length(std::span<const EncodedRequest> requests, std::span<const size_t> unique) {
  int64_t most = 0, count = 0;
  for (size_t i = 0; i < unique.size(); ++i) {
    const bool another =
        i > 0 && inputs_of(requests[unique[i]]) != inputs_of(requests[unique[i - 1]]);
    count = another ? 1 : count + 1;
    most = std::max(most, count);
  }
  return most;
}

/// Targets of a request's inputs, to the T places from `to` on.
void put_targets(const EncodedRequest& request, int32_t* to) {
  std::fill_n(to, request.begin - 1, kNoTarget);
  std::copy(request.ids.begin() + request.begin, request.ids.end(), to + request.begin - 1);
}

/// A model with room for requests of up to T inputs, B of one length at a time.
class Reader {
 public:
  Reader(const ScoredModel& of, std::optional<int64_t> document_start, int64_t B, int64_t T)
      : of_(of),
        document_start_(document_start),
        batch_(B),
        inputs_(static_cast<size_t>(B * T)),
        targets_(inputs_.size()),
        likeliest_(inputs_.size()),
        losses_(inputs_.size()) {}
  virtual ~Reader() = default;

  int64_t batch() const { return batch_; }
  int64_t planned_bytes() const { return arena_.total_bytes(); }
  void commit() {
    arena_.commit(of_.backend.memory());
    network().set_masters(of_.masters);
    network().refresh();
  }

  /// Of requests of one length.
  void read(std::span<const EncodedRequest* const> batch, std::span<Likelihood> out) {
    const int64_t b = std::ssize(batch), t = inputs_of(*batch[0]);
    for (int64_t row = 0; row < b; ++row) {
      const EncodedRequest& request = *batch[static_cast<size_t>(row)];
      std::copy(request.ids.begin(), request.ids.end() - 1, inputs_.begin() + row * t);
      put_targets(request, targets_.data() + row * t);
    }
    evaluate(b, t);
    for (int64_t row = 0; row < b; ++row) {
      Likelihood& sum = out[static_cast<size_t>(row)] = {};
      const int64_t begin = batch[static_cast<size_t>(row)]->begin;
      const auto first = static_cast<size_t>(row * t + begin - 1);
      for (size_t i = first; i < static_cast<size_t>((row + 1) * t); ++i) {
        sum.logprob -= losses_[i];
        if (likeliest_[i] == targets_[i]) ++sum.right;
      }
      sum.greedy = sum.right == t + 1 - begin;
    }
  }

 protected:
  virtual Network& network() = 0;
  /// losses_ and likeliest_ of inputs_ and targets_ (b, t).
  virtual void evaluate(int64_t b, int64_t t) = 0;

  const ScoredModel& of_;
  std::optional<int64_t> document_start_;
  int64_t batch_;
  Arena arena_;
  std::vector<int32_t> inputs_, targets_, likeliest_;
  std::vector<double> losses_;
};

class WholeReader final : public Reader {
 public:
  WholeReader(const ScoredModel& of, std::optional<int64_t> document_start, int64_t B, int64_t T)
      : Reader(of, document_start, B, T),
        model_(make_network(of.config, of.training_length, of.backend, of.activations)) {
    model_->plan(arena_, B, T, ModelUse::evaluation);
  }

 private:
  Network& network() override { return *model_; }
  void evaluate(int64_t b, int64_t t) override {
    model_->evaluate(inputs_.data(), targets_.data(), b, t, document_start_, losses_.data(),
                     nullptr, likeliest_.data());
  }

  std::unique_ptr<Network> model_;
};

/// One request at a time.
class PieceReader final : public Reader {
 public:
  PieceReader(const ScoredModel& of, std::optional<int64_t> document_start, int64_t T)
      : Reader(of, document_start, 1, T),
        model_(of.config, of.training_length, of.backend, of.activations) {
    model_.plan(arena_, 1, T, ModelUse::generation);
  }

 private:
  Network& network() override { return model_; }
  void evaluate(int64_t, int64_t t) override {
    evaluate_in_pieces(model_, inputs_.data(), targets_.data(), t, document_start_, losses_.data(),
                       likeliest_.data());
  }

  Model model_;
};

/// For `requests` different ones of T inputs, and others that are no longer.
std::unique_ptr<Reader> make_reader(const ScoredModel& model, std::optional<int64_t> document_start,
                                    int64_t requests, int64_t T) {
  if (reads_in_pieces(model.config, model.backend, T))
    return std::make_unique<PieceReader>(model, document_start, T);
  const int64_t B = std::min(evaluation_batch(T), requests);
  return std::make_unique<WholeReader>(model, document_start, B, T);
}

/// Of each unique request one process has the sums, the others zeros: their sum is exact.
void add_shares(std::span<const EncodedRequest> requests, std::span<const size_t> unique,
                const TaskShare& share, std::span<Likelihood> of_unique) {
  std::vector<double> sums;
  for (const Likelihood& l : of_unique) {
    sums.push_back(l.logprob);
    sums.push_back(static_cast<double>(l.right));
  }
  share.sum(sums.data(), std::ssize(sums));
  for (size_t u = 0; u < unique.size(); ++u) {
    const EncodedRequest& request = requests[unique[u]];
    Likelihood& l = of_unique[u];
    l.logprob = sums[2 * u];
    l.right = static_cast<int64_t>(sums[2 * u + 1]);
    l.greedy = l.right == std::ssize(request.ids) - request.begin;
  }
}

}  // namespace

size_t longest_request(std::span<const EncodedRequest> requests) {
  require(!requests.empty(), "requests");
  const auto longest = std::max_element(
      requests.begin(), requests.end(),
      [](const EncodedRequest& a, const EncodedRequest& b) { return a.ids.size() < b.ids.size(); });
  return static_cast<size_t>(longest - requests.begin());
}

std::vector<Likelihood> likelihoods(std::span<const EncodedRequest> requests,
                                    const ScoredModel& model, std::optional<int64_t> document_start,
                                    const TaskShare& share, const TaskProgress& progress) {
  for (const EncodedRequest& request : requests) {
    require(request.begin >= 1 && request.begin < std::ssize(request.ids),
            "a context and a continuation");
  }
  if (requests.empty()) return {};
  const std::vector<size_t> order = by_length(requests);
  std::vector<size_t> unique;
  for (const size_t i : order) {
    if (unique.empty() || !same(requests[unique.back()], requests[i])) unique.push_back(i);
  }
  const int64_t most = most_of_a_length(requests, unique);
  std::unique_ptr<Reader> reader;
  bool pieces = false;
  std::vector<Likelihood> of_unique(unique.size());
  int64_t tokens = 0, read = 0, batches = 0;
  for (const size_t i : unique) tokens += inputs_of(requests[i]);
  for (size_t first = 0; first < unique.size();) {
    const int64_t t = inputs_of(requests[unique[first]]);
    if (!reader || reads_in_pieces(model.config, model.backend, t) != pieces) {
      reader.reset();  // its memory, before another's
      pieces = reads_in_pieces(model.config, model.backend, t);
      reader = make_reader(model, document_start, most, t);
      reader->commit();
    }
    std::vector<const EncodedRequest*> batch;
    for (size_t i = first; i < unique.size() && std::ssize(batch) < reader->batch(); ++i) {
      if (inputs_of(requests[unique[i]]) != t) break;
      batch.push_back(&requests[unique[i]]);
    }
    if (batches++ % share.processes == share.rank) {
      reader->read(batch, std::span(of_unique).subspan(first, batch.size()));
    }
    first += batch.size();
    read += t * std::ssize(batch);
    progress(static_cast<double>(read) / static_cast<double>(tokens));
  }
  add_shares(requests, unique, share, of_unique);

  std::vector<Likelihood> out(requests.size());
  size_t u = 0;
  for (const size_t i : order) {
    if (!same(requests[unique[u]], requests[i])) ++u;
    out[i] = of_unique[u];
  }
  return out;
}

int64_t likelihoods_bytes(int64_t ids, int64_t requests, const ScoredModel& model) {
  return make_reader(model, std::nullopt, requests, ids - 1)->planned_bytes();
}

}  // namespace bamtrain
