#pragma once
// What a process may not do, for tests that root runs.

#include <unistd.h>

#include "catch.h"

namespace bamtrain::testing {

/// While it lives, permissions bind this process even where root runs the tests.
class BoundByPermissions {
 public:
  BoundByPermissions() : root_(geteuid() == 0), bound_(!root_ || seteuid(kNobody) == 0) {}
  ~BoundByPermissions() {
    if (root_ && bound_) CHECK(seteuid(0) == 0);
  }
  BoundByPermissions(const BoundByPermissions&) = delete;
  BoundByPermissions& operator=(const BoundByPermissions&) = delete;
  /// false: there is no other user to become.
  explicit operator bool() const { return bound_; }

 private:
  static constexpr uid_t kNobody = 65534;
  bool root_, bound_;
};

}  // namespace bamtrain::testing
