#include "workloads.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/checked.h"
#include "core/element.h"
#include "core/rng.h"
#include "data/shard.h"
#include "dist/backends.h"
#include "dist/communicator.h"
#include "ops/host_copy.h"
#include "ops/nonzero_blocks.h"
#include "priors/fire.h"
#include "priors/registry.h"
#include "train/trainer.h"

namespace bamtrain::bench {

namespace {
constexpr int64_t kPeriod = 1 << 20;  // generating a normal number takes 100 ns
}

void fill_normal(Backend& backend, const Tensor& t, const std::string& stream) {
  const Rng rng(1, stream);
  HostCopy host(backend, t, HostCopy::Contents::undefined);
  const int64_t period = std::min(t.size(), kPeriod);
  for (int64_t i = 0; i < period; ++i) {
    put(host.tensor(), i, rng.normal(static_cast<uint64_t>(i)));
  }
  const auto bytes = static_cast<int64_t>(size_of(t.dtype));
  char* const data = static_cast<char*>(host.tensor().data);
  for (int64_t at = period; at < t.size(); at += period) {
    const int64_t n = std::min(period, t.size() - at);
    std::memcpy(data + at * bytes, data, static_cast<size_t>(n * bytes));
  }
  host.upload();
}

const std::map<std::string, NormalizerForm>& normalizer_forms() {
  static const std::map<std::string, NormalizerForm> forms = {
      {"softmax", {}},
      {"general", {}},
      {"entmax-1.5", {.kind = NormalizerKind::entmax, .alpha = 1.5}},
      {"entmax-1.7", {.kind = NormalizerKind::entmax, .alpha = 1.7}},
      {"sparsemax", {.kind = NormalizerKind::entmax, .alpha = 2}},
      {"topk-32", {.kind = NormalizerKind::topk, .keys = {.number = 32}}},
      {"stick-breaking", {.kind = NormalizerKind::stick_breaking}}};
  return forms;
}

AttentionWorkload::AttentionWorkload(Backend& backend, Dtype activations, AttentionForm f,
                                     const AttentionShape& shape, double content)
    : backend_(backend), shape_(shape) {
  require(shape.causal, "causal attention, which these programs measure");
  const int64_t B = shape.B, T = shape.T, H = shape.H, K = shape.K, D = shape.D;
  if (content != 1) f.content_scale = content / std::sqrt(static_cast<double>(D));
  const Dtype A = activations;
  arena_.add("q", &x_.a.q, A, {B, T, H, D});
  arena_.add("k", &x_.a.k, A, {B, T, K, D});
  arena_.add("v", &x_.a.v, A, {B, T, K, D});
  arena_.add("dq", &x_.g.dq, A, {B, T, H, D});
  arena_.add("dk", &x_.g.dk, A, {B, T, K, D});
  arena_.add("dv", &x_.g.dv, A, {B, T, K, D});
  form_call(x_, f, shape, A, Dtype::f32,
            [this](const char* name, Tensor* t, Dtype dtype, std::initializer_list<int64_t> dims) {
              arena_.add(name, t, dtype, dims);
            });
  const bool fire = f.bias == BiasForm::fire;
  if (fire) add_theta();
  backend.plan(arena_, {.B = B,
                        .T = T,
                        .H = H,
                        .K = K,
                        .D = D,
                        .C = H * D,
                        .backward = true,
                        .mechanism_values = fire ? H * kFireHidden : 0,
                        .attention = {f},
                        .activations = A});
  arena_.commit(backend.memory());
  fill_normal(backend, x_.a.q, "q");
  fill_normal(backend, x_.a.k, "k");
  fill_normal(backend, x_.a.v, "v");
  fill_normal(backend, x_.dout, "dout");
  std::visit([this](const auto& bias) { fill(bias); }, x_.a.bias);
  for_tensors(x_.a.mix, [this](const char* name, const Tensor& t) {
    if (!t) return;
    fill_normal(backend_, t, name);
    HostCopy network(backend_, t, HostCopy::Contents::downloaded);
    for (int64_t i = 0; i < t.size(); ++i) network.tensor().ptr<float>()[i] *= 0.1f;
    network.upload();
  });
  if (f.scale) {
    HostCopy scale(backend, x_.a.scale, HostCopy::Contents::undefined);
    std::fill_n(scale.tensor().ptr<float>(), x_.a.scale.size(), 1.1f);
    scale.upload();
  }
}

double AttentionWorkload::live_share() const {
  if (!x_.saved.live) return 1;
  HostCopy live(backend_, x_.saved.live, HostCopy::Contents::downloaded);
  HostCopy first_key(backend_, x_.a.first_key, HostCopy::Contents::downloaded);
  const int64_t T = shape_.T, words = live_groups(T) * live_words(T);
  BlockCounts all;
  for (int64_t n = 0; n < shape_.B * shape_.H; ++n) {
    const BlockCounts of_head =
        count_blocks(live.tensor().ptr<int32_t>() + n * words,
                     first_key.tensor().ptr<int32_t>() + n / shape_.H * T, nullptr, T);
    all.nonzero += of_head.nonzero;
    all.visible += of_head.visible;
  }
  return static_cast<double>(all.nonzero) / static_cast<double>(all.visible);
}

void AttentionWorkload::fill(const TableBias& bias) {
  HostCopy table(backend_, bias.table, HostCopy::Contents::undefined);
  for (int64_t i = 0; i < shape_.H * shape_.T; ++i) {
    table.tensor().ptr<float>()[i] = -0.01f * static_cast<float>(i % shape_.T);
  }
  table.upload();
}

void AttentionWorkload::fill(const TokenBias& bias) {
  HostCopy numbers(backend_, bias.numbers, HostCopy::Contents::undefined);
  for (int64_t i = 0; i < bias.numbers.size(); ++i) {
    // softplus(0) per key, the initial sums of cable and kcable: at 128 keys cable's bias is -88.
    numbers.tensor().ptr<double>()[i] = std::log(2.0) * static_cast<double>(i % shape_.T);
  }
  numbers.upload();
}

namespace {

const PriorInfo& fire_prior() { return *find_prior("fire"); }

std::vector<MechanismParameter> fire_parameters(int64_t H) {
  return fire_prior().parameters(default_options(fire_prior().options), {.heads = H});
}

}  // namespace

void AttentionWorkload::add_theta() {
  constexpr Dtype P = Dtype::f32;
  const std::vector<MechanismParameter> parameters = fire_parameters(shape_.H);
  fire_theta_.resize(parameters.size());
  for (size_t p = 0; p < parameters.size(); ++p) {
    const std::vector<int64_t>& of = parameters[p].shape;  // a vector or a matrix
    Tensor* const theta = &fire_theta_[p];
    of.size() == 1 ? arena_.add("fire.theta", theta, P, {of[0]})
                   : arena_.add("fire.theta", theta, P, {of[0], of[1]});
  }
}

void AttentionWorkload::fill(const FireBias& bias) {
  const Options options = default_options(fire_prior().options);
  const std::vector<MechanismParameter> parameters = fire_parameters(shape_.H);
  for (size_t p = 0; p < parameters.size(); ++p) {
    const Rng rng(1, parameters[p].name);
    HostCopy theta(backend_, fire_theta_[p], HostCopy::Contents::undefined);
    for (int64_t i = 0; i < fire_theta_[p].size(); ++i) {
      const auto n = static_cast<uint64_t>(i);
      put(theta.tensor(), i,
          fire_prior().initial(options, {}, parameters[p], i, rng.uniform(n), rng.normal(n)));
    }
    theta.upload();
  }
  HostCopy positions(backend_, bias.positions, HostCopy::Contents::undefined);
  for (int64_t i = 0; i < bias.positions.size(); ++i) {
    positions.tensor().ptr<int32_t>()[i] = static_cast<int32_t>(i % shape_.T);
  }
  positions.upload();
  backend_.run(FireForward{bias.tables, fire_theta_, static_cast<double>(shape_.T)});
}

namespace {

/// Tokens of a shard for steps of tokens_per_step: two steps' worth, since the second is fetched
/// while the first is computed. At most 4 million or one sequence, if that is longer; the loader
/// then rereads them.
int64_t shard_tokens(int64_t T, int64_t tokens_per_step) {
  constexpr int64_t kMost = int64_t{1} << 22;
  const int64_t tokens = std::max(T, std::min(2 * std::min(tokens_per_step, kMost), kMost)) + 1;
  if (tokens > ShardFormat::kMaxTokens) {
    throw Error(ExitCode::usage, "--length", "less than 2^31 tokens", std::to_string(T),
                "lower it");
  }
  return tokens;
}

int64_t step_tokens(int64_t B, int64_t T, int64_t micro_batches) {
  return checked_mul(checked_mul(B, T, "--batch"), micro_batches, "--batch");
}

}  // namespace

/// A shard of random tokens in its own folder, with the lifetime of this object. Not in the unnamed
/// namespace, since State below has one.
class RandomShard {
 public:
  RandomShard(int64_t vocab, int64_t tokens) {
    std::string name = (std::filesystem::temp_directory_path() / "bamtrain-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw Error(ExitCode::io, name, "a new folder", std::strerror(errno),
                  "name one that can be written to in TMPDIR");
    }
    folder_ = name;
    const Rng rng(1, "bench");
    std::vector<uint32_t> ids;
    for (int64_t i = 0; i < tokens; ++i) {
      ids.push_back(
          static_cast<uint32_t>(rng.below(static_cast<uint64_t>(i), static_cast<uint64_t>(vocab))));
    }
    ShardWriter shard(path(), vocab <= 65536 ? 2 : 4);
    shard.append(ids);
    shard.finish();
  }
  ~RandomShard() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  RandomShard(const RandomShard&) = delete;
  RandomShard& operator=(const RandomShard&) = delete;
  std::string path() const { return folder_ + "/random.bin"; }

