#include "eval/perplexity.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/checked.h"
#include "core/clustered_mean.h"
#include "eval/paired_rows.h"
#include "eval/scored_targets.h"
#include "eval/window_reader.h"

namespace bamtrain {

namespace {

/// Losses of targets, clustered by document or stretch.
class Losses {
 public:
  Losses(const PerplexityRequest& request, size_t clusters)
      : request_(request), targets_(clusters) {}

  void add(const Window& w, int64_t position, int32_t target, double loss) {
    targets_.add(w.cluster, w.begin + position + 1, target, loss);
    const std::vector<int64_t>& bytes = request_.token_bytes;
    if (static_cast<size_t>(target) >= bytes.size()) return;
    bytes_ += bytes[static_cast<size_t>(target)];
  }

  /// Their row of a protocol's result.
  nlohmann::ordered_json result() const;
  ScoredTargets& targets() { return targets_; }

 private:
  const PerplexityRequest& request_;
  ScoredTargets targets_;
  int64_t bytes_ = 0;
};

nlohmann::ordered_json Losses::result() const {
  const ClusteredMean m = clustered_mean(targets_.clusters());
  const auto json = [](const std::optional<double>& x) {
    return x ? nlohmann::ordered_json(*x) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json row = {{"loss", m.mean},
                                {"loss_error", json(m.error)},
                                {"perplexity", std::exp(m.mean)},
                                {"perplexity_error", json(m.error_of_exp())},
                                {"tokens", m.count}};
  row[request_.text == PerplexityText::packed ? "stretches" : "documents"] = m.clusters;
  if (bytes_ == 0) return row;
  row["bytes"] = bytes_;
  row["bits_per_byte"] =
      m.mean * static_cast<double>(m.count) / (std::log(2.0) * static_cast<double>(bytes_));
  return row;
}

/// Mean losses by position, over windows of one length.
class PositionLosses {
 public:
  explicit PositionLosses(int64_t positions)
      : positions_(positions),
        step_(ceil_div(positions, PerplexityRequest::kMostPositions)),
        means_(static_cast<size_t>(ceil_div(positions, step_))) {}

  void add(int64_t position, double loss) {
    if (position < positions_) means_[static_cast<size_t>(position / step_)].add(loss);
  }

  nlohmann::ordered_json result() const {
    nlohmann::ordered_json losses = nlohmann::ordered_json::array();
    for (const Cluster& c : means_) losses.push_back(c.sum / static_cast<double>(c.count));
    const int64_t first = std::min(step_, positions_);
    return {{"to", positions_},
            {"step", step_},
            {"windows", means_.front().count / first},
            {"loss", losses}};
  }

 private:
  int64_t positions_, step_;
  std::vector<Cluster> means_;
};

/// The requested results of one length.
struct Sums {
  Sums(const PerplexityRequest& r, int64_t length, size_t clusters)
      : all(r, clusters), last(r, clusters) {
    if (r.text == PerplexityText::short_documents || length != r.lengths.back()) return;
    if (r.asks_for("bins")) {
      for (int64_t from = 0; from < length; from += r.bin) bins.emplace_back(r, clusters);
    }
    if (r.positions > 0) positions.emplace(r.positions);
  }

  Losses all, last;
  std::vector<Losses> bins;
  std::optional<PositionLosses> positions;
};

void read(const Pass& pass, const PerplexityRequest& r, WindowReader& reader,
          const std::function<void(double)>& progress, Sums* sums) {
  reader.read(pass.windows, progress, [&](size_t n, int64_t position, int32_t target, double loss) {
    const Window& w = pass.windows[n];
    if (n < pass.all) {
      sums->all.add(w, position, target, loss);
      if (!sums->bins.empty()) {
        sums->bins[static_cast<size_t>(position / r.bin)].add(w, position, target, loss);
      }
      if (sums->positions) sums->positions->add(position, loss);
    }
    if (n < pass.last && position >= w.length - r.last_tokens_at(w.length)) {
      sums->last.add(w, position, target, loss);
    }
  });
}

void write_rows(const PerplexityRequest& r, size_t n, Sums* sums, PairedRows* paired,
                nlohmann::ordered_json* result) {
  const int64_t length = r.lengths[n];
  const auto write = [&](const char* protocol, nlohmann::ordered_json row, Losses* losses) {
    nlohmann::ordered_json& rows = (*result)[protocol];
    row.update(losses->result());
    rows.push_back(row);
    ScoredTargets& targets = losses->targets();
    paired->add(protocol, rows.size() - 1, targets.digest(), targets.clusters());
  };
  if (r.text == PerplexityText::short_documents) {
    const int64_t from = n > 0 ? r.lengths[n - 1] + 1 : 2;
    return write("short", {{"from", from}, {"length", length}}, &sums->all);
  }
  if (r.asks_for("windows")) write("windows", {{"length", length}}, &sums->all);
  if (r.asks_for("last")) write("last", {{"length", length}}, &sums->last);
  for (size_t bin = 0; bin < sums->bins.size(); ++bin) {
    const int64_t from = static_cast<int64_t>(bin) * r.bin;
    write("bins", {{"from", from}, {"to", std::min(length, from + r.bin)}}, &sums->bins[bin]);
  }
  if (sums->positions) (*result)["positions"] = sums->positions->result();
}

}  // namespace

DocumentCounts check_perplexity_request(const ShardSet& shards, const PerplexityRequest& request) {
  return EvaluatedText(shards, request).document_counts();
}

int64_t perplexity_bytes(const ScoredModel& model, const std::vector<int64_t>& lengths) {
  int64_t most = 0;
  for (const int64_t length : lengths) most = std::max(most, WindowReader::bytes(model, length));
  return most;
}

nlohmann::ordered_json perplexity_against_length(const ModelConfig& config, int64_t training_length,
                                                 Backend& backend, Dtype activations,
                                                 const Tensor& master_weights,
                                                 const ShardSet& shards,
                                                 const PerplexityRequest& request,
                                                 const PerplexityProgress& progress) {
  const EvaluatedText text(shards, request);
  const ScoredModel model = {config, training_length, backend, activations, master_weights};
  nlohmann::ordered_json result = {{"text", name_of(request.text)}};
  if (request.text == PerplexityText::packed) {
    result["tokens"] = text.stream().tokens();
    if (!request.dropped.empty()) result["dropped"] = request.dropped;
  } else {
    result["documents"] = text.documents();
    result["all_documents"] = text.document_counts().all;
  }
  const bool is_short = request.text == PerplexityText::short_documents;
  if (!is_short) result["last_tokens"] = request.last_tokens_at(request.lengths.back());
  PairedRows paired;
  for (size_t n = 0; n < request.lengths.size(); ++n) {
    const int64_t length = request.lengths[n];
    const std::vector<Pass> passes = text.passes(n);
    if (passes.empty()) continue;
    Sums sums(request, length, text.clusters());
    WindowReader reader(model, text.stream(), is_short ? length - 1 : length);
    for (const Pass& pass : passes) {
      read(
          pass, request, reader, [&](double share) { progress(pass.name, length, share); }, &sums);
    }
    write_rows(request, n, &sums, &paired, &result);
  }
  paired.write(training_length, &result);
  return result;
}

}  // namespace bamtrain
