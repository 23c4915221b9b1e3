#pragma once
// The full configuration of a run, filled from JSON by config/reader.h.

#include <string>

#include "data/data_config.h"
#include "model/model_config.h"
#include "train/train_config.h"

namespace bamtrain {

enum class DeviceKind { automatic, cpu, cuda, check };

/// Their names in configs and on the command line.
inline const std::vector<std::pair<std::string, DeviceKind>> kDeviceNames = {
    {"auto", DeviceKind::automatic},
    {"cpu", DeviceKind::cpu},
    {"cuda", DeviceKind::cuda},
    {"check", DeviceKind::check}};

struct RunConfig {
  int64_t config_version = kConfigVersion;
  bool names_version = true;  // false: the configuration has none, and a default was taken
  std::string name;
  uint64_t seed = 0;
  DeviceKind device = DeviceKind::automatic;
  std::string out_dir;
  ModelConfig model;
  InitFromConfig init_from;
  DataConfig data;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  TrainConfig train;
  CheckpointConfig checkpoint;
  EvalConfig eval;
  SampleConfig sample;
  LogConfig log;
};

}  // namespace bamtrain