 private:
  std::string folder_;
};

namespace {

RunConfig random_run(RunConfig config, int64_t B, int64_t T, int64_t micro_batches,
                     const std::string& shard) {
  config.data.train = shard;
  config.data.val.clear();
  config.data.shuffle = false;
  config.data.sequence_length = T;
  if (!config.data.document_start) config.data.document_start = 0;
  config.train.micro_batch = B;
  config.train.tokens_per_step = step_tokens(B, T, micro_batches);
  config.train.lanes = 1;
  return config;
}

}  // namespace

struct StepWorkload::State {
  RandomShard shard;
  RunConfig config;
  std::unique_ptr<Communicator> alone = make_single_communicator();
  Trainer trainer;
  int64_t steps = 0;

  State(RunConfig settings, Backend& backend, int64_t B, int64_t T, int64_t micro_batches)
      : shard(settings.model.vocab, shard_tokens(T, step_tokens(B, T, micro_batches))),
        config(random_run(std::move(settings), B, T, micro_batches, shard.path())),
        trainer(config, backend, 0, 1) {}
};

StepWorkload::StepWorkload(const RunConfig& config, Backend& backend, int64_t B, int64_t T,
                           int64_t micro_batches)
    : state_(std::make_unique<State>(config, backend, B, T, micro_batches)) {
  state_->trainer.commit();
  state_->trainer.initialize();
}
StepWorkload::~StepWorkload() = default;

double StepWorkload::step() {
  State& s = *state_;
  s.trainer.start_step(s.steps++ % s.config.train.steps, *s.alone);
  return s.trainer.finish_steps(*s.alone).back().loss;
}

const ParameterLayout& StepWorkload::parameters() const { return state_->trainer.layout(); }
int64_t StepWorkload::planned_bytes() const { return state_->trainer.arena().total_bytes(); }

}  // namespace bamtrain::bench
