#include "ops/check/mechanisms.h"

#include <vector>

namespace bamtrain {

void CheckedMechanisms::table_forward(Tensor table, const PriorUse& prior,
                                      std::span<const Tensor> theta) {
  CheckedCall c = call("table_forward");
  const Tensor t = c.written("table", table);
  const std::vector<Tensor> p = c.read_all(theta);
  c.run([&](Backend& b, bool own) {
    own ? b.mechanisms().table_forward(table, prior, theta)
        : b.mechanisms().table_forward(t, prior, p);
  });
}

void CheckedMechanisms::table_backward(std::span<const Tensor> dtheta, Tensor dtable,
                                       const PriorUse& prior, std::span<const Tensor> theta) {
  CheckedCall c = call("table_backward");
  const std::vector<Tensor> d = c.updated_all("dtheta", dtheta), p = c.read_all(theta);
  const Tensor t = c.read(dtable);
  c.run([&](Backend& b, bool own) {
    own ? b.mechanisms().table_backward(dtheta, dtable, prior, theta)
        : b.mechanisms().table_backward(d, t, prior, p);
  });
}

void CheckedMechanisms::scale_forward(Tensor scale, Tensor first_key, const ScaleUse& use,
                                      std::span<const Tensor> theta) {
  CheckedCall c = call("scale_forward");
  const Tensor t = c.written("scale", scale), f = c.read(first_key);
  const std::vector<Tensor> p = c.read_all(theta);
  c.run([&](Backend& b, bool own) {
    own ? b.mechanisms().scale_forward(scale, first_key, use, theta)
        : b.mechanisms().scale_forward(t, f, use, p);
  });
}

void CheckedMechanisms::scale_backward(std::span<const Tensor> dtheta, Tensor dscale,
                                       Tensor first_key, const ScaleUse& use,
                                       std::span<const Tensor> theta) {
  CheckedCall c = call("scale_backward");
  const std::vector<Tensor> d = c.updated_all("dtheta", dtheta), p = c.read_all(theta);
  const Tensor t = c.read(dscale), f = c.read(first_key);
  c.run([&](Backend& b, bool own) {
    own ? b.mechanisms().scale_backward(dtheta, dscale, first_key, use, theta)
        : b.mechanisms().scale_backward(d, t, f, use, p);
  });
}

void CheckedMechanisms::adaptive_scale_forward(Tensor scale, Tensor gates, Tensor first_key,
                                               const ScaleUse& use, std::span<const Tensor> bias) {
  CheckedCall c = call("adaptive_scale_forward");
  const Tensor t = c.written("scale", scale), g = c.read(gates), f = c.read(first_key);
  const std::vector<Tensor> w = c.read_all(bias);
  c.run([&](Backend& b, bool own) {
    own ? b.mechanisms().adaptive_scale_forward(scale, gates, first_key, use, bias)
        : b.mechanisms().adaptive_scale_forward(t, g, f, use, w);
  });
}

void CheckedMechanisms::adaptive_scale_backward(Tensor dgates, std::span<const Tensor> dbias,
                                                Tensor dscale, Tensor gates, Tensor first_key,
                                                const ScaleUse& use, std::span<const Tensor> bias) {
  CheckedCall c = call("adaptive_scale_backward");
  const Tensor d = c.written("dgates", dgates);
  const std::vector<Tensor> e = c.updated_all("dbias", dbias), w = c.read_all(bias);
  const Tensor t = c.read(dscale), g = c.read(gates), f = c.read(first_key);
  c.run([&](Backend& b, bool own) {
    own ? b.mechanisms().adaptive_scale_backward(dgates, dbias, dscale, gates, first_key, use, bias)
        : b.mechanisms().adaptive_scale_backward(d, e, t, g, f, use, w);
  });
}

void CheckedMechanisms::entropy_scale(Tensor scale, Tensor entropy, int64_t first_head) {
  CheckedCall c = call("entropy_scale");
  const Tensor t = c.written("scale", scale), e = c.read(entropy);
  c.run([&](Backend& b, bool own) {
    own ? b.mechanisms().entropy_scale(scale, entropy, first_head)
        : b.mechanisms().entropy_scale(t, e, first_head);
  });
}

void CheckedMechanisms::alpha_forward(Tensor alphas, Tensor theta) {
  CheckedCall c = call("alpha_forward");
  const Tensor x = c.written("alphas", alphas), t = c.read(theta);
  c.run([&](Backend& b, bool own) {
    own ? b.mechanisms().alpha_forward(alphas, theta) : b.mechanisms().alpha_forward(x, t);
  });
}

void CheckedMechanisms::alpha_backward(Tensor dtheta, Tensor dalpha, Tensor theta) {
  CheckedCall c = call("alpha_backward");
  const Tensor d = c.updated("dtheta", dtheta), x = c.read(dalpha), t = c.read(theta);
  c.run([&](Backend& b, bool own) {
    own ? b.mechanisms().alpha_backward(dtheta, dalpha, theta)
        : b.mechanisms().alpha_backward(d, x, t);
  });
}

void CheckedMechanisms::fire_forward(const FireTables& tables, std::span<const Tensor> theta,
                                     double L0) {
  CheckedCall c = call("fire_forward");
  const FireTables f = c.written_parts(tables);
  const std::vector<Tensor> p = c.read_all(theta);
  c.run([&](Backend& b, bool own) {
    own ? b.mechanisms().fire_forward(tables, theta, L0) : b.mechanisms().fire_forward(f, p, L0);
  });
}

void CheckedMechanisms::fire_backward(std::span<const Tensor> dtheta, const FireBiasGradients& g,
                                      Tensor positions, std::span<const Tensor> theta, double L0) {
  CheckedCall c = call("fire_backward");
  const std::vector<Tensor> d = c.updated_all("dtheta", dtheta), p = c.read_all(theta);
  const FireBiasGradients read = c.read_parts(g);
  const Tensor at = c.read(positions);
  c.run([&](Backend& b, bool own) {
    own ? b.mechanisms().fire_backward(dtheta, g, positions, theta, L0)
        : b.mechanisms().fire_backward(d, read, at, p, L0);
  });
}

void CheckedMechanisms::sums_forward(Tensor sums, Tensor gates, Tensor bias) {
  CheckedCall c = call("sums_forward");
  const Tensor s = c.written("sums", sums), g = c.read(gates), w = c.read(bias);
  c.run([&](Backend& b, bool own) {
    own ? b.mechanisms().sums_forward(sums, gates, bias) : b.mechanisms().sums_forward(s, g, w);
  });
}

void CheckedMechanisms::sums_backward(Tensor dgates, Tensor dbias, Tensor dsums, Tensor gates,
                                      Tensor bias) {
  CheckedCall c = call("sums_backward");
  const Tensor d = c.written("dgates", dgates), e = c.updated("dbias", dbias), s = c.read(dsums),
               g = c.read(gates), w = c.read(bias);
  c.run([&](Backend& b, bool own) {
    own ? b.mechanisms().sums_backward(dgates, dbias, dsums, gates, bias)
        : b.mechanisms().sums_backward(d, e, s, g, w);
  });
}

}  // namespace bamtrain
