#pragma once
// The tensors of one call of a backend, by the names of an operation's values.

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compare.h"

namespace bamtrain::testing {

class NamedTensors {
 public:
  NamedTensors(const Machine& m, const Arrays& in) : m_(m), in_(in) {}

  Tensor keep(Memory memory) {
    memory_.push_back(std::move(memory));
    return memory_.back().tensor();
  }
  /// An input; empty if the operation has none of this name.
  Tensor in(const std::string& name) {
    return in_.count(name) ? keep(m_.memory(in_.at(name))) : Tensor();
  }
  /// Memory of this shape as elements from `first` of dimension `dim` of more memory, which has
  /// `wide` there. What an operation leaves unwritten is NaN.
  Tensor inside(Role role, std::vector<int64_t> shape, size_t dim, int64_t first, int64_t wide) {
    const int64_t n = std::exchange(shape[dim], wide);
    return keep(m_.unwritten(role, shape)).slice(static_cast<int>(dim), first, n);
  }
  /// An input in such memory.
  Tensor in_inside(const std::string& name, size_t dim, int64_t first, int64_t wide) {
    const Values& v = in_.at(name);
    const Tensor t = inside(v.role, v.shape, dim, first, wide);
    fill(t, v);
    return t;
  }
  /// Declares a result or a gradient in `t`.
  Tensor out(const std::string& name, Role role, const Tensor& t) {
    out_.emplace_back(name, role, t);
    return t;
  }
  Tensor out(const std::string& name, Role role, const std::vector<int64_t>& shape) {
    return out(name, role, keep(m_.unwritten(role, shape)));
  }
  /// The gradient of an input, added to `existing`; empty if the operation has no such input.
  Tensor gradient(const std::string& name, double existing, Role role = Role::parameter) {
    if (!in_.count(name)) return {};
    return out(name, role, keep(m_.memory(constant_values(role, in_.at(name).shape, existing))));
  }
  /// All that was declared.
  Arrays results() const {
    Arrays all;
    for (const auto& [name, role, t] : out_) all[name] = read(t, role);
    return all;
  }

 private:
  const Machine& m_;
  const Arrays& in_;
  std::vector<Memory> memory_;
  std::vector<std::tuple<std::string, Role, Tensor>> out_;
};

}  // namespace bamtrain::testing
