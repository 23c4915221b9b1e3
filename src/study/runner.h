#pragma once
// Trains the missing runs of a study: one process per run, several at a time.

#include <functional>
#include <string>
#include <vector>

#include "study/plan.h"

namespace bamtrain {

struct RunnerSettings {
  int jobs = 1;                   // runs at a time
  std::vector<std::string> gpus;  // one per job, as in CUDA_VISIBLE_DEVICES; or empty
};

struct RunnerResult {
  int done = 0, diverged = 0, failed = 0;  // runs, counted from the disk at the end
  int exit_code = 0;                       // of the first failed run
  bool interrupted = false;
};

/// Starts this program for every run that is neither done nor diverged, in order, and waits for
/// all. On SIGINT, SIGTERM, SIGHUP or SIGUSR1, unless ignored, the runs save and end, then this
/// returns; a second signal kills them. A live run of another process is waited for when there is
/// nothing else to do. If this process dies, its runs save and end. `changed` is called before the
/// first run, after each run trained here, and at the end, when runs of other processes have ended
/// too. Its errors are reported, except that the last call's propagates. A problem with one run's
/// folder fails only that run. REQUIRES: no other thread waits for signals or children.
RunnerResult run_study(const Study& study, const std::vector<StudyRun>& runs,
                       const RunnerSettings& settings, const std::function<void()>& changed);

}  // namespace bamtrain
