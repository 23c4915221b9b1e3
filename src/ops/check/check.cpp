#include "ops/check/check.h"

#include <fmt/format.h>

#include <deque>
#include <variant>
#include <vector>

#include "core/element.h"
#include "ops/check/call.h"

namespace bamtrain {

namespace {

CheckedTensor read(const Tensor& t) { return {TensorUse::read, "", t}; }
CheckedTensor written(const char* name, const Tensor& t) { return {TensorUse::written, name, t}; }
CheckedTensor updated(const char* name, const Tensor& t) { return {TensorUse::updated, name, t}; }
class CheckBackend final : public Backend {
 public:
  CheckBackend(std::unique_ptr<Backend> tested, std::unique_ptr<Backend> trusted,
               CheckLimits limits)
      : tested_(std::move(tested)), trusted_(std::move(trusted)), limits_(limits) {
    require(trusted_->memory().on_host(), "a trusted backend in host memory");
    name_ = fmt::format("check ({} against {})", tested_->name(), trusted_->name());
  }

  const char* name() const override { return name_.c_str(); }
  Dtype parameter_dtype() const override { return tested_->parameter_dtype(); }

  void plan(Arena& arena, const WorkspaceShape& w) override {
    tested_->plan(arena, w);
    trusted_scratch_.emplace_back();
    trusted_->plan(trusted_scratch_.back(), w);
    trusted_scratch_.back().commit();
  }

  MemorySource& memory() override { return tested_->memory(); }
  void upload(Tensor dst, const void* src) override { tested_->upload(dst, src); }
  void download(void* dst, Tensor src) override { tested_->download(dst, src); }
  void synchronize() override { tested_->synchronize(); }
  /// Never records: every operation is compared every time.
  void run_captured(int64_t, const std::function<void()>& work) override { work(); }

  std::unique_ptr<PeerLink> connect(const Peers& peers) override { return tested_->connect(peers); }

  void zero(Tensor x) override { compare("zero", &Backend::zero, written("x", x)); }
  void add(Tensor dst, Tensor src) override {
    compare("add", &Backend::add, updated("dst", dst), read(src));
  }
  void convert(Tensor dst, Tensor src) override {
    compare("convert", &Backend::convert, written("dst", dst), read(src));
  }
  void copy(Tensor dst, Tensor src) override {
    compare("copy", &Backend::copy, written("dst", dst), read(src));
  }
  void sum(Tensor total, Tensor x) override {
    compare("sum", &Backend::sum, updated("total", total), read(x));
  }
  void squares(Tensor squares, Tensor x) override {
    compare("squares", &Backend::squares, written("squares", squares), read(x));
  }

  void embedding_forward(Tensor out, Tensor tokens, Tensor table, double scale, Tensor positions,
                         Tensor position_table) override {
    compare("embedding_forward", &Backend::embedding_forward, written("out", out), read(tokens),
            read(table), scale, read(positions), read(position_table));
  }
  void embedding_backward(Tensor dtable, double scale, Tensor dposition_table, Tensor dout,
                          Tensor tokens, Tensor positions) override {
    compare("embedding_backward", &Backend::embedding_backward, updated("dtable", dtable), scale,
            updated("dposition_table", dposition_table), read(dout), read(tokens), read(positions));
  }

  void norm_forward(Tensor sum, Tensor y, Tensor stats, Tensor residual, Tensor branch,
                    Tensor weight, Tensor bias, NormKind kind, double eps) override {
    compare("norm_forward", &Backend::norm_forward, written("sum", sum), written("y", y),
            written("stats", stats), read(residual), read(branch), read(weight), read(bias), kind,
            eps);
  }
  void norm_backward(Tensor dsum, Tensor dweight, Tensor dbias, Tensor dy, Tensor sum, Tensor stats,
                     Tensor weight, NormKind kind) override {
    compare("norm_backward", &Backend::norm_backward, updated("dsum", dsum),
            updated("dweight", dweight), updated("dbias", dbias), read(dy), read(sum), read(stats),
            read(weight), kind);
  }

  void linear_forward(Tensor y, Tensor x, Tensor weight, Tensor bias) override {
    compare("linear_forward", &Backend::linear_forward, written("y", y), read(x), read(weight),
            read(bias));
  }
  void linear_backward_input(Tensor dx, Tensor dy, Tensor weight) override {
    compare("linear_backward_input", &Backend::linear_backward_input, written("dx", dx), read(dy),
            read(weight));
  }
  void linear_backward_weight(Tensor dweight, Tensor dbias, Tensor dy, Tensor x) override {
    compare("linear_backward_weight", &Backend::linear_backward_weight, updated("dweight", dweight),
            updated("dbias", dbias), read(dy), read(x));
  }

  void activation_forward(Tensor out, Tensor in, MlpKind kind) override {
    compare("activation_forward", &Backend::activation_forward, written("out", out), read(in),
            kind);
  }
  void activation_backward(Tensor din, Tensor dout, Tensor in, MlpKind kind) override {
    compare("activation_backward", &Backend::activation_backward, written("din", din), read(dout),
            read(in), kind);
  }

  void rotate(Tensor x, Tensor positions, Tensor cosine, Tensor sine, bool inverse) override {
    compare("rotate", &Backend::rotate, updated("x", x), read(positions), read(cosine), read(sine),
            inverse);
  }

  void run(const MechanismOperation& operation) override {
    std::visit(
        [this]<class Operation>(const Operation& own) {
          CheckedCall c = call(Operation::kName);
          Operation mirrored = own;
          for_tensors(mirrored, [&c](const char* name, TensorUse use, Tensor& t) {
            t = c.mirror(use, name, t);
          });
          c.run([&](Backend& b, bool of_caller) { b.run(of_caller ? own : mirrored); });
        },
        operation);
  }

