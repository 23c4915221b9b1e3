// Every disk operation fails once, in turn.

#include <cerrno>
#include <cstring>

#include "catch.h"
#include "core/durable_file.h"
#include "scenario.h"

namespace bamtrain {
namespace {

struct FaultPlan {
  int64_t first = 0;     // number of the failing operation, from 1
  bool lasting = false;  // later operations of the same kind fail too
  int error = 0;
  int64_t seen = 0;
  bool failed = false;
  FileOp op = FileOp::write;
};
FaultPlan g_fault_plan;

int fail_as_planned(FileOp op, const std::string&, const std::string&) {
  ++g_fault_plan.seen;
  if (g_fault_plan.seen < g_fault_plan.first) return 0;
  if (g_fault_plan.seen == g_fault_plan.first) {
    g_fault_plan.op = op;
    g_fault_plan.failed = true;
    return g_fault_plan.error;
  }
  return g_fault_plan.lasting && op == g_fault_plan.op ? g_fault_plan.error : 0;
}

/// The message of the Error that the change throws, else its first warning; "" if it succeeds.
std::string change_with(const FaultPlan& plan, const Scenario& scenario, const std::string& out) {
  g_fault_plan = plan;
  set_file_fault(fail_as_planned);
  g_warnings.clear();
  std::string message;
  try {
    scenario.change(out);
  } catch (const Error& e) {
    message = e.code() == ExitCode::io ? e.what() : "an Error of another code";
  }
  set_file_fault(nullptr);
  return message.empty() && !g_warnings.empty() ? g_warnings[0] : message;
}

TEST_CASE("whichever operation fails, the last good checkpoint stays and the temporary goes") {
  for (const Scenario& scenario : scenarios()) {
    for (const int error : {ENOSPC, EIO, EROFS}) {
      for (const bool lasting : {false, true}) {
        int64_t n = 1;
        for (;; ++n) {
          INFO(scenario.name << ", operation " << n << ", " << std::strerror(error) << lasting);
          const TemporaryFolder out;
          scenario.prepare(out.path());
          const std::string message = change_with({n, lasting, error}, scenario, out.path());
          if (!g_fault_plan.failed) {
            CHECK(message == "");
            CHECK(newest_tag(out.path()) == scenario.after);
            CHECK(names_in(out.path()) == scenario.remaining);
            break;
          }
          INFO(message);
          CHECK(contains(message, out.path()));
          CHECK(contains(message, std::strerror(error) + std::string("; ")));
          CHECK(scenario.before_or_after(newest_tag(out.path())));
          CHECK(all_valid(out.path()));
          if (scenario.name != "pruning") {
            CHECK(!std::filesystem::exists(out / ".tmp-checkpoint-00000002"));
            CHECK(!std::filesystem::exists(out / ".tmp-checkpoint-00000004"));
          }
          if (scenario.name == "a save of the same step" && !lasting) {
            CHECK(std::filesystem::exists(out / "checkpoint-00000002"));
          }
          scenario.change(out.path());
          CHECK(newest_tag(out.path()) == scenario.after);
          CHECK(names_in(out.path()) == scenario.remaining);
        }
        CHECK(n > 4);
      }
    }
  }
}

TEST_CASE("a place that cannot hold checkpoints is named with the reason") {
  const TemporaryFolder folder;
  write_bytes(folder / "file", "");
  CHECK(contains(error_of(ExitCode::io, [&] { save(folder / "none", 1, 10); }),
                 "none: cannot list the folder: No such file or directory"));
  CHECK(contains(error_of(ExitCode::io, [&] { save(folder / "file", 1, 10); }), "Not a directory"));
}

TEST_CASE("an old checkpoint that cannot be removed is a warning, and goes with the next save") {
  const TemporaryFolder out;
  for (int step : {1, 2, 3}) save(out.path(), step, 10 * step);
  const auto refusing = [](FileOp op, const std::string&, const std::string&) {
    return op == FileOp::remove ? EBUSY : 0;
  };
  g_warnings.clear();
  set_file_fault(refusing);
  prune_checkpoints(out.path(), 1, 0, std::nullopt, keep_warning);
  save(out.path(), 4, 40);
  set_file_fault(nullptr);
  REQUIRE(g_warnings.size() == 4);  // two from each
  for (const std::string& warning : g_warnings) {
    CHECK(contains(warning, "cannot remove old checkpoints before the next save"));
    CHECK(contains(warning, std::strerror(EBUSY)));
  }
  CHECK(newest_tag(out.path()) == 40);
  prune_checkpoints(out.path(), 1, 0, std::nullopt, no_warning);
  CHECK(names_in(out.path()) == std::vector<std::string>{"checkpoint-00000004"});
}

}  // namespace
}  // namespace bamtrain
