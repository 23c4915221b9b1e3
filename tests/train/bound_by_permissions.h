#pragma once
// Restricts a process to ordinary permissions, for tests that run as root.

#include <unistd.h>

#include "catch.h"

namespace bamtrain::testing {

/// During its lifetime, permissions apply to this process even if the tests run as root.
class BoundByPermissions {
 public:
  BoundByPermissions() : root_(geteuid() == 0), bound_(!root_ || seteuid(kNobody) == 0) {}
  ~BoundByPermissions() {
    if (root_ && bound_) CHECK(seteuid(0) == 0);
  }
  BoundByPermissions(const BoundByPermissions&) = delete;
  BoundByPermissions& operator=(const BoundByPermissions&) = delete;
  /// False: there is no other user to switch to.
  explicit operator bool() const { return bound_; }

 private:
  static constexpr uid_t kNobody = 65534;
  bool root_, bound_;
};

}  // namespace bamtrain::testing
