// The cost of each mechanism, as in the papers' tables (BAM's table 6, DAPE's table 1, Cable's
// figure 4): a config's model with one mechanism at a time, at several lengths, on the config's
// device.
//
//   build/bench/mechanisms --config configs/bam-120m.json --lengths 512,1024,2048
//       --mechanisms "alibi,bam,bam+ssmax,nape+adaptive+entmax,dape over kerple"
//   build/bench/mechanisms --config configs/cable-tiny.json --mechanisms all --batch 8
//
// A mechanism is PRIOR[+SCALE][+NORMALIZER], each with its default options. A prior may be "MIX
// over PRIOR". Defaults: no scale, softmax. "all": every prior, every mix over kerple, and every
// scale and normalizer with nope, which comes first. Everything else is from the config, including
// data.sequence_length, which the model takes as its training length.
//
// Prints a Markdown table with a row for each length and mechanism:
//   forward   a forward pass over a batch to its losses; saves nothing for a backward pass
//   backward  a training pass to the gradients, minus the forward time
//   memory    planned for that pass: weights, gradients, activations, tables and scratch; with
//             `decode` if that takes more. Excludes the optimizer state
//   decode    a decode step at the end of texts of that length
// Times are medians. After each number comes its ratio to the first mechanism's at that length.
// Cases that are not measured, such as lengths that do not fit in memory, are listed below the
// table.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "commands/backend.h"
#include "core/faults.h"
#include "core/ignore_index.h"
#include "core/parallel.h"
#include "core/wait_policy.h"
#include "isa.h"
#include "median.h"
#include "mixes/registry.h"
#include "model/incremental_decoder.h"
#include "normalizers/registry.h"
#include "ops/host_copy.h"
#include "options.h"
#include "priors/registry.h"
#include "rates.h"
#include "run/train.h"
#include "scales/registry.h"

using namespace bamtrain;
using namespace bamtrain::bench;

namespace {

struct Mechanism {
  std::string name;
  std::vector<std::string> settings;  // overrides of a config
};

std::string chosen(const std::string& key, const std::string& name) {
  return fmt::format("model.attention.{}={{\"name\":\"{}\"}}", key, name);
}

template <class Info>
std::vector<std::string> names_of(const std::vector<Info>& all) {
  std::vector<std::string> names;
  for (const Info& info : all) names.push_back(info.name);
  return names;
}

/// REQUIRES: `name` is a prior, or a mix over one.
std::string prior_setting(const std::string& name) {
  const std::string over = " over ";
  const size_t at = name.find(over);
  const std::string base = at == std::string::npos ? name : name.substr(at + over.size());
  const std::string mix = at == std::string::npos ? "" : name.substr(0, at);
  const bool known = find_prior(base) && (mix.empty() || find_mix(mix));
  if (!known) {
    const bool bad_base = !find_prior(base);
    throw unknown_name(ExitCode::usage, "--mechanisms", bad_base ? "prior" : "mix",
                       bad_base ? base : mix,
                       bad_base ? names_of(all_priors()) : names_of(all_mixes()));
  }
  if (mix.empty()) return chosen("prior", base);
  return fmt::format("model.attention.prior={{\"name\":\"{}\",\"base\":{{\"name\":\"{}\"}}}}", mix,
                     base);
}

Mechanism mechanism_named(const std::string& name) {
  std::vector<std::string> words;
  for (size_t begin = 0, end; begin <= name.size(); begin = end + 1) {
    end = std::min(name.find('+', begin), name.size());
    words.push_back(name.substr(begin, end - begin));
  }
  std::string scale = "none", normalizer = "softmax";
  for (size_t n = 1; n < words.size(); ++n) {
    if (find_scale(words[n])) {
      scale = words[n];
    } else if (find_normalizer(words[n])) {
      normalizer = words[n];
    } else {
      std::vector<std::string> known = names_of(all_scales());
      const std::vector<std::string> normalizers = names_of(all_normalizers());
      known.insert(known.end(), normalizers.begin(), normalizers.end());
      throw unknown_name(ExitCode::usage, "--mechanisms", "scale or normalizer", words[n], known);
    }
  }
  return {name,
          {prior_setting(words[0]), chosen("scale", scale), chosen("normalizer", normalizer)}};
}

std::vector<Mechanism> every_mechanism() {
  std::vector<std::string> names = {"nope"};
  for (const PriorInfo& p : all_priors()) {
    if (p.name != names[0]) names.push_back(p.name);
  }
  for (const MixInfo& m : all_mixes()) names.push_back(m.name + " over kerple");
  for (const ScaleInfo& s : all_scales()) {
    if (!s.evaluation_only && s.name != "none") names.push_back("nope+" + s.name);
  }
  for (const NormalizerInfo& n : all_normalizers()) {
    if (n.name != "softmax") names.push_back("nope+" + n.name);
  }
  std::vector<Mechanism> all;
  for (const std::string& name : names) all.push_back(mechanism_named(name));
  return all;
}

/// A model with initial values, and random tokens for it.
class Measured {
 public:
  Measured(const RunConfig& c, Backend& backend, int64_t B, int64_t T, ModelUse use)
      : backend_(backend),
        model_(c.model, c.data.sequence_length, backend, activation_dtype(c.train.precision)),
        B_(B),
        T_(T) {
    model_.check_length(T);
    const Dtype P = backend.parameter_dtype();
    arena_.add("masters", &master_weights_, P, {model_.parameters().elements()});
    if (use == ModelUse::training) {
      arena_.add("gradients", &gradients_, P, {model_.parameters().elements()});
      arena_.add("loss", &loss_, Dtype::f64, {1});
    }
    model_.plan(arena_, B, T, use, c.train.recompute);
    arena_.commit(backend.memory());
    for (const Parameter& p : model_.parameters().all()) fill(p, c);
    model_.set_master_weights(master_weights_);
    model_.refresh();
    tokens_.resize(static_cast<size_t>(B * T));
    for (size_t i = 0; i < tokens_.size(); ++i) {
      tokens_[i] = static_cast<int32_t>(i * 7919 % static_cast<size_t>(c.model.vocab));
    }
    losses_.resize(tokens_.size());
  }

