#include "eval/log_likelihoods.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/error.h"
#include "core/ignore_index.h"
#include "eval/shared_prefixes.h"
#include "model/incremental_decoder.h"

namespace bamtrain {

namespace {

using Requests = std::span<const EncodedRequest>;

bool same(const EncodedRequest& a, const EncodedRequest& b) {
  return a.begin == b.begin && a.ids == b.ids;
}

/// Longest first: what takes the most memory and time shows at once. Duplicates are adjacent.
std::vector<size_t> requests_by_length(Requests requests) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    const EncodedRequest &a = requests[i], &b = requests[j];
    if (a.ids.size() != b.ids.size()) return a.ids.size() > b.ids.size();
    return a.ids != b.ids ? a.ids < b.ids : a.begin < b.begin;
  });
  return order;
}

/// The largest number of consecutive requests with one length.
int64_t most_of_a_length(Requests requests, std::span<const size_t> order) {
  int64_t most = 0, count = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool another =
        i > 0 && inputs_of(requests[order[i]]) != inputs_of(requests[order[i - 1]]);
    count = another ? 1 : count + 1;
    most = std::max(most, count);
  }
  return most;
}

/// Rows of inputs and targets of a model, and its results.
struct Rows {
  explicit Rows(int64_t count) : inputs(static_cast<size_t>(count)), targets(inputs.size()) {
    likeliest.resize(inputs.size());
    losses.resize(inputs.size());
  }

  /// Puts `count` ids of a request, from `first` on, into rows from `row` on. Targets are its
  /// continuation.
  void put(const EncodedRequest& request, int64_t first, int64_t count, int64_t row) {
    for (int64_t n = first; n < first + count; ++n, ++row) {
      const auto at = static_cast<size_t>(row), id = static_cast<size_t>(n);
      inputs[at] = request.ids[id];
      targets[at] = n + 1 < request.begin ? kIgnoreIndex : request.ids[id + 1];
    }
  }
  /// Fills rows with padding, without targets.
  void pad(int64_t row, int64_t count) {
    std::fill_n(inputs.begin() + row, count, 0);
    std::fill_n(targets.begin() + row, count, kIgnoreIndex);
  }
  /// Adds the rows' results.
  void add_to(LogLikelihood* sum, int64_t row, int64_t count) const {
    for (auto i = static_cast<size_t>(row); i < static_cast<size_t>(row + count); ++i) {
      if (targets[i] == kIgnoreIndex) continue;
      sum->logprob -= losses[i];
      sum->right += likeliest[i] == targets[i];
    }
  }

  std::vector<int32_t> inputs, targets, likeliest;
  std::vector<double> losses;
};

/// Reads requests of up to T inputs in one forward pass, up to B of one length at a time.
class WholeReader {
 public:
  WholeReader(const ScoredModel& of, std::optional<int64_t> document_start, int64_t B, int64_t T)
      : of_(of),
        document_start_(document_start),
        batch_(B),
        model_(make_network(of.config, of.training_length, of.backend, of.activations)),
        rows_(B * T) {
    model_->plan(arena_, B, T, ModelUse::evaluation);
  }

  int64_t batch() const { return batch_; }
  int64_t planned_bytes() const { return arena_.total_bytes(); }
  void commit() {
    arena_.commit(of_.backend.memory());
    model_->set_master_weights(of_.master_weights);
    model_->refresh();
  }

  /// Reads a batch of requests of one length; adds to their entries of `out`.
  void read(Requests requests, std::span<const size_t> batch, std::span<LogLikelihood> out) {
    const int64_t b = std::ssize(batch), t = inputs_of(requests[batch[0]]);
    for (int64_t row = 0; row < b; ++row) {
      rows_.put(requests[batch[static_cast<size_t>(row)]], 0, t, row * t);
    }
    model_->evaluate(rows_.inputs.data(), rows_.targets.data(), b, t, document_start_,
                     rows_.losses.data(), nullptr, rows_.likeliest.data());
    for (int64_t row = 0; row < b; ++row) {
      rows_.add_to(&out[batch[static_cast<size_t>(row)]], row * t, t);
    }
  }

