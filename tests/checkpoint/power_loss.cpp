// The process dies before every operation, in turn. Optionally, unsynced data is lost with it.

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <utility>

#include "catch.h"
#include "core/durable_file.h"
#include "scenario.h"

namespace bamtrain {
namespace {

/// What may still be lost on a file system that guarantees only what fsync guarantees:
/// - content of files written after their last sync;
/// - files whose folder was not synced after their creation;
/// - renames whose folder was not synced after them (later ones first, as journals do).
class Disk {
 public:
  /// Records that `op` succeeded.
  void note(FileOp op, const std::string& path, const std::string& target) {
    const auto parent = [](const std::string& p) { return p.substr(0, p.rfind('/')); };
    if (op == FileOp::create) {
      files_[path] = {true, true};
    } else if (op == FileOp::write) {
      files_[path].content_at_risk = true;
    } else if (op == FileOp::sync) {
      files_[path].content_at_risk = false;
    } else if (op == FileOp::remove) {
      files_.erase(path);
      std::erase_if(renames_, [&](const auto& r) { return r.second == path; });
    } else if (op == FileOp::sync_folder) {
      for (auto& [name, file] : files_) {
        if (parent(name) == path) file.entry_at_risk = false;
      }
      std::erase_if(renames_, [&](const auto& r) { return parent(r.second) == path; });
    } else if (op == FileOp::rename) {
      renames_.emplace_back(path, target);
      std::map<std::string, File> moved;
      for (const auto& [name, file] : files_) {
        const bool inside = name.compare(0, path.size() + 1, path + "/") == 0;
        moved[inside ? target + name.substr(path.size()) : name] = file;
      }
      files_ = moved;
    }
  }

  /// Undoes the last `renames` of the renames at risk, and everything else at risk.
  void lose(size_t renames) {
    for (const auto& [name, file] : files_) {
      if (file.content_at_risk) std::filesystem::resize_file(name, 1);
      if (file.entry_at_risk) std::filesystem::remove(name);
    }
    for (; renames > 0 && !renames_.empty(); --renames) {
      std::filesystem::rename(renames_.back().second, renames_.back().first);
      renames_.pop_back();
    }
  }

 private:
  struct File {
    bool content_at_risk = false, entry_at_risk = false;
  };
  std::map<std::string, File> files_;
  std::vector<std::pair<std::string, std::string>> renames_;
};

enum class Loss { nothing, no_rename, last_rename, all_renames };

struct DeathPlan {
  int64_t last = 0;  // the process dies before this operation, counted from 1
  Loss loss = Loss::nothing;
  int64_t seen = 0;
  Disk disk;
  FileOp op = FileOp::write;  // the previous operation
  std::string path, target;
};
DeathPlan g_death_plan;

constexpr int kCompleted = 10, kDied = 11, kBroken = 12;

void lose_as_planned() {
  if (g_death_plan.seen > 0)
    g_death_plan.disk.note(g_death_plan.op, g_death_plan.path, g_death_plan.target);
  if (g_death_plan.loss == Loss::nothing) return;
  g_death_plan.disk.lose(g_death_plan.loss == Loss::no_rename     ? 0
                         : g_death_plan.loss == Loss::last_rename ? 1
                                                                  : 99);
}

int die_as_planned(FileOp op, const std::string& path, const std::string& target) {
  if (g_death_plan.seen + 1 == g_death_plan.last) {
    lose_as_planned();
    ::_exit(kDied);
  }
  if (g_death_plan.seen++ > 0)
    g_death_plan.disk.note(g_death_plan.op, g_death_plan.path, g_death_plan.target);
  g_death_plan.op = op;
  g_death_plan.path = path;
  g_death_plan.target = target;
  return 0;
}

/// Runs the change in a process that dies as planned. Returns its exit code.
int change_in_process(int64_t last, Loss loss, const Scenario& scenario, const std::string& out) {
  const pid_t child = ::fork();
  require(child >= 0, "a second process");
  if (child == 0) {
    try {
      g_death_plan.last = last;
      g_death_plan.loss = loss;
      for (const auto& [from, to] : scenario.unsynced) {
        g_death_plan.disk.note(FileOp::rename, out + "/" + from, out + "/" + to);
      }
      set_file_fault(die_as_planned);
      scenario.change(out);
      lose_as_planned();
      ::_exit(kCompleted);
    } catch (...) {
      ::_exit(kBroken);
    }
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kBroken;
}

TEST_CASE(
    "wherever the process or the machine dies, the old or the new checkpoint is there whole") {
  for (const Scenario& scenario : scenarios()) {
    for (const Loss loss : {Loss::nothing, Loss::no_rename, Loss::last_rename, Loss::all_renames}) {
      int64_t n = 1;
      for (;; ++n) {
        INFO(scenario.name << ", before operation " << n << ", loss " << static_cast<int>(loss));
        const TemporaryFolder out;
        scenario.prepare(out.path());
        const int ended = change_in_process(n, loss, scenario, out.path());
        REQUIRE((ended == kDied || ended == kCompleted));
        const auto tag = newest_tag(out.path());
        CHECK((ended == kDied ? scenario.before_or_after(tag) : tag == scenario.after));
        CHECK(all_valid(out.path()));
        scenario.change(out.path());
        CHECK(newest_tag(out.path()) == scenario.after);
        CHECK(names_in(out.path()) == scenario.remaining);
        if (ended == kCompleted) break;
      }
      CHECK(n > 4);
    }
  }
}

}  // namespace
}  // namespace bamtrain
