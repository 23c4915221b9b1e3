// What the CUDA backend's own part does beside operations: recordings, and what it says of memory.

#include <stdexcept>

#include "catch.h"
#include "core/error.h"
#include "cuda/device.h"
#include "engine/calls.h"

namespace bamtrain::testing {
namespace {

TEST_CASE("work that failed while it was recorded is recorded anew, not replayed") {
  Machine m(Dtype::f32, cuda_device());
  const Memory x = m.memory(constant_values(Role::parameter, {4}, 1)),
               one = m.memory(constant_values(Role::parameter, {4}, 1));
  bool fails = false;
  const auto work = [&] {
    if (fails) throw std::runtime_error("no");
    m.backend().add(x.tensor(), one.tensor());
  };
  const auto value = [&] { return read(x.tensor(), Role::parameter).x.at(3); };
  m.backend().repeat(7, work);
  CHECK(value() == 2);
  fails = true;
  CHECK_THROWS_AS(m.backend().repeat(7, work), std::runtime_error);
  fails = false;
  for (int pass = 0; pass < 3; ++pass) {
    m.backend().repeat(7, work);
    CHECK(value() == 3 + pass);
  }
}

TEST_CASE("a plan that does not fit is told what there is, and never less than nothing") {
  const Device device = cuda_device();
  const auto refusal = [&](int64_t free_mib, int64_t mib) -> std::string {
    const int64_t before = engine::free_bytes;
    engine::free_bytes = free_mib << 20;
    std::string said;
    try {
      device.source->check_fits(mib << 20);
    } catch (const Error& e) {
      CHECK(e.code() == ExitCode::device);
      said = e.what();
    }
    engine::free_bytes = before;
    return said;
  };
  CHECK(refusal(1024, 512).empty());
  CHECK(
      refusal(1024, 513).find("expected at most 512 MiB, of the 1024 that the device has free 512 "
                              "being for its libraries, found 513 MiB") != std::string::npos);
  CHECK(refusal(200, 1).find("expected at most 0 MiB, of the 200") != std::string::npos);
  CHECK(refusal(200, 1).find("end the programs") != std::string::npos);
}

}  // namespace
}  // namespace bamtrain::testing