 private:
  const ScoredModel& of_;
  std::optional<int64_t> document_start_;
  int64_t batch_;
  Arena arena_;
  std::unique_ptr<Network> model_;
  Rows rows_;
};

/// Reads up to B contexts in a batch, of texts of up to T inputs. Each context is prefilled once,
/// in chunks; then each of its requests in turn reads its suffix.
class ContextReader {
 public:
  ContextReader(const ScoredModel& of, std::optional<int64_t> document_start, int64_t B, int64_t T)
      : of_(of),
        document_start_(document_start),
        model_(of.config, of.training_length, of.backend, of.activations),
        rows_(B * std::min(T, kMaxPrefillChunk)) {
    model_.plan(arena_, B, T, ModelUse::generation);
  }

  int64_t planned_bytes() const { return arena_.total_bytes(); }
  void commit() {
    arena_.commit(of_.backend.memory());
    model_.set_master_weights(of_.master_weights);
    model_.refresh();
  }

  /// Adds to the requests' entries of `out`. REQUIRES: the first context has the most requests.
  void read(Requests requests, std::span<const SharedPrefix> batch, std::span<LogLikelihood> out) {
    prefill_prefixes(requests, batch);
    const size_t rounds = batch[0].requests.size();
    const std::optional<DecodeState> state =
        rounds > 1 ? std::optional(model_.decode_state()) : std::nullopt;
    for (size_t n = 0; n < rounds; ++n) {
      if (n > 0) model_.rollback(*state);
      read_suffixes(requests, batch, n, out);
    }
  }

 private:
  /// Left-padded.
  void prefill_prefixes(Requests requests, std::span<const SharedPrefix> batch) {
    int64_t longest = 0;
    for (const SharedPrefix& c : batch) longest = std::max(longest, c.tokens);
    std::vector<int64_t> padding;
    for (const SharedPrefix& c : batch) padding.push_back(longest - c.tokens);
    model_.begin_decoding(padding);
    for_pieces(longest, [&](int64_t at, int64_t n) {
      for (size_t b = 0; b < batch.size(); ++b) {
        const int64_t row = static_cast<int64_t>(b) * n;
        const int64_t none = std::clamp<int64_t>(padding[b] - at, 0, n);
        rows_.pad(row, none);
        rows_.put(requests[batch[b].requests[0]], at + none - padding[b], n - none, row + none);
      }
      model_.append(rows_.inputs.data(), n, document_start_, {});
    });
  }

  /// Reads the suffix of each context's request `number`, if it has one. Right-padded.
  void read_suffixes(Requests requests, std::span<const SharedPrefix> batch, size_t number,
                     std::span<LogLikelihood> out) {
    const auto rest_of = [&](const SharedPrefix& c) {
      return number < c.requests.size() ? inputs_of(requests[c.requests[number]]) - c.tokens : 0;
    };
    int64_t longest = 0;
    for (const SharedPrefix& c : batch) longest = std::max(longest, rest_of(c));
    for_pieces(longest, [&](int64_t at, int64_t n) {
      /// Calls f(context, first row, rows) for each suffix that has tokens left.
      const auto for_rests = [&](auto&& f) {
        for (size_t b = 0; b < batch.size(); ++b) {
          const int64_t count = std::clamp<int64_t>(rest_of(batch[b]) - at, 0, n);
          if (count > 0) f(batch[b], static_cast<int64_t>(b) * n, count);
        }
      };
      rows_.pad(0, std::ssize(batch) * n);
      for_rests([&](const SharedPrefix& c, int64_t row, int64_t count) {
        rows_.put(requests[c.requests[number]], c.tokens + at, count, row);
      });
      model_.append(rows_.inputs.data(), rows_.targets.data(), n, document_start_,
                    rows_.losses.data(), rows_.likeliest.data());
      for_rests([&](const SharedPrefix& c, int64_t row, int64_t count) {
        rows_.add_to(&out[c.requests[number]], row, count);
      });
    });
  }

  /// Calls f(first, count) for each prefill chunk.
  template <class F>
  static void for_pieces(int64_t tokens, F&& f) {
    for (int64_t at = 0; at < tokens; at += kMaxPrefillChunk) {
      f(at, std::min(kMaxPrefillChunk, tokens - at));
    }
  }

