#include "ops/check/check.h"

#include <fmt/format.h>

#include <deque>
#include <variant>
#include <vector>

#include "core/element.h"
#include "ops/check/call.h"
#include "ops/check/mechanisms.h"

namespace bamtrain {

namespace {

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

  void zero(Tensor x) override {
    CheckedCall c = call("zero");
    const Tensor to = c.written("x", x);
    c.run([&](Backend& b, bool own) { b.zero(own ? x : to); });
  }
  void add(Tensor dst, Tensor src) override {
    CheckedCall c = call("add");
    const Tensor d = c.updated("dst", dst), s = c.read(src);
    c.run([&](Backend& b, bool own) { own ? b.add(dst, src) : b.add(d, s); });
  }
  void convert(Tensor dst, Tensor src) override {
    CheckedCall c = call("convert");
    const Tensor d = c.written("dst", dst), s = c.read(src);
    c.run([&](Backend& b, bool own) { own ? b.convert(dst, src) : b.convert(d, s); });
  }
  void copy(Tensor dst, Tensor src) override {
    CheckedCall c = call("copy");
    const Tensor d = c.written("dst", dst), s = c.read(src);
    c.run([&](Backend& b, bool own) { own ? b.copy(dst, src) : b.copy(d, s); });
  }
  void sum(Tensor total, Tensor x) override {
    CheckedCall c = call("sum");
    const Tensor t = c.updated("total", total), s = c.read(x);
    c.run([&](Backend& b, bool own) { own ? b.sum(total, x) : b.sum(t, s); });
  }
  void squared_norm(Tensor result, Tensor x) override {
    CheckedCall c = call("squared_norm");
    const Tensor r = c.written("result", result), s = c.read(x);
    c.run([&](Backend& b, bool own) { own ? b.squared_norm(result, x) : b.squared_norm(r, s); });
  }

  void embedding_forward(Tensor out, Tensor tokens, Tensor table, double scale, Tensor positions,
                         Tensor position_table) override {
    CheckedCall c = call("embedding_forward");
    const Tensor o = c.written("out", out), t = c.read(tokens), w = c.read(table),
                 p = c.read(positions), q = c.read(position_table);
    c.run([&](Backend& b, bool own) {
      own ? b.embedding_forward(out, tokens, table, scale, positions, position_table)
          : b.embedding_forward(o, t, w, scale, p, q);
    });
  }
  void embedding_backward(Tensor dtable, double scale, Tensor dposition_table, Tensor dout,
                          Tensor tokens, Tensor positions) override {
    CheckedCall c = call("embedding_backward");
    const Tensor w = c.updated("dtable", dtable), q = c.updated("dposition_table", dposition_table),
                 o = c.read(dout), t = c.read(tokens), p = c.read(positions);
    c.run([&](Backend& b, bool own) {
      own ? b.embedding_backward(dtable, scale, dposition_table, dout, tokens, positions)
          : b.embedding_backward(w, scale, q, o, t, p);
    });
  }

  void norm_forward(Tensor sum, Tensor y, Tensor stats, Tensor residual, Tensor branch,
                    Tensor weight, Tensor bias, NormKind kind, double eps) override {
    CheckedCall c = call("norm_forward");
    const Tensor s = c.written("sum", sum), o = c.written("y", y), t = c.written("stats", stats),
                 r = c.read(residual), a = c.read(branch), w = c.read(weight), d = c.read(bias);
    c.run([&](Backend& b, bool own) {
      own ? b.norm_forward(sum, y, stats, residual, branch, weight, bias, kind, eps)
          : b.norm_forward(s, o, t, r, a, w, d, kind, eps);
    });
  }
  void norm_backward(Tensor dsum, Tensor dweight, Tensor dbias, Tensor dy, Tensor sum, Tensor stats,
                     Tensor weight, NormKind kind) override {
    CheckedCall c = call("norm_backward");
    const Tensor s = c.updated("dsum", dsum), w = c.updated("dweight", dweight),
                 d = c.updated("dbias", dbias), o = c.read(dy), x = c.read(sum), t = c.read(stats),
                 v = c.read(weight);
    c.run([&](Backend& b, bool own) {
      own ? b.norm_backward(dsum, dweight, dbias, dy, sum, stats, weight, kind)
          : b.norm_backward(s, w, d, o, x, t, v, kind);
    });
  }

  void linear_forward(Tensor y, Tensor x, Tensor weight, Tensor bias) override {
    CheckedCall c = call("linear_forward");
    const Tensor o = c.written("y", y), i = c.read(x), w = c.read(weight), d = c.read(bias);
    c.run([&](Backend& b, bool own) {
      own ? b.linear_forward(y, x, weight, bias) : b.linear_forward(o, i, w, d);
    });
  }
  void linear_backward_input(Tensor dx, Tensor dy, Tensor weight) override {
    CheckedCall c = call("linear_backward_input");
    const Tensor i = c.written("dx", dx), o = c.read(dy), w = c.read(weight);
    c.run([&](Backend& b, bool own) {
      own ? b.linear_backward_input(dx, dy, weight) : b.linear_backward_input(i, o, w);
    });
  }
  void linear_backward_weight(Tensor dweight, Tensor dbias, Tensor dy, Tensor x) override {
    CheckedCall c = call("linear_backward_weight");
    const Tensor w = c.updated("dweight", dweight), d = c.updated("dbias", dbias), o = c.read(dy),
                 i = c.read(x);
    c.run([&](Backend& b, bool own) {
      own ? b.linear_backward_weight(dweight, dbias, dy, x) : b.linear_backward_weight(w, d, o, i);
    });
  }