  void forward() { model_.evaluate(tokens_.data(), tokens_.data(), B_, T_, {}, losses_.data()); }
  void forward_and_backward() {
    model_.load(tokens_.data(), tokens_.data(), T_, {});
    model_.forward_backward(1.0 / static_cast<double>(B_ * T_), gradients_, loss_);
  }
  void begin_decoding() { model_.begin_decoding(std::vector<int64_t>(static_cast<size_t>(B_))); }
  /// Appends the first n tokens of `tokens_` to all texts, with the loss of one target after the
  /// last.
  void append(int64_t n) {
    if (n == 0) return;
    std::vector<int32_t> targets(static_cast<size_t>(B_ * n), kIgnoreIndex);
    for (int64_t b = 1; b <= B_; ++b) targets[static_cast<size_t>(b * n - 1)] = 0;
    model_.append(tokens_.data(), targets.data(), n, {}, losses_.data());
  }
  int64_t planned_bytes() const { return arena_.total_bytes(); }

 private:
  /// Initial values; for large parameters the first ones repeat.
  void fill(const Parameter& p, const RunConfig& c) {
    constexpr int64_t kPeriod = 1 << 20;
    HostCopy host(backend_, master_weights_.slice(0, p.offset, p.size),
                  HostCopy::Contents::undefined);
    const int64_t period = std::min(p.size, kPeriod);
    const Tensor& to = host.tensor();
    initialize(p, c.model, c.data.sequence_length, c.seed, to.slice(0, 0, period));
    const auto bytes = static_cast<int64_t>(size_of(to.dtype));
    char* const data = static_cast<char*>(to.data);
    for (int64_t at = period; at < p.size; at += period) {
      std::memcpy(data + at * bytes, data,
                  static_cast<size_t>(std::min(period, p.size - at) * bytes));
    }
    host.upload();
  }

  Backend& backend_;
  Model model_;
  int64_t B_, T_;
  Arena arena_;
  Tensor master_weights_, gradients_, loss_;
  std::vector<int32_t> tokens_;
  std::vector<double> losses_;
};

/// The median seconds of `work`, after a warm-up run.
template <class F>
double time_of(Backend& backend, int64_t repeats, F&& work) {
  std::vector<double> times;
  for (int64_t n = 0; n <= repeats; ++n) {
    backend.synchronize();
    const double start = now();
    work();
    backend.synchronize();
    if (n > 0) times.push_back(now() - start);
  }
  return median(times);
}

struct Costs {
  int64_t parameters = 0;
  std::optional<double> forward, backward, decode;  // seconds
  std::optional<double> bytes;
};

struct Measurement {
  int64_t batch, repeats, decoded;
  std::vector<std::string> left_out;  // what was not measured, and why

  Costs of(const Mechanism& m, const RunConfig& c, Backend& backend, int64_t T) {
    Costs costs;
    const ParameterLayout layout(c.model, c.data.sequence_length);
    for (const Parameter& p : layout.all()) costs.parameters += p.size;
    try_to(m, T, "forward and backward", [&] {
      {
        Measured model(c, backend, batch, T, ModelUse::evaluation);
        costs.forward = time_of(backend, repeats, [&] { model.forward(); });
      }
      Measured model(c, backend, batch, T, ModelUse::training);
      const double both = time_of(backend, repeats, [&] { model.forward_and_backward(); });
      costs.backward = both - *costs.forward;
      costs.bytes = static_cast<double>(model.planned_bytes());
    });
    try_to(m, T, "decode", [&] {
      check_incremental_decoding(c.model);
      Measured model(c, backend, batch, T, ModelUse::generation);
      costs.decode = decode(model, backend, T);
      costs.bytes = std::max(costs.bytes.value_or(0), static_cast<double>(model.planned_bytes()));
    });
    return costs;
  }