  void attention_forward(Tensor out, const AttentionSaved& saved, const Attention& a) override {
    CheckedCall c = call("attention_forward");
    const Tensor o = c.mirror(TensorUse::written, "out", out);
    AttentionSaved comparable = saved;
    comparable.live = {};  // backends may differ on weights below their precision
    const AttentionSaved s = c.mirrors(TensorUse::written, comparable);
    const Attention other = c.mirrors(TensorUse::read, a);
    round_mix(a, other);
    c.run([&](Backend& b, bool own) {
      own ? b.attention_forward(out, saved, a) : b.attention_forward(o, s, other);
    });
  }
  void attention_backward(const AttentionGradients& g, Tensor dout, Tensor out,
                          const AttentionSaved& saved, const Attention& a) override {
    CheckedCall c = call("attention_backward");
    if (a.mix || std::holds_alternative<ContextualBias>(a.bias)) {
      c.doubt(
          "a hidden unit of dape was 0, or a count of cope an integer, but for rounding: the "
          "gradient jumps there. Another seed tells");
    }
    // Adding a constant to all logits of a row has a gradient of 0 except for rounding, if weights
    // sum to one. c2 does that, and c1 through a unit that no key turns off.
    AttentionGradients comparable = g;
    comparable.mix = {};
    AttentionGradients d = c.mirrors(TensorUse::written, comparable);
    d.mix.w1 = c.cancelling("dw1", g.mix.w1);
    d.mix.w2 = c.cancelling("dw2", g.mix.w2);
    d.mix.c1 = c.cancelling("dc1", g.mix.c1, d.mix.w1);
    d.mix.c2 = c.cancelling("dc2", g.mix.c2, d.mix.w2);
    const Tensor e = c.mirror(TensorUse::read, "", dout), o = c.mirror(TensorUse::read, "", out),
                 again = c.mirror(TensorUse::read, "", out);
    AttentionSaved s = c.mirrors(TensorUse::read, saved);
    s.live = {};
    const Attention other = c.mirrors(TensorUse::read, a);
    round_mix(a, other);
    c.run([&](Backend& b, bool own) {
      if (own) return b.attention_backward(g, dout, out, saved, a);
      // p = exp(z - lse): the roundings of z and lse cancel only if one backend computed both. At
      // |lse| = 1e4 (a bounded self key alone in its row) the tested backend's lse would move p by
      // 5e-4.
      b.attention_forward(again, s, other);
      b.attention_backward(d, e, o, s, other);
    });
  }

  void attention_entropy(Tensor entropy, const Attention& a) override {
    compare("attention_entropy", &Backend::attention_entropy, written("entropy", entropy), a);
  }
  void attention_statistics(Tensor entropy, Tensor nonzero_keys, const AttentionSaved& saved,
                            const Attention& a) override {
    compare("attention_statistics", &Backend::attention_statistics, written("entropy", entropy),
            CheckedTensor{TensorUse::counted, "support", nonzero_keys}, saved, a);
  }

  void cross_entropy(Tensor losses, Tensor dlogits, Tensor logits, Tensor targets,
                     double scale) override {
    compare("cross_entropy", &Backend::cross_entropy, written("losses", losses),
            written("dlogits", dlogits), read(logits), read(targets), scale);
  }

  void argmax(Tensor places, Tensor x) override {
    compare("argmax", &Backend::argmax, written("places", places), read(x));
  }

  void clip_factor(Tensor factor, Tensor squared_norm, double clip, Tensor scale) override {
    compare("clip_factor", &Backend::clip_factor, updated("factor", factor), read(squared_norm),
            clip, read(scale));
  }
  void optimizer_step(Tensor weights, Tensor m, Tensor v, Tensor rounded, Tensor gradients,
                      Tensor factor, Tensor factors, const OptimizerHyperparameters& s) override {
    compare("optimizer_step", &Backend::optimizer_step, updated("weights", weights),
            updated("m", m), updated("v", v),
            CheckedTensor{TensorUse::replaced, "rounded", rounded}, read(gradients), read(factor),
            read(factors), s);
  }

 private:
  /// Rounds the mirror's mix weights as the tested backend rounds its own.
  void round_mix(const Attention& a, const Attention& mirror) const {
    if (!mirror.mix.w1 || !tested_->rounds_mix(a)) return;
    for (const Tensor& w : {mirror.mix.w1, mirror.mix.w2}) {
      for_elements(w, [&](int64_t at, int64_t) {
        uint16_t bits = 0;
        const Tensor rounded(&bits, Dtype::bf16, {1});
        put(rounded, 0, get(w, at));
        put(w, at, get(rounded, 0));
      });
    }
  }
  template <class Operation, class... Arguments>
  void compare(const char* name, Operation operation, const Arguments&... arguments) {
    call(name).compare(operation, arguments...);
  }
  CheckedCall call(const char* operation) { return {*tested_, *trusted_, limits_, operation}; }

  std::unique_ptr<Backend> tested_, trusted_;
  CheckLimits limits_;
  std::string name_;
  std::deque<Arena> trusted_scratch_;
};

}  // namespace

std::unique_ptr<Backend> make_check_backend(std::unique_ptr<Backend> tested,
                                            std::unique_ptr<Backend> trusted, CheckLimits limits) {
  return std::make_unique<CheckBackend>(std::move(tested), std::move(trusted), limits);
}

}  // namespace bamtrain
