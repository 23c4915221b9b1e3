#include "eval/likelihoods.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/error.h"
#include "core/no_target.h"

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

/// A model planned for batches of B sequences of up to T tokens.
class Reader {
 public:
  Reader(const ScoredModel& of, std::optional<int64_t> document_start, int64_t B, int64_t T)
      : model_(make_network(of.config, of.training_length, of.backend, of.activations)),
        document_start_(document_start),
        inputs_(static_cast<size_t>(B * T)),
        targets_(inputs_.size()),
        likeliest_(inputs_.size()),
        losses_(inputs_.size()) {
    model_->plan(arena_, B, T, ModelUse::evaluation);
    arena_.commit(of.backend.memory());
    model_->set_masters(of.masters);
    model_->refresh();
  }

  /// Of requests of one length.
  void read(std::span<const EncodedRequest* const> batch, std::span<Likelihood> out) {
    const int64_t b = std::ssize(batch), t = inputs_of(*batch[0]);
    for (int64_t row = 0; row < b; ++row) {
      const EncodedRequest& request = *batch[static_cast<size_t>(row)];
      const auto at = inputs_.begin() + row * t, to = targets_.begin() + row * t;
      std::copy(request.ids.begin(), request.ids.end() - 1, at);
      std::fill_n(to, request.begin - 1, kNoTarget);
      std::copy(request.ids.begin() + request.begin, request.ids.end(), to + request.begin - 1);
    }
    model_->evaluate(inputs_.data(), targets_.data(), b, t, document_start_, losses_.data(),
                     nullptr, likeliest_.data());
    for (int64_t row = 0; row < b; ++row) {
      Likelihood& sum = out[static_cast<size_t>(row)] = {0, true};
      const auto first = static_cast<size_t>(row * t + batch[static_cast<size_t>(row)]->begin - 1);
      for (size_t i = first; i < static_cast<size_t>((row + 1) * t); ++i) {
        sum.logprob -= losses_[i];
        sum.greedy = sum.greedy && likeliest_[i] == targets_[i];
      }
    }
  }

 private:
  std::unique_ptr<Network> model_;
  std::optional<int64_t> document_start_;
  Arena arena_;
  std::vector<int32_t> inputs_, targets_, likeliest_;
  std::vector<double> losses_;
};

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
                                    const TaskProgress& progress) {
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
  const int64_t T = inputs_of(requests[order[0]]);
  const int64_t B = std::min(evaluation_batch(T), most_of_a_length(requests, unique));
  Reader reader(model, document_start, B, T);

  std::vector<Likelihood> of_unique(unique.size());
  int64_t tokens = 0, read = 0;
  for (const size_t i : unique) tokens += inputs_of(requests[i]);
  for (size_t first = 0; first < unique.size();) {
    const int64_t t = inputs_of(requests[unique[first]]);
    std::vector<const EncodedRequest*> batch;
    for (size_t i = first; i < unique.size() && std::ssize(batch) < B; ++i) {
      if (inputs_of(requests[unique[i]]) != t) break;
      batch.push_back(&requests[unique[i]]);
    }
    reader.read(batch, std::span(of_unique).subspan(first, batch.size()));
    first += batch.size();
    read += t * std::ssize(batch);
    progress(static_cast<double>(read) / static_cast<double>(tokens));
  }

  std::vector<Likelihood> out(requests.size());
  size_t u = 0;
  for (const size_t i : order) {
    if (!same(requests[unique[u]], requests[i])) ++u;
    out[i] = of_unique[u];
  }
  return out;
}

}  // namespace bamtrain