  const ScoredModel& of_;
  std::optional<int64_t> document_start_;
  Arena arena_;
  Model model_;
  Rows rows_;
};

/// Distinct requests by the way they are read.
struct Plan {
  std::vector<SharedPrefix> long_ones;  // too long for one forward pass
  std::vector<SharedPrefix> shared;     // shorter contexts of several requests
  std::vector<size_t> whole;            // the others, longest first

  Plan(Requests requests, const ScoredModel& model) {
    std::vector<SharedPrefix> contexts;
    if (supports_chunked_prefill(model.config, model.backend)) {
      contexts = shared_prefixes(requests, kMaxPrefillChunk);
    } else {
      for (const size_t n : requests_by_length(requests)) contexts.push_back({0, {n}});
    }
    for (SharedPrefix& c : contexts) {
      const int64_t T = inputs_of(requests[c.requests[0]]);
      if (prefers_chunked_prefill(model.config, model.backend, T)) {
        long_ones.push_back(std::move(c));
      } else if (c.requests.size() > 1) {
        shared.push_back(std::move(c));
      } else {
        whole.push_back(c.requests[0]);
      }
    }
    std::stable_sort(whole.begin(), whole.end(), [&](size_t i, size_t j) {
      return inputs_of(requests[i]) > inputs_of(requests[j]);
    });
  }
};

/// Batch size, and inputs of the longest text.
struct ReaderSize {
  int64_t B = 0, T = 0;
};
ReaderSize size_of(std::span<const SharedPrefix> contexts, Requests requests) {
  ReaderSize s;
  for (const SharedPrefix& c : contexts) s.T = std::max(s.T, inputs_of(requests[c.requests[0]]));
  if (s.T > 0) s.B = std::min(evaluation_batch(s.T), std::ssize(contexts));
  return s;
}
/// For requests in one forward pass, longest first.
ReaderSize size_of(std::span<const size_t> order, Requests requests) {
  if (order.empty()) return {};
  const int64_t T = inputs_of(requests[order[0]]);
  return {std::min(evaluation_batch(T), most_of_a_length(requests, order)), T};
}

/// State shared by all readers of one call.
struct Reading {
  const ScoredModel& model;
  std::optional<int64_t> document_start;
  Requests requests;
  const TaskShare& share;
  std::span<LogLikelihood> out;  // by request; zero for those of other processes
  std::function<void(int64_t)> read;
  int64_t batches = 0;  // so far, over all processes

  void contexts(std::vector<SharedPrefix> contexts) {
    if (contexts.empty()) return;
    const auto [B, T] = size_of(contexts, requests);
    ContextReader reader(model, document_start, B, T);
    reader.commit();
    for (const auto& batch : prefix_batches(std::move(contexts), requests, B)) {
      if (mine()) reader.read(requests, batch, out);
      int64_t tokens = 0;
      for (const SharedPrefix& c : batch) tokens += inputs_of(c, requests);
      read(tokens);
    }
  }

  void wholes(std::span<const size_t> order) {
    if (order.empty()) return;
    const auto [B, T] = size_of(order, requests);
    WholeReader reader(model, document_start, B, T);
    reader.commit();
    for (size_t first = 0; first < order.size();) {
      const int64_t t = inputs_of(requests[order[first]]);
      size_t end = first;
      while (end < order.size() && inputs_of(requests[order[end]]) == t &&
             static_cast<int64_t>(end - first) < reader.batch()) {
        ++end;
      }
      if (mine()) reader.read(requests, order.subspan(first, end - first), out);
      read(t * static_cast<int64_t>(end - first));
      first = end;
    }
  }

 private:
  /// Whether this process reads the next batch.
  bool mine() { return batches++ % share.processes == share.rank; }
};

/// Requests without duplicates, and the index of each request among them.
struct Different {
  std::vector<EncodedRequest> requests;
  std::vector<size_t> number;
};
Different different_of(Requests requests) {
  Different d;
  d.number.resize(requests.size());
  for (const size_t i : requests_by_length(requests)) {
    if (d.requests.empty() || !same(d.requests.back(), requests[i])) {
      d.requests.push_back(requests[i]);
    }
    d.number[i] = d.requests.size() - 1;
  }
  return d;
}

