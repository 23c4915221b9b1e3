#include "compare.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "catch.h"
#include "core/rng.h"
#include "host_view.h"
#include "ops/cpu/matmul.h"
#include "ops/reference/reference.h"

namespace bamtrain::testing {

namespace {

int64_t product(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

Tensor tensor_of(void* data, Dtype dtype, const std::vector<int64_t>& s) {
  switch (s.size()) {
    case 1:
      return {data, dtype, {s[0]}};
    case 2:
      return {data, dtype, {s[0], s[1]}};
    case 3:
      return {data, dtype, {s[0], s[1], s[2]}};
    default:
      return {data, dtype, {s.at(0), s.at(1), s.at(2), s.at(3)}};
  }
}

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

Values random_values(Role role, std::vector<int64_t> shape, const std::string& stream,
                     double deviation) {
  // Hundreds of cases draw from the same streams, which took a sixth of test_ops' time.
  static std::map<std::string, std::vector<double>> drawn;  // by stream, from the first number on
  std::vector<double>& normals = drawn[stream];
  const Rng rng(17, stream);
  const auto n = static_cast<size_t>(product(shape));
  while (normals.size() < n) normals.push_back(rng.normal(normals.size()));
  Values v{role, std::move(shape), {}};
  for (size_t i = 0; i < n; ++i) v.x.push_back(deviation * normals[i]);
  return v;
}

Values constant_values(Role role, std::vector<int64_t> shape, double value) {
  Values v{role, std::move(shape), {}};
  v.x.assign(static_cast<size_t>(product(v.shape)), value);
  return v;
}

double rounded(double x, Dtype dtype) {
  if (dtype == Dtype::f64 || dtype == Dtype::i32) return x;
  const float f = static_cast<float>(x);
  return static_cast<double>(dtype == Dtype::f32 ? f : static_cast<float>(bf16(f)));
}

MemorySource& heap_memory() {
  class Heap final : public MemorySource {
    void* allocate(int64_t bytes) override { return std::calloc(1, static_cast<size_t>(bytes)); }
    void release(void* memory, int64_t) override { std::free(memory); }
    void check_fits(int64_t) const override {}
    bool on_host() const override { return true; }
  };
  static Heap heap;
  return heap;
}

Memory::Memory(Dtype dtype, const std::vector<int64_t>& shape, double value, MemorySource& source)
    : source_(&source) {
  const int64_t bytes = product(shape) * static_cast<int64_t>(size_of(dtype));
  tensor_ = tensor_of(source.allocate(std::max<int64_t>(bytes, 1)), dtype, shape);
  const HostView host(tensor_);
  for_elements(tensor_, [&](int64_t offset, int64_t) { put(host.tensor(), offset, value); });
  host.upload();
}

Memory::Memory(Memory&& other) noexcept
    : source_(other.source_), tensor_(std::exchange(other.tensor_, Tensor())) {}

Memory::~Memory() {
  if (tensor_) source_->release(tensor_.data, std::max<int64_t>(tensor_.bytes(), 1));
}

std::vector<Dtype> with_products(std::vector<Dtype> dtypes) {
  static const bool bf16_works = [] {
    try {
      const Memory x(Dtype::bf16, {1, 1}, 1), y(Dtype::bf16, {1, 1}, 0);
      Matmul().run(matrix(y.tensor()), matrix(x.tensor()), matrix(x.tensor()), nullptr, false);
      return true;
    } catch (const Error& e) {
      WARN("bf16 is not tested where it needs products: " << e.what());
      return false;
    }
  }();
  if (!bf16_works) std::erase(dtypes, Dtype::bf16);
  return dtypes;
}

void fill(const Tensor& t, const Values& v) {
  REQUIRE(static_cast<size_t>(t.size()) == v.x.size());
  const HostView host(t);
  for_elements(t, [&](int64_t offset, int64_t n) {
    put(host.tensor(), offset, v.x[static_cast<size_t>(n)]);
  });
  host.upload();
}

Values read(const Tensor& t, Role role) {
  const HostView host(t);
  Values v{role, {t.shape.begin(), t.shape.begin() + t.rank}, {}};
  v.x.resize(static_cast<size_t>(t.size()));
  for_elements(t, [&](int64_t offset, int64_t n) {
    v.x[static_cast<size_t>(n)] = get(host.tensor(), offset);
  });
  return v;
}

Machine::Machine(Dtype activations, CpuIsa isa, const WorkspaceShape& shape)
    : Machine(activations,
              {activations == Dtype::f64 ? make_reference_backend() : make_cpu_backend(isa),
               &heap_memory()},
              shape) {}

Machine::Machine(Dtype activations, Device device, const WorkspaceShape& shape)
    : activations_(activations), device_(std::move(device)) {
  backend().plan(arena_, shape);
  arena_.commit(*device_.source);
  // In a training an operation finds there what others left. NaN shows who reads what it has not
  // written.
  for (const Arena::Entry& e : arena_.entries()) {
    if (device_memory == nullptr || !device_memory->holds(e.target->data)) continue;
    device_memory->fill_ones(e.target->data, e.bytes);
  }
}

Dtype Machine::dtype_of(Role role) const {
  if (role == Role::index) return Dtype::i32;
  if (role == Role::wide) return Dtype::f64;
  return role == Role::activation ? activations_ : device_.backend->parameter_dtype();
}

Memory Machine::memory(const Values& v) const {
  Memory m(dtype_of(v.role), v.shape, 0, *device_.source);
  fill(m.tensor(), v);
  return m;
}

Memory Machine::zeros(Role role, const std::vector<int64_t>& shape) const {
  return {dtype_of(role), shape, 0, *device_.source};
}

Memory Machine::unwritten(Role role, const std::vector<int64_t>& shape) const {
  return {dtype_of(role), shape, std::numeric_limits<double>::quiet_NaN(), *device_.source};
}

double Machine::squared_norm(const Tensor& x) {
  const Memory squares(Dtype::f64, {squares_blocks(x.size())}, std::nan(""), *device_.source);
  const Memory result(Dtype::f64, {1}, 0, *device_.source);
  backend().squares(squares.tensor(), x);
  backend().sum(result.tensor(), squares.tensor());
  double found = 0;
  backend().download(&found, result.tensor());
  return found;
}

Arrays cotangents_of(const Operation& op, const Arrays& results) {
  Arrays cotangents = op.cotangents;
  for (const std::string& name : op.differentiated) {
    const Values& v = results.at(name);
    if (cotangents.count(name) == 0) {
      cotangents[name] = random_values(v.role, v.shape, "cotangent of " + name);
    }
  }
  return cotangents;
}

Pass run(const Operation& op, Machine& m, double existing) {
  Pass pass = {op.forward(m, op.inputs), {}};
  if (!op.adjoint) return pass;
  const Arrays cotangents = cotangents_of(op, pass.results);
  pass.gradients = op.adjoint(m, op.inputs, pass.results, cotangents, existing);
  return pass;
}

Pass run(const Operation& op, Dtype activations) {
  Machine m(activations, kNewestIsa, op.workspace);
  return run(op, m);
}

Arrays round_to(Arrays arrays, const Machine& machine) {
  for (auto& [name, v] : arrays) {
    for (double& x : v.x) x = rounded(x, machine.dtype_of(v.role));
  }
  return arrays;
}

void check_differences(const Operation& op, int64_t entries, double tolerance) {
  Machine machine(Dtype::f64);
  Arrays inputs = op.inputs;
  const auto [saved, gradients] = run(op, machine);
  const Arrays cotangents = cotangents_of(op, saved);
  const Arrays raised = run(op, machine, 0.5).gradients;
  const auto f = [&] {
    double sum = 0;
    const Arrays results = op.forward(machine, inputs);
    for (const auto& [name, c] : cotangents) {
      for (size_t i = 0; i < c.x.size(); ++i) sum += c.x[i] * results.at(name).x[i];
    }
    return sum;
  };
  double worst = 0, of_wrong = 0, of_any = 0;
  for (auto& [name, v] : inputs) {
    if (v.role == Role::index) continue;
    if (contains(op.constant, name)) {
      if (!gradients.count(name)) continue;
      for (const double d : gradients.at(name).x) CHECK(std::abs(d) < 1e-12);
      continue;
    }
    const std::vector<double>& g = gradients.at(name).x;
    double largest = 0, error = 0, wrong = 0;
    for (size_t i = 0; i < g.size(); ++i) {
      largest = std::max(largest, std::abs(g[i]));
      const double expected = g[i] + (contains(op.accumulated, name) ? 0.5 : 0);
      if (!(std::abs(raised.at(name).x[i] - expected) <= 1e-12 * (1 + std::abs(g[i])))) {
        FAIL(name << ", gradient added to 0.5: " << raised.at(name).x[i] << " for " << expected);
      }
    }
    const Rng pick(23, name);
    const auto n = static_cast<int64_t>(v.x.size());
    for (int64_t e = 0; e < std::min(n, entries); ++e) {
      const size_t i =
          n <= entries ? static_cast<size_t>(e) : pick.below(static_cast<uint64_t>(e), v.x.size());
      const double x = v.x[i], h = 1e-5;
      v.x[i] = x + h;
      const double above = f();
      v.x[i] = x - h;
      const double below = f();
      v.x[i] = x;
      const double difference = (above - below) / (2 * h);
      if (!std::isfinite(difference)) FAIL(name << ": a difference of " << difference);
      error = std::max(error, std::abs(difference - g[i]));
      wrong = std::max(wrong, std::abs(difference - 1.01 * g[i]));
    }
    // An input without influence (a table in a row with one key) has gradient 0, so the error is
    // absolute.
    worst = std::max(worst, error / (largest > 0 ? largest : 1));
    of_wrong = std::max(of_wrong, wrong / (largest > 0 ? largest : 1));
    of_any = std::max(of_any, largest);
  }
  CHECK(worst < tolerance);
  if (of_any > 0) CHECK(of_wrong > 1e-3);
}

void check_close(const std::string& name, const Values& found, const Values& truth,
                 double tolerance, double least) {
  REQUIRE(found.shape == truth.shape);
  double error = 0, size = 0, largest_error = 0, largest = 0;
  for (size_t i = 0; i < truth.x.size(); ++i) {
    const double e = std::abs(found.x[i] - truth.x[i]), x = std::abs(truth.x[i]);
    // Written so that NaN counts as larger.
    if (!(e <= largest_error)) largest_error = e;
    error += e * e;
    size += x * x;
    largest = std::max(largest, x);
  }
  INFO(name << ": largest error " << largest_error << ", largest element " << largest);
  const double n = static_cast<double>(truth.x.size());
  CHECK(std::sqrt(error) <= tolerance * std::max(std::sqrt(size), least * std::sqrt(n)));
  CHECK(largest_error <= tolerance * std::max(largest, least));
}

void check_equal(const std::vector<double>& found, const std::vector<double>& truth) {
  REQUIRE(found.size() == truth.size());
  const auto [f, t] = std::mismatch(found.begin(), found.end(), truth.begin());
  const bool equal = f == found.end();
  INFO("element " << f - found.begin() << ": found " << (equal ? 0 : *f) << ", expected "
                  << (equal ? 0 : *t));
  CHECK(equal);
}

namespace {

/// A machine of kShape with this past and these kinds of attention. It is planned once for all
/// tests with the same number of threads.
Machine& shared_machine(Dtype activations, CpuIsa isa, const WorkspaceShape& w) {
  using Key = std::tuple<Dtype, CpuIsa, int, int64_t, bool, bool>;
  static std::map<Key, std::unique_ptr<Machine>> machines;
  std::unique_ptr<Machine>& m = machines[{activations, isa, omp_get_max_threads(), w.past,
                                          w.bidirectional, w.any(&AttentionForm::general)}];
  if (!m) m = std::make_unique<Machine>(activations, isa, w);
  return *m;
}

}  // namespace

void compare_with_reference(const Operation& op, Dtype activations, double f32_tolerance) {
  std::vector<Machine*> machines;
  for (const CpuIsa isa : {kNewestIsa, CpuIsa::avx2, CpuIsa::avx512}) {
    if (isa == CpuIsa::avx512 && activations == Dtype::f32) continue;  // the newest, without AMX
    machines.push_back(&shared_machine(activations, isa, op.workspace));
  }
  compare_with_reference(op, activations, f32_tolerance, machines);
}

void compare_with_reference(const Operation& op, double f32_tolerance) {
  for (const Dtype t : {Dtype::f32, Dtype::bf16}) compare_with_reference(op, t, f32_tolerance);
}

void compare_with_reference(const Operation& op, Dtype activations, double f32_tolerance,
                            const std::vector<Machine*>& machines) {
  Machine& reference = shared_machine(Dtype::f64, kNewestIsa, Machine::kShape);
  const Arrays inputs = round_to(op.inputs, *machines[0]);
  const auto compare = [&](const Arrays& found, const Arrays& truth) {
    for (const auto& [name, v] : truth) {
      const bool stored_in_bf16 = v.role == Role::activation && activations == Dtype::bf16;
      const auto least = op.cancelling.find(name), own = op.tolerances.find(name);
      const double tolerance = own == op.tolerances.end() ? f32_tolerance : own->second;
      check_close(name, found.at(name), v, tolerance + (stored_in_bf16 ? kBf16 : 0),
                  least == op.cancelling.end() ? 0 : least->second);
    }
  };
  const Arrays results = op.forward(reference, inputs);
  for (Machine* m : machines) compare(op.forward(*m, inputs), results);
  if (!op.adjoint) return;
  const Arrays saved = round_to(results, *machines[0]);
  const Arrays cotangents = round_to(cotangents_of(op, results), *machines[0]);
  for (double existing : {0.0, 0.5}) {
    INFO("gradients added to " << existing);
    const Arrays truth = op.adjoint(reference, inputs, saved, cotangents, existing);
    for (Machine* m : machines) {
      compare(op.adjoint(*m, inputs, saved, cotangents, existing), truth);
    }
    if (op.accumulated.empty()) break;
  }
}

void check_same(const Pass& found, const Pass& truth) {
  const auto check = [](const Arrays& of, const Arrays& all) {
    REQUIRE(of.size() == all.size());
    for (const auto& [name, v] : all) {
      INFO(name);
      REQUIRE(of.at(name).x.size() == v.x.size());
      CHECK(std::memcmp(of.at(name).x.data(), v.x.data(), v.x.size() * sizeof(double)) == 0);
    }
  };
  check(found.results, truth.results);
  check(found.gradients, truth.gradients);
}

void check_same_for_any_threads(const Operation& op, Dtype activations) {
  Pass one;
  for (int threads = 1; threads <= 4; ++threads) {
    const Threads limit(threads);
    Machine cpu(activations, kNewestIsa, op.workspace);
    const Pass pass = run(op, cpu, 0.5);
    if (threads == 1) one = pass;
    INFO(threads << " threads");
    check_same(pass, one);
  }
}

Threads::Threads(int n) : before_(omp_get_max_threads()) { omp_set_num_threads(n); }
Threads::~Threads() { omp_set_num_threads(before_); }

}  // namespace bamtrain::testing
