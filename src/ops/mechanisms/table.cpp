#include "ops/mechanisms/table.h"

#include "core/element.h"
#include "ops/host_scratch.h"

namespace bamtrain {

namespace {

const TableFamily& family_of(const PriorUse& prior) {
  const TableFamily* const family = prior.info.as<TableFamily>();
  require(family != nullptr, "a prior of family table");
  return *family;
}

}  // namespace

void TableForward::on_host(const HostScratch& s) const {
  const int64_t H = table.shape[0], T = table.shape[1];
  require(s.table && H * T <= s.table.size(), "a table no larger than was planned");
  family_of(prior).table(s.theta_values(theta).of, prior.shape(table), s.table.ptr<double>());
  for (int64_t i = 0; i < H * T; ++i) put(table, i, s.table.ptr<double>()[i]);
}

void TableBackward::on_host(const HostScratch& s) const {
  const int64_t H = dtable.shape[0], T = dtable.shape[1];
  require(s.table && H * T <= s.table.size(), "a table no larger than was planned");
  for (int64_t i = 0; i < H * T; ++i) s.table.ptr<double>()[i] = get(dtable, i);
  const HostScratch::Pointers gradients = s.zeros(dtheta.size());
  family_of(prior).adjoint(s.theta_values(theta).of, prior.shape(dtable), s.table.ptr<double>(),
                           gradients.of);
  s.add_to(dtheta, gradients);
}

}  // namespace bamtrain