/// One process has a request's sums, the others zeros, so the total is exact.
void add_shares(const TaskShare& share, std::span<LogLikelihood> of_requests) {
  std::vector<double> sums;
  for (const LogLikelihood& l : of_requests) {
    sums.push_back(l.logprob);
    sums.push_back(static_cast<double>(l.right));
  }
  share.sum(sums.data(), std::ssize(sums));
  for (size_t i = 0; i < of_requests.size(); ++i) {
    of_requests[i].logprob = sums[2 * i];
    of_requests[i].right = static_cast<int64_t>(sums[2 * i + 1]);
  }
}

}  // namespace

int64_t log_likelihoods_bytes(Requests requests, const ScoredModel& model) {
  const auto [different, number] = different_of(requests);
  const Plan plan(different, model);
  int64_t most = 0, ids = 0;
  for (const auto* of : {&plan.long_ones, &plan.shared}) {
    const auto [B, T] = size_of(*of, different);
    if (B > 0) most = std::max(most, ContextReader(model, std::nullopt, B, T).planned_bytes());
  }
  const auto [B, T] = size_of(plan.whole, different);
  if (B > 0) most = std::max(most, WholeReader(model, std::nullopt, B, T).planned_bytes());
  for (const EncodedRequest& r : different) ids += std::ssize(r.ids);
  return most + ids * static_cast<int64_t>(sizeof(int32_t));
}

size_t longest_request(std::span<const EncodedRequest> requests) {
  require(!requests.empty(), "requests");
  const auto longest = std::max_element(
      requests.begin(), requests.end(),
      [](const EncodedRequest& a, const EncodedRequest& b) { return a.ids.size() < b.ids.size(); });
  return static_cast<size_t>(longest - requests.begin());
}

std::vector<LogLikelihood> log_likelihoods(Requests requests, const ScoredModel& model,
                                           std::optional<int64_t> document_start,
                                           const TaskShare& share, const TaskProgress& progress) {
  for (const EncodedRequest& request : requests) {
    require(request.begin >= 1 && request.begin < std::ssize(request.ids),
            "a context and a continuation");
  }
  if (requests.empty()) return {};
  const auto [different, number] = different_of(requests);
  const Plan plan(different, model);
  int64_t tokens = 0, read = 0;
  for (const auto* of : {&plan.long_ones, &plan.shared}) {
    for (const SharedPrefix& c : *of) tokens += inputs_of(c, different);
  }
  for (const size_t n : plan.whole) tokens += inputs_of(different[n]);
  std::vector<LogLikelihood> of_different(different.size());
  Reading reading = {model, document_start, different, share, of_different, [&](int64_t more) {
                       read += more;
                       progress(static_cast<double>(read) / static_cast<double>(tokens));
                     }};
  reading.contexts(plan.long_ones);
  reading.contexts(plan.shared);
  reading.wholes(plan.whole);
  add_shares(share, of_different);

  std::vector<LogLikelihood> out;
  for (size_t i = 0; i < requests.size(); ++i) {
    LogLikelihood& l = out.emplace_back(of_different[number[i]]);
    l.greedy = l.right == std::ssize(requests[i].ids) - requests[i].begin;
  }
  return out;
}

int64_t log_likelihoods_bytes(int64_t ids, int64_t requests, const ScoredModel& model) {
  const int64_t T = ids - 1, most = evaluation_batch(T);
  const auto contexts = [&](int64_t B) {
    return ContextReader(model, std::nullopt, B, T).planned_bytes();
  };
  if (prefers_chunked_prefill(model.config, model.backend, T)) return contexts(1);
  const int64_t whole =
      WholeReader(model, std::nullopt, std::min(most, requests), T).planned_bytes();
  if (requests == 1 || !supports_chunked_prefill(model.config, model.backend)) return whole;
  return std::max(whole, contexts(std::min(most, requests / 2)));
}

}  // namespace bamtrain
