#include "inspect/layer_view.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "core/element.h"
#include "core/parallel.h"
#include "ops/reference/attention_row.h"
#include "ops/reference/normalizers.h"

namespace bamtrain {

namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kCheckedRows = 64;  // approximate

/// Calls f(member) for each map of a layer.
template <class F>
void for_maps(bool bias, bool mix, F&& f) {
  f(&AttentionValues::scores);
  if (mix) f(&AttentionValues::prior);
  if (bias || mix) f(&AttentionValues::bias);
  f(&AttentionValues::logits);
  f(&AttentionValues::weights);
}

/// A head's row with its weights.
struct WeighedRow {
  const AttentionRow& row;
  const RowWeights& weights;

  std::vector<double> values(std::vector<float> AttentionValues::*member) const {
    if (member == &AttentionValues::scores) return values_of(row.s);
    if (member == &AttentionValues::prior) return values_of(row.B);
    if (member == &AttentionValues::bias) return values_of(row.added());
    if (member == &AttentionValues::logits) return values_of(row.z);
    return weights.p;
  }
};

class Viewer {
 public:
  Viewer(LayerView& view, const Attention& a, const Tensor& out, Paths& paths)
      : view_(view),
        a_(a),
        out_(out),
        paths_(paths),
        bias_(!std::holds_alternative<Nothing>(a.bias)),
        row_errors_(static_cast<size_t>(view.T), 0.0),
        reached_(row_errors_) {
    const auto H = static_cast<size_t>(view.H), T = static_cast<size_t>(view.T);
    const auto side = static_cast<size_t>(view.map.side);
    for_maps(bias_, static_cast<bool>(a.mix), [&](auto member) {
      const float none = member == &AttentionValues::weights ? 0 : kNone;
      (view.maps.*member).assign(H * side * side, none);
      (view.last.*member).assign(H * T, none);
    });
    view.seen.assign(side * side, 0);
    for (auto* numbers : {&view.entropy, &view.nonzero_keys, &view.centroid, &view.largest}) {
      numbers->assign(H * T, 0);
    }
    if (a.scale) view.scale.assign(H * T, 0);
    view.keys.assign(T, 0);
    for_elements(out, [&](int64_t at, int64_t) {
      largest_out_ = std::max(largest_out_, std::abs(get(out, at)));
    });
  }

  void run() {
    parallel_for(view_.map.side, [this](int64_t block) { view_block(block); });
    double reached = 0;
    for (size_t i = 0; i < reached_.size(); ++i) {
      view_.error = std::max(view_.error, row_errors_[i]);
      reached += reached_[i];
    }
    view_.reached = reached / static_cast<double>(view_.T);
    view_.log10_paths = paths_.end_layer();
  }

 private:
  /// Processes the rows of one block; no other thread writes their map fields.
  void view_block(int64_t block) {
    const int64_t side = view_.map.side, size = view_.map.block, H = view_.H;
    const int64_t end = std::min(view_.T, (block + 1) * size);
    std::vector<double> count(static_cast<size_t>(side), 0);
    std::vector<std::vector<double>> sums(5, std::vector<double>(static_cast<size_t>(H * side), 0));
    for (int64_t i = block * size; i < end; ++i) {
      const std::vector<AttentionRow> heads = reference_rows(a_, 0, i);
      std::vector<char> live(static_cast<size_t>(view_.T), 0);
      for (int64_t j = heads[0].first; j <= heads[0].last; ++j) {
        count[static_cast<size_t>(j / size)] += 1;
      }
      view_.keys[static_cast<size_t>(i)] = heads[0].last - heads[0].first + 1;
      for (int64_t h = 0; h < H; ++h) {
        const AttentionRow& row = heads[static_cast<size_t>(h)];
        const RowWeights weights = reference_weights(a_, h, values_of(row.z));
        const WeighedRow weighed = {row, weights};
        size_t n = 0;
        for_maps(bias_, static_cast<bool>(a_.mix), [&](auto member) {
          const std::vector<double> values = weighed.values(member);
          std::vector<double>& sum = sums[n++];
          for (int64_t j = row.first; j <= row.last; ++j) {
            const double x = values[static_cast<size_t>(j - row.first)];
            sum[static_cast<size_t>(h * side + j / size)] += x;
            if (i != view_.T - 1) continue;
            (view_.last.*member)[static_cast<size_t>(h * view_.T + j)] = static_cast<float>(x);
          }
        });
        summarise(weighed, h, i);
        for (int64_t j = row.first; j <= row.last; ++j) {
          if (weights.p[static_cast<size_t>(j - row.first)] != 0) live[static_cast<size_t>(j)] = 1;
        }
        if (checked(i)) check(weighed, h, i);
      }
      reached_[static_cast<size_t>(i)] = static_cast<double>(paths_.add_row(i, live));
    }
    for (int64_t k = 0; k < side; ++k) {
      view_.seen[static_cast<size_t>(block * side + k)] =
          static_cast<float>(count[static_cast<size_t>(k)]);
    }
    size_t n = 0;
    for_maps(bias_, static_cast<bool>(a_.mix), [&](auto member) {
      const std::vector<double>& sum = sums[n++];
      for (int64_t h = 0; h < H; ++h) {
        for (int64_t k = 0; k < side; ++k) {
          const double seen = count[static_cast<size_t>(k)];
          if (seen == 0) continue;
          (view_.maps.*member)[static_cast<size_t>((h * side + block) * side + k)] =
              static_cast<float>(sum[static_cast<size_t>(h * side + k)] / seen);
        }
      }
    });
  }