 private:
  double decode(Measured& model, Backend& backend, int64_t T) const {
    const int64_t n = std::min(decoded, T - 1);
    model.begin_decoding();
    for (int64_t at = 0; at < T - n;) {
      const int64_t piece = std::min(T - n - at, kMaxPrefillChunk);
      model.append(piece);
      at += piece;
    }
    return time_of(backend, n - 1, [&] { model.append(1); });
  }

  /// Cases that a model or the machine has no room for are recorded in left_out; measuring
  /// continues.
  template <class F>
  void try_to(const Mechanism& m, int64_t T, const char* what, F&& measure) {
    try {
      measure();
    } catch (const Error& e) {
      if (e.code() != ExitCode::device && e.code() != ExitCode::config) throw;
      left_out.push_back(fmt::format("{} at {}, {}: {}", m.name, T, what, e.what()));
    }
  }
};

std::string cell(const std::optional<double>& value, const std::optional<double>& first,
                 double unit) {
  if (!value) return "-";
  const std::string number = fmt::format("{:.2f}", unit * *value);
  return first ? fmt::format("{} ({:.2f})", number, *value / *first) : number;
}

}  // namespace

int main(int argc, char** argv) try {
  limit_spinning(argv);
  BenchOptions options("time and memory of every mechanism at several lengths");
  ModelOptions model;
  std::vector<std::string> names;
  std::vector<int64_t> lengths = {512, 1024, 2048};
  Measurement measurement = {1, 5, 32, {}};
  model.add_to(options);
  options.add_required_list("--mechanisms", &names, "PRIOR[+SCALE][+NORMALIZER], or all");
  options.add_list("--lengths", &lengths, "tokens", 4, 1 << 24);
  options.add("--batch", &measurement.batch, "sequences, and texts that are continued");
  options.add("--repeats", &measurement.repeats, "of each pass, after one that does not count");
  options.add("--tokens", &measurement.decoded, "that are decoded, the first does not count", 2,
              1 << 20);
  options.read(argc, argv);

  std::vector<Mechanism> mechanisms;
  if (names == std::vector<std::string>{"all"}) {
    mechanisms = every_mechanism();
  } else {
    for (const std::string& name : names) mechanisms.push_back(mechanism_named(name));
  }
  std::vector<RunConfig> configs;  // undefined cases fail here, before any time is spent
  for (const Mechanism& m : mechanisms) configs.push_back(model.read(m.settings));
  const RunConfig& c = configs[0];
  const std::unique_ptr<Backend> backend =
      model.isa() == "newest" ? make_backend(c.device, c.train.precision, 0)
                              : make_backend_for(model.isa(), activation_dtype(c.train.precision));

  fmt::print("{} {} {}, batch {}, trained at {}, threads {}\n\n", c.name, backend->name(),
             name_of(activation_dtype(c.train.precision)), measurement.batch,
             c.data.sequence_length, max_threads());
  fmt::print(
      "| length | mechanism | parameters | forward, ms | backward, ms | memory, MiB | decode, "
      "ms |\n|---|---|---|---|---|---|---|\n");
  // A warm-up, for the setup of a program's first passes.
  Measurement{measurement.batch, 1, measurement.decoded, {}}.of(
      mechanisms[0], c, *backend, *std::min_element(lengths.begin(), lengths.end()));
  for (const int64_t T : lengths) {
    Costs first;
    for (size_t n = 0; n < mechanisms.size(); ++n) {
      const Costs costs = measurement.of(mechanisms[n], configs[n], *backend, T);
      if (n == 0) first = costs;
      fmt::print("| {} | {} | {} | {} | {} | {} | {} |\n", T, mechanisms[n].name, costs.parameters,
                 cell(costs.forward, first.forward, 1e3), cell(costs.backward, first.backward, 1e3),
                 cell(costs.bytes, first.bytes, 1.0 / (1 << 20)),
                 cell(costs.decode, first.decode, 1e3));
      std::fflush(stdout);
    }
  }
  if (!measurement.left_out.empty()) fmt::print("\nNot measured:\n\n");
  for (const std::string& line : measurement.left_out) fmt::print("- {}\n", line);
  return 0;
} catch (const std::exception& e) {
  return bamtrain::bench::report("mechanisms", e);
}
