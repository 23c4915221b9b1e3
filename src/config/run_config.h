#pragma once
#include "train/run_config.h"
