// The command line of bamtrain. Everything else is a config key; `--resume` is the only alias.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
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
#include "core/manual_page.h"
#include "core/stack.h"
#include "core/standard_output.h"
#include "core/usage_error.h"
#include "core/utf8.h"
#include "core/version.h"
#include "core/wait_policy.h"
#include "dist/agreement.h"
#include "run/agreement.h"
#include "run/signals.h"

namespace bamtrain {

namespace {

void require_readable_config(const TrainArguments& arguments) {
  if (arguments.config.empty()) {
    throw Error::fault(ExitCode::usage, "", "missing --config FILE, a run configuration",
                       "bamtrain --help lists the options");
  }
}

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

/// --resume as a --set argument. State files are JSON, which only holds UTF-8 text.
std::string resume_override(const std::string& resume) {
  if (first_invalid_utf8(resume) != std::string_view::npos) {
    throw Error::fault(ExitCode::usage, "--resume", "not valid UTF-8",
                       "rename the folder, or link to it by another name");
  }
  return "checkpoint.resume=" + nlohmann::json(resume).dump();
}

int parse_and_run(int argc, char** argv) {
  CLI::App app{"pretrain small language models and measure how they extrapolate to longer texts",
               "bamtrain"};
  set_help_format(app);
  app.require_subcommand(0, 1);  // arguments after a command belong to it: bamtrain help export
  app.set_version_flag("--version", version_text(), "print the version");
  TrainArguments arguments;
  std::string resume;
  bool print_schema = false;
  constexpr const char* kTraining = "Training";
  app.add_option("--config", arguments.config, "run configuration (JSON): train this run")
      ->type_name("FILE")
      ->group(kTraining);
  app.add_option("--set", arguments.overrides,
                 "override a config key (a.b.c=value, JSON or a bare string); repeatable")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false)  // [a,b] is one value
      ->group(kTraining);
  app.add_option("--resume", resume, "auto, never or a checkpoint folder: checkpoint.resume")
      ->type_name("HOW")
      ->group(kTraining);
  app.add_flag("--dry-run", arguments.dry_run,
               "check config, data and memory, and print what the run needs")
      ->group(kTraining);
  app.add_flag("--print-schema", print_schema, "print the config's JSON Schema");

  const std::vector<Command> commands = {
      eval_command(app),    export_command(app), generate_command(app), help_command(app),
      inspect_command(app), report_command(app), study_command(app)};
  app.footer(  // not of the commands, which would inherit it
      "bamtrain COMMAND --help lists the options of a command, bamtrain help the pages\n"
      "of the documentation.\n");
  if (print_completions(app, argc, argv, completion_values(app)) ||
      print_manual(app, argc, argv, version(), manual_sections())) {
    return 0;
  }

  try {
    app.parse(argc, argv);
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
    if (!arguments.config.empty() || !arguments.overrides.empty() || !resume.empty() ||
        arguments.dry_run) {
      throw Error::fault(ExitCode::usage, name,
                         "does not take --config, --set, --resume or --dry-run before its name",
                         "remove them, or give the options of " + name + " after its name");
    }
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
  if (!resume.empty()) arguments.overrides.push_back(resume_override(resume));
  require_readable_config(arguments);

  take_stop_signals();
  // Outlives the handler: the other ranks wait until abort() releases them.
  const std::unique_ptr<Communicator> comm = make_communicator();
  return run_or_abort(*comm, [&] { return run_train(arguments, *comm); });
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
