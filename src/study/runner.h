#pragma once
// Trains what a study has not: a process for each run, some at a time.

#include <functional>
#include <string>
#include <vector>

#include "study/plan.h"

namespace bamtrain {

struct RunnerSettings {
  int jobs = 1;                   // runs at a time
  std::vector<std::string> gpus;  // one for each of them, as CUDA_VISIBLE_DEVICES names it; or none
};

struct RunnerResult {
  int done = 0, diverged = 0, failed = 0;  // runs, counted from the disk at the end
  int exit_code = 0;                       // of the first that failed
  bool interrupted = false;
};

/// Starts this program anew for every run that is neither done nor diverged, in their order, and
/// waits for them. SIGINT, SIGTERM, SIGHUP and SIGUSR1, where they are not ignored, are passed on
/// to them, which save and end, and end this; a second ends them at once. A run of another process
/// that is alive is waited for when there is nothing else to do. Where this process dies, its runs
/// save and end. `changed` is called when a run has ended, before the first and after the last,
/// those of other processes among them; its errors are told, but the last, and what goes wrong with
/// one run's folder fails that run alone.
/// REQUIRES: no other thread waits for signals or children.
RunnerResult run_study(const Study& study, const std::vector<StudyRun>& runs,
                       const RunnerSettings& settings, const std::function<void()>& changed);

}  // namespace bamtrain
