// The command line of bamtrain. Everything else is a config key; `--resume` is the only alias.
// `bamtrain --config FILE` is `bamtrain train FILE`.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>

#include "commands/command.h"
#include "commands/completion_values.h"
#include "commands/failure.h"
#include "commands/help.h"
#include "commands/train.h"
#include "config/schema.h"
#include "core/completion.h"
#include "core/help_format.h"
#include "core/list_arguments.h"
#include "core/manual_page.h"
#include "core/stack.h"
#include "core/standard_output.h"
#include "core/usage_error.h"
#include "core/version.h"
#include "core/wait_policy.h"
#include "dist/agreement.h"
#include "dist/launch.h"
#include "run/agreement.h"
#include "run/signals.h"

namespace bamtrain {

namespace {

/// Options that take several values. Those of numbers end at a word, those of keys at a path.
const std::vector<ListOption> kLists = {{"--set", is_setting},
                                        {"--task-set", is_setting},
                                        {"--lengths", is_number_list},
                                        {"--count", is_number_list}};

/// Runs f(). On failure, ends all processes with the failure's exit code.
int run_or_abort(Communicator& comm, const std::function<int()>& f) {
  try {
    return f();
  } catch (const std::exception& e) {
    const int code =
        report_failure(e, comm.size() > 1 ? fmt::format("rank {}: ", comm.rank()) : "");
    comm.abort(code);
    return code;
  }
}

/// Refuses an option of training in front of a command.
void refuse_before_command(const std::vector<CLI::Option*>& options, const std::string& name) {
  for (const CLI::Option* option : options) {
    if (option->empty()) continue;
    throw Error::fault(ExitCode::usage, name,
                       "does not take " + option->get_name() + " before its name",
                       "remove it, or give the options of " + name + " after its name");
  }
}

int parse_and_run(int argc, char** argv) {
  CLI::App app{"pretrain small language models and measure how they extrapolate to longer texts",
               "bamtrain"};
  set_help_format(app);
  app.require_subcommand(0, 1);  // arguments after a command belong to it: bamtrain help export
  app.set_version_flag("--version", version_text(), "print the version");
  TrainArguments arguments, of_command;
  bool print_schema = false;
  const std::vector<CLI::Option*> options = add_training_options(app, arguments, "--config");
  app.add_flag("--print-schema", print_schema, "print the config's JSON Schema");

  const std::vector<Command> commands = {
      eval_command(app),    export_command(app), generate_command(app), help_command(app),
      inspect_command(app), report_command(app), study_command(app)};
  CLI::App* const train = app.add_subcommand("train", "train a run, as its configuration says");
  add_training_options(*train, of_command, "CONFIG,--config").front()->required();
  app.footer(  // not of the commands, which would inherit it
      "bamtrain COMMAND --help lists the options of a command, bamtrain help the pages\n"
      "of the documentation.\n");
  if (print_completions(app, argc, argv, completion_values(app)) ||
      print_manual(app, argc, argv, version(), manual_sections())) {
    return 0;
  }

  try {
    std::vector<std::string> words = repeat_list_options(argc, argv, kLists);
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    app.parse(std::move(words));
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    throw usage_error("bamtrain", app, e);
  }
  if (print_schema) {
    fmt::print("{}\n", schema_json().dump(2));
    return 0;
  }
  for (const Command& command : commands) {
    if (!*command.app) continue;
    const std::string name = command.app->get_name();
    refuse_before_command(options, name);
    if (const auto comm = make_communicator(); comm->size() > 1) {
      return run_or_abort(*comm, [&] {
        require_agreement(*comm, program_facts(name));
        return end_together(*comm, ExitCode::usage, [&] {
          report_failure(Error::fault(ExitCode::usage, name,
                                      fmt::format("runs on one process, not {}", comm->size()),
                                      "run it without mpirun"),
                         "");
        });
      });
    }
    return command.run();
  }
  if (*train) {
    refuse_before_command(options, "train");
    arguments = of_command;
  }
  if (arguments.config.empty()) {
    throw Error::fault(ExitCode::usage, "", "missing command",
                       "bamtrain train FILE trains a run, bamtrain --help lists the commands");
  }

  take_stop_signals();
  // Outlives the handler: the other ranks wait until abort() releases them.
  const std::unique_ptr<Communicator> comm =
      detect_launch().parallel() ? make_communicator(peer_timeout_of(arguments))
                                 : make_communicator();
  return run_or_abort(*comm, [&] {
    if (!arguments.print_config) return run_train(arguments, *comm);
    return comm->rank() == 0 ? print_config(arguments) : 0;
  });
}

}  // namespace

}  // namespace bamtrain

int main(int argc, char** argv) {
  bamtrain::require_stack();
  // Makes exceeding the file size limit (ulimit -f) a failed write, like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  if (!bamtrain::open_standard_descriptors()) return 1;
  bamtrain::limit_spinning(argv);
  try {
    const int code = bamtrain::parse_and_run(argc, argv);
    if (code == 0) bamtrain::flush_standard_output();
    return code;
  } catch (const std::exception& e) {
    return bamtrain::report_failure(e, "");
  }
}