  void summarise(const WeighedRow& of, int64_t h, int64_t i) {
    const auto at = static_cast<size_t>(h * view_.T + i);
    double total = 0, moment = 0;
    for (size_t n = 0; n < of.weights.p.size(); ++n) {
      const double p = of.weights.p[n];
      if (p > 0) view_.entropy[at] -= p * std::log(p);
      total += p;
      moment += p * static_cast<double>(of.row.first + static_cast<int64_t>(n));
      view_.largest[at] = std::max(view_.largest[at], p);
    }
    view_.nonzero_keys[at] = static_cast<double>(of.weights.nonzero_keys);
    view_.centroid[at] = total > 0 ? moment / total : kNone;
    if (!view_.scale.empty()) view_.scale[at] = of.row.t.x;
  }

  bool checked(int64_t i) const {
    return i == view_.T - 1 || i % std::max<int64_t>(1, view_.T / kCheckedRows) == 0;
  }
  void check(const WeighedRow& of, int64_t h, int64_t i) {
    const int64_t D = a_.q.shape[3], kh = h / (view_.H / a_.k.shape[2]);
    std::vector<double> sum(static_cast<size_t>(D), 0);
    for (int64_t j = of.row.first; j <= of.row.last; ++j) {
      const double p = of.weights.p[static_cast<size_t>(j - of.row.first)];
      const double* const v = channels_of(a_.v, 0, j, kh);
      for (int64_t c = 0; c < D; ++c) sum[static_cast<size_t>(c)] += p * v[c];
    }
    double& worst = row_errors_[static_cast<size_t>(i)];
    for (int64_t c = 0; c < D; ++c) {
      const int64_t at = i * out_.stride[1] + h * out_.stride[2] + c * out_.stride[3];
      const double difference = std::abs(sum[static_cast<size_t>(c)] - get(out_, at));
      // All rows may be without weight: then the largest |out| is 0.
      if (difference > 0) worst = std::max(worst, difference / largest_out_);
    }
  }

  LayerView& view_;
  const Attention& a_;
  const Tensor& out_;
  Paths& paths_;
  bool bias_;
  double largest_out_ = 0;
  std::vector<double> row_errors_, reached_;  // (T)
};

}  // namespace

LayerView view_of_layer(int64_t layer, const Attention& a, const Tensor& out, Paths& paths) {
  require(a.q.shape[0] == 1 && a.q.dtype == Dtype::f64, "one sequence in fp64");
  LayerView view(layer, a.q.shape[1], a.q.shape[2]);
  Viewer(view, a, out, paths).run();
  return view;
}

int64_t LayerView::bytes(int64_t T, int64_t H) {
  const MapShape map(T);
  constexpr int64_t kMaps = 5, kRows = 5, kGates = 2;
  const int64_t fields = map.side * map.side;
  return fields * static_cast<int64_t>(sizeof(float)) +
         H * (kMaps * (fields + T) * static_cast<int64_t>(sizeof(float)) +
              (kRows + kGates) * T * static_cast<int64_t>(sizeof(double)));
}

HeadSummary summary_of(const LayerView& view, int64_t h) {
  HeadSummary sum;
  double weighed = 0;
  for (int64_t i = 0; i < view.T; ++i) {
    const auto at = static_cast<size_t>(h * view.T + i);
    sum.entropy += view.entropy[at];
    sum.nonzero_keys += view.nonzero_keys[at];
    sum.largest += view.largest[at];
    if (std::isnan(view.centroid[at])) continue;
    sum.distance += std::abs(static_cast<double>(i) - view.centroid[at]);
    weighed += 1;
  }
  const auto rows = static_cast<double>(view.T);
  return {sum.entropy / rows, sum.nonzero_keys / rows, sum.distance / weighed, sum.largest / rows};
}

}  // namespace bamtrain