  void activation_forward(Tensor out, Tensor in, MlpKind kind) override {
    CheckedCall c = call("activation_forward");
    const Tensor o = c.written("out", out), i = c.read(in);
    c.run([&](Backend& b, bool own) {
      own ? b.activation_forward(out, in, kind) : b.activation_forward(o, i, kind);
    });
  }
  void activation_backward(Tensor din, Tensor dout, Tensor in, MlpKind kind) override {
    CheckedCall c = call("activation_backward");
    const Tensor d = c.written("din", din), o = c.read(dout), i = c.read(in);
    c.run([&](Backend& b, bool own) {
      own ? b.activation_backward(din, dout, in, kind) : b.activation_backward(d, o, i, kind);
    });
  }

  void rotate(Tensor x, Tensor positions, Tensor cosine, Tensor sine, bool inverse) override {
    CheckedCall c = call("rotate");
    const Tensor y = c.updated("x", x), p = c.read(positions), u = c.read(cosine), s = c.read(sine);
    c.run([&](Backend& b, bool own) {
      own ? b.rotate(x, positions, cosine, sine, inverse) : b.rotate(y, p, u, s, inverse);
    });
  }

  MechanismOps& mechanisms() override { return mechanisms_; }

  void attention_forward(Tensor out, const AttentionSaved& saved, const Attention& a) override {
    CheckedCall c = call("attention_forward");
    const Tensor o = c.written("out", out);
    AttentionSaved comparable = saved;
    comparable.live = {};  // backends may differ on weights below their precision
    const AttentionSaved s = c.written_parts(comparable);
    const Attention other = c.read_parts(a);
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
    AttentionGradients d = c.written_parts(comparable);
    d.mix.dw1 = c.cancelling("dw1", g.mix.dw1);
    d.mix.dw2 = c.cancelling("dw2", g.mix.dw2);
    d.mix.dc1 = c.cancelling("dc1", g.mix.dc1, d.mix.dw1);
    d.mix.dc2 = c.cancelling("dc2", g.mix.dc2, d.mix.dw2);
    const Tensor e = c.read(dout), o = c.read(out), again = c.read(out);
    AttentionSaved s = c.read_parts(saved);
    s.live = {};
    const Attention other = c.read_parts(a);
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
    CheckedCall c = call("attention_entropy");
    const Tensor e = c.written("entropy", entropy);
    const Attention other = c.read_parts(a);
    c.run([&](Backend& b, bool own) {
      own ? b.attention_entropy(entropy, a) : b.attention_entropy(e, other);
    });
  }
  void attention_statistics(Tensor entropy, Tensor nonzero_keys, const AttentionSaved& saved,
                            const Attention& a) override {
    CheckedCall c = call("attention_statistics");
    const Tensor e = c.written("entropy", entropy), n = c.counted("support", nonzero_keys);
    const AttentionSaved s = c.read_parts(saved);
    const Attention other = c.read_parts(a);
    c.run([&](Backend& b, bool own) {
      own ? b.attention_statistics(entropy, nonzero_keys, saved, a)
          : b.attention_statistics(e, n, s, other);
    });
  }

  void cross_entropy(Tensor losses, Tensor dlogits, Tensor logits, Tensor targets,
                     double scale) override {
    CheckedCall c = call("cross_entropy");
    const Tensor l = c.written("losses", losses), d = c.written("dlogits", dlogits),
                 z = c.read(logits), t = c.read(targets);
    c.run([&](Backend& b, bool own) {
      own ? b.cross_entropy(losses, dlogits, logits, targets, scale)
          : b.cross_entropy(l, d, z, t, scale);
    });
  }

  void argmax(Tensor places, Tensor x) override {
    CheckedCall c = call("argmax");
    const Tensor p = c.written("places", places), of = c.read(x);
    c.run([&](Backend& b, bool own) { own ? b.argmax(places, x) : b.argmax(p, of); });
  }

  void clip_factor(Tensor factor, Tensor squared_norm, double clip, Tensor scale) override {
    CheckedCall c = call("clip_factor");
    const Tensor f = c.updated("factor", factor), n = c.read(squared_norm), k = c.read(scale);
    c.run([&](Backend& b, bool own) {
      own ? b.clip_factor(factor, squared_norm, clip, scale) : b.clip_factor(f, n, clip, k);
    });
  }
  void optimizer_step(Tensor weights, Tensor m, Tensor v, Tensor rounded, Tensor gradients,
                      Tensor factor, Tensor factors, const OptimizerHyperparameters& s) override {
    CheckedCall c = call("optimizer_step");
    const Tensor w = c.updated("weights", weights), f = c.updated("m", m), e = c.updated("v", v),
                 r = c.replaced("rounded", rounded), g = c.read(gradients), x = c.read(factor),
                 k = c.read(factors);
    c.run([&](Backend& b, bool own) {
      own ? b.optimizer_step(weights, m, v, rounded, gradients, factor, factors, s)
          : b.optimizer_step(w, f, e, r, g, x, k, s);
    });
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
  CheckedCall call(const char* operation) { return {*tested_, *trusted_, limits_, operation}; }

  std::unique_ptr<Backend> tested_, trusted_;
  CheckLimits limits_;
  CheckedMechanisms mechanisms_{*tested_, *trusted_, limits_};
  std::string name_;
  std::deque<Arena> trusted_scratch_;
};

}  // namespace

std::unique_ptr<Backend> make_check_backend(std::unique_ptr<Backend> tested,
                                            std::unique_ptr<Backend> trusted, CheckLimits limits) {
  return std::make_unique<CheckBackend>(std::move(tested), std::move(trusted), limits);
}

}  // namespace bamtrain
