#include "dist/agreement.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/abbreviate.h"
#include "dist/collective.h"

namespace bamtrain {

namespace {

using Json = nlohmann::json;

/// Rank 0's facts on all ranks: names and values, in order.
Json of_first_rank(Communicator& comm, const std::vector<Fact>& own) {
  Json list = Json::array();
  for (const Fact& fact : own) list.push_back({fact.name, fact.value});
  // CBOR, since values may hold bytes that are not UTF-8, as paths do.
  std::vector<uint8_t> bytes = Json::to_cbor(list);
  auto size = static_cast<int64_t>(bytes.size());
  comm.broadcast(&size, sizeof size, 0);
  bytes.resize(static_cast<size_t>(size));
  comm.broadcast(bytes.data(), size, 0);
  return Json::from_cbor(bytes);
}

[[noreturn]] void refuse(const Fact& fact, const std::string& first, const std::string& own) {
  throw Error(fact.code, fact.name, "the same on every rank, " + first + " as on rank 0", own,
              fact.remedy);
}

}  // namespace

void require_agreement(Communicator& comm, const std::vector<Fact>& own) {
  if (comm.size() == 1) return;
  const Json first = of_first_rank(comm, own);
  run_on_all_ranks(comm, [&] {
    for (const Json& expected : first) {
      const auto name = expected[0].get<std::string>(), value = expected[1].get<std::string>();
      const auto fact =
          std::find_if(own.begin(), own.end(), [&](const Fact& f) { return f.name == name; });
      if (fact == own.end()) {
        refuse({name, "", ExitCode::config, "start every process with the same configuration"},
               abbreviate(value), "unset");
      }
      if (fact->value != value) refuse(*fact, abbreviate(value), abbreviate(fact->value));
    }
    for (const Fact& fact : own) {
      if (std::none_of(first.begin(), first.end(),
                       [&](const Json& f) { return f[0] == fact.name; })) {
        refuse(fact, "unset", abbreviate(fact.value));
      }
    }
  });
}

}  // namespace bamtrain
