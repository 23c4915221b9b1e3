#include "eval/perplexity.h"

#include <algorithm>
#include <cmath>

#include "core/checked.h"
#include "core/clustered_mean.h"
#include "model/text_model.h"

namespace bamtrain {

namespace {

constexpr int64_t kMostLastTokens = 256;  // K of protocol (b) where nobody chooses it
constexpr int64_t kBin = PerplexityRequest::kBin;

/// One stretch of a document to predict: tokens [begin, begin + length], of which the losses of
/// targets at positions >= from count.
struct Window {
  DocumentSpan tokens;  // length + 1 of them
  int64_t from = 0;
  size_t document = 0;
};

/// The losses of targets, which are clustered by document.
class Losses {
 public:
  Losses(const PerplexityRequest& request, size_t documents)
      : token_bytes_(request.token_bytes), documents_(documents) {}

  void add(const Window& w, int32_t target, double loss) {
    documents_[w.document].add(loss);
    if (static_cast<size_t>(target) >= token_bytes_.size()) return;
    bytes_ += token_bytes_[static_cast<size_t>(target)];
  }

  /// What a protocol's result says of them.
  nlohmann::ordered_json result() const;

 private:
  const std::vector<int64_t>& token_bytes_;
  std::vector<Cluster> documents_;
  int64_t bytes_ = 0;
};

nlohmann::ordered_json Losses::result() const {
  const ClusteredMean m = clustered_mean(documents_);
  const auto json = [](const std::optional<double>& x) {
    return x ? nlohmann::ordered_json(*x) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json row = {{"loss", m.mean},
                                {"loss_error", json(m.error)},
                                {"perplexity", std::exp(m.mean)},
                                {"perplexity_error", json(m.error_of_exp())},
                                {"tokens", m.count},
                                {"documents", m.clusters}};
  if (bytes_ == 0) return row;
  row["bytes"] = bytes_;
  row["bits_per_byte"] =
      m.mean * static_cast<double>(m.count) / (std::log(2.0) * static_cast<double>(bytes_));
  return row;
}

/// A model with memory for one length.
class Evaluator {
 public:
  Evaluator(const ModelConfig& config, int64_t training_length, Backend& backend, Dtype activations,
            const Tensor& masters, const ShardSet& documents, int64_t length)
      : documents_(documents),
        length_(length),
        batch_(evaluation_batch(length)),
        model_(config, training_length, backend, activations) {
    check_text_model(config);
    model_.plan(arena_, batch_, length, ModelUse::evaluation);
    arena_.commit(backend.memory());
    model_.set_masters(masters);
    model_.refresh();
  }

  /// Calls f(window, position, target, loss) for every target of every window, in order.
  template <class F>
  void run(const std::vector<Window>& windows, const std::function<void(double)>& progress, F&& f) {
    std::vector<int32_t> row(static_cast<size_t>(length_ + 1));
    std::vector<int32_t> inputs(static_cast<size_t>(batch_ * length_)), targets(inputs.size());
    std::vector<double> losses(inputs.size());
    const auto n = static_cast<int64_t>(windows.size());
    for (int64_t first = 0; first < n; first += batch_) {
      const int64_t rows = std::min(batch_, n - first);
      for (int64_t r = 0; r < rows; ++r) {
        documents_.read_span(windows[static_cast<size_t>(first + r)].tokens, row.data());
        std::copy_n(row.data(), length_, inputs.data() + r * length_);
        std::copy_n(row.data() + 1, length_, targets.data() + r * length_);
      }
      model_.evaluate(inputs.data(), targets.data(), rows, length_, std::nullopt, losses.data());
      for (int64_t r = 0; r < rows; ++r) {
        const Window& w = windows[static_cast<size_t>(first + r)];
        for (int64_t i = w.from; i < length_; ++i) {
          const auto at = static_cast<size_t>(r * length_ + i);
          f(w, i, targets[at], losses[at]);
        }
      }
      progress(static_cast<double>(first + rows) / static_cast<double>(n));
    }
  }

 private:
  const ShardSet& documents_;
  int64_t length_, batch_;
  Arena arena_;
  Model model_;
};

/// Documents with room for at least one longest window and the target after it.
std::vector<DocumentSpan> long_documents(const ShardSet& shards, const PerplexityRequest& request) {
  const int64_t longest = request.lengths.back();
  std::vector<DocumentSpan> out;
  int64_t seen = 0, length = 0;
  for (const DocumentSpan& d : shards.documents(request.document_start)) {
    length = std::max(length, d.length);
    ++seen;
    if (d.length >= longest + 1) out.push_back(d);
  }
  if (out.empty()) {
    throw Error(ExitCode::data, shards.source(),
                "a document of at least " + std::to_string(longest + 1) + " tokens",
                std::to_string(seen) + " documents, the longest of " + std::to_string(length),
                "evaluate at shorter lengths or on data with longer documents");
  }
  return out;
}

/// (a) every longest stretch of every document, cut into windows of `length`. Where the longest is
/// no multiple of `length`, the last window ends with the stretch and counts its new targets only.
std::vector<Window> all_windows(const std::vector<DocumentSpan>& documents, int64_t longest,
                                int64_t length, int64_t max_targets) {
  std::vector<Window> out;
  int64_t targets = 0;
  for (size_t n = 0; n < documents.size(); ++n) {
    const DocumentSpan& d = documents[n];
    for (int64_t stretch = 0; stretch + longest + 1 <= d.length; stretch += longest) {
      if (max_targets > 0 && targets >= max_targets) return out;
      targets += longest;
      for (int64_t begin = 0; begin < longest; begin += length) {
        const int64_t start = std::min(begin, longest - length);
        out.push_back({{d.shard, d.begin + stretch + start, length + 1}, begin - start, n});
      }
    }
  }
  return out;
}

/// (b) the window of `length` that ends with each longest stretch; its last K targets count.
std::vector<Window> last_windows(const std::vector<DocumentSpan>& documents, int64_t longest,
                                 int64_t length, int64_t K, int64_t max_targets) {
  std::vector<Window> out;
  for (size_t n = 0; n < documents.size(); ++n) {
    const DocumentSpan& d = documents[n];
    for (int64_t stretch = 0; stretch + longest + 1 <= d.length; stretch += longest) {
      if (max_targets > 0 && static_cast<int64_t>(out.size()) * K >= max_targets) return out;
      out.push_back({{d.shard, d.begin + stretch + longest - length, length + 1}, length - K, n});
    }
  }
  return out;
}

bool asks_for(const PerplexityRequest& request, const char* protocol) {
  return std::find(request.protocols.begin(), request.protocols.end(), protocol) !=
         request.protocols.end();
}

int64_t last_tokens(const PerplexityRequest& request) {
  if (request.last_tokens > 0) return request.last_tokens;
  return std::min(kMostLastTokens, request.lengths.front());
}

void check_last_tokens(const PerplexityRequest& request) {
  require(
      !request.lengths.empty() && std::is_sorted(request.lengths.begin(), request.lengths.end()),
      "ascending lengths");
  const int64_t K = last_tokens(request), shortest = request.lengths.front();
  if (asks_for(request, "last") && K > shortest) {
    throw Error(ExitCode::usage, "--last-tokens",
                "1 to the shortest length, " + std::to_string(shortest), std::to_string(K),
                "change it or the lengths");
  }
}

}  // namespace

void check_perplexity_request(const ShardSet& documents, const PerplexityRequest& request) {
  check_last_tokens(request);
  long_documents(documents, request);
}

int64_t longest_document(const ShardSet& shards, int64_t document_start) {
  int64_t longest = 0;
  for (const DocumentSpan& d : shards.documents(document_start)) {
    longest = std::max(longest, d.length);
  }
  return longest;
}

nlohmann::ordered_json perplexity_against_length(const ModelConfig& config, int64_t training_length,
                                                 Backend& backend, Dtype activations,
                                                 const Tensor& masters, const ShardSet& shards,
                                                 const PerplexityRequest& request,
                                                 const PerplexityProgress& progress) {
  check_last_tokens(request);
  const std::vector<DocumentSpan> documents = long_documents(shards, request);
  const int64_t longest = request.lengths.back();
  const int64_t K = last_tokens(request);
  const auto wanted = [&](const char* protocol) { return asks_for(request, protocol); };
  nlohmann::ordered_json result;
  result["documents"] = documents.size();
  result["last_tokens"] = K;
  if (wanted("windows")) result["windows"] = nlohmann::ordered_json::array();
  if (wanted("last")) result["last"] = nlohmann::ordered_json::array();
  for (int64_t length : request.lengths) {
    Evaluator evaluator(config, training_length, backend, activations, masters, shards, length);
    const auto run = [&](const char* protocol, const std::vector<Window>& windows, auto&& add) {
      evaluator.run(
          windows, [&](double share) { progress(protocol, length, share); }, add);
    };
    const auto write = [&](const char* protocol, nlohmann::ordered_json row, const Losses& losses) {
      row.update(losses.result());
      result[protocol].push_back(row);
    };
    const bool with_bins = wanted("bins") && length == longest;
    std::vector<Losses> bins(static_cast<size_t>(with_bins ? ceil_div(longest, kBin) : 0),
                             Losses(request, documents.size()));
    if (wanted("windows") || with_bins) {
      // Windows of the longest length are the one pass of protocol (c).
      Losses losses(request, documents.size());
      run(wanted("windows") ? "windows" : "bins",
          all_windows(documents, longest, length, request.max_tokens),
          [&](const Window& w, int64_t position, int32_t target, double loss) {
            losses.add(w, target, loss);
            if (with_bins) bins[static_cast<size_t>(position / kBin)].add(w, target, loss);
          });
      if (wanted("windows")) write("windows", {{"length", length}}, losses);
    }
    if (wanted("last")) {
      Losses losses(request, documents.size());
      run("last", last_windows(documents, longest, length, K, request.max_tokens),
          [&](const Window& w, int64_t, int32_t target, double loss) {
            losses.add(w, target, loss);
          });
      write("last", {{"length", length}}, losses);
    }
    for (size_t bin = 0; bin < bins.size(); ++bin) {
      const int64_t from = static_cast<int64_t>(bin) * kBin;
      write("bins", {{"from", from}, {"to", std::min(longest, from + kBin)}}, bins[bin]);
    }
  }
  return result;
}

}  // namespace bamtrain
