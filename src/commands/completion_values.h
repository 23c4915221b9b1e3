#pragma once
// Values that shells complete in bamtrain's command lines, besides those of its command-line tree:
// keys of --set and their values, topics of bamtrain help.

#include "core/completion.h"

namespace bamtrain {

/// `app` must outlive what this returns.
Values completion_values(const CLI::App& app);

}  // namespace bamtrain
