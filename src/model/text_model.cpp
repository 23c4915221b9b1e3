#include "model/text_model.h"

#include "core/error.h"

namespace bamtrain {

void check_text_model(const ModelConfig& config) {
  if (config.outputs() == config.vocab) return;
  throw Error(ExitCode::config, "model.classes",
              "0, a model that says which id follows: this asks for texts",
              std::to_string(config.classes) + " classes of the answers of a task",
              "use bamtrain eval --task, or another checkpoint");
}

}  // namespace bamtrain
