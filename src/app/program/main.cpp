// Parses, calls one subcommand, catches once. After an error, in this order:
// the text goes to stderr and the rank's log; into the metrics of the run that
// ended by it; the log is closed; and where there are other ranks all of them
// end with this error's code. The abort comes last because nothing comes after
// it.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <new>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/spelling_hint.hpp"
#include "chexnet/app/version.hpp"
#include "chexnet/comm/shared_work.hpp"
#include "chexnet/core/command_line.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/exit_codes.hpp"
#include "chexnet/core/freed_memory.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/launcher_codes.hpp"
#include "chexnet/launch/launcher_files.hpp"
#include "chexnet/launch/signals.hpp"
#include "chexnet/train/library_error.hpp"

namespace {

// A failed rank takes the others with it, by the same code: they would wait for
// it until the deadline.
[[noreturn]] void fail(const chexnet::Invocation& invocation,
                       const std::string& text, chexnet::ExitCode code) {
  chexnet::log_error(text);
  try {
    const auto& note = invocation.on_failure.note_error;
    if (note) note(static_cast<int>(code), text);
  } catch (const std::exception& e) {
    chexnet::log_warning(e.what());
  }
  chexnet::close_log();
  std::cout.flush();
  const auto& abort = invocation.on_failure.abort;
  if (abort) abort(static_cast<int>(code));
  // Not by return: at a regular end destructors of libraries may wait for a GPU
  // that hangs.
  std::_Exit(chexnet::code_for_launcher(static_cast<int>(code)));
}

void set_signals() {
  // Our parent may ignore it, and the kernel would discard how our children
  // end.
  signal(SIGCHLD, SIG_DFL);
  // A limit of file sizes is then an error of the write that says so.
  signal(SIGXFSZ, SIG_IGN);
}

// A thread's stack is as large as this limit, and loaders crash below 128 KiB.
void require_stack() {
  constexpr rlim_t kLeastBytes = rlim_t{256} << 10;
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeastBytes)
    return;
  throw chexnet::DeviceError(
      "[process] a stack may have {} KiB, and 256 are needed. Hint: raise "
      "`ulimit -s` (8192 is usual)",
      limit.rlim_cur >> 10);
}

bool is_lack_of_threads(const std::exception& e) {
  const auto* system = dynamic_cast<const std::system_error*>(&e);
  return system != nullptr &&
         system->code() == std::errc::resource_unavailable_try_again;
}

// One line for each command, and no blank ones between the groups.
class OneScreen : public CLI::Formatter {
 public:
  OneScreen() { column_width(kNames); }
  std::string make_subcommands(const CLI::App* app,
                               CLI::AppFormatMode mode) const override {
    std::string text = CLI::Formatter::make_subcommands(app, mode);
    for (size_t at = 0; (at = text.find("\n\n", at)) != std::string::npos;)
      text.erase(at, 1);
    return text;
  }

 private:
  static constexpr size_t kNames = 12;  // columns
};

using AddCommand = void (*)(CLI::App& app, chexnet::Invocation& invocation);

// In groups, in the order of work, as --help shows them.
void add_commands(CLI::App& app, chexnet::Invocation& invocation) {
  const auto add = [&](const char* group,
                       std::initializer_list<AddCommand> commands) {
    for (const AddCommand command : commands) {
      command(app, invocation);
      app.get_subcommands({}).back()->group(group);
    }
  };
  add("Prepare", {chexnet::add_config, chexnet::add_inspect, chexnet::add_pack,
                  chexnet::add_phantom});
  add("Train", {
#ifdef CHEXNET_TOOLS
                   chexnet::add_find_lr,
#endif
                   chexnet::add_train,
#ifdef CHEXNET_TOOLS
                   chexnet::add_submit,
#endif
                   chexnet::add_status,
               });
  add("Use", {chexnet::add_evaluate, chexnet::add_predict, chexnet::add_report,
              chexnet::add_ensemble, chexnet::add_import, chexnet::add_export});
#ifdef CHEXNET_TOOLS
  add("Machine", {chexnet::add_doctor, chexnet::add_bench});
#endif
}

}  // namespace

// Where even an error cannot be printed, the process may as well be aborted.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) {
  using chexnet::ExitCode;
  set_signals();
  chexnet::keep_freed_memory();
  if (chexnet::started_as_rank(chexnet::process_environment())) {
    if (!chexnet::die_with_parent()) return static_cast<int>(ExitCode::kDevice);
    chexnet::remove_files_after_launcher();
  }

  chexnet::Invocation invocation;
  invocation.program = std::filesystem::read_symlink("/proc/self/exe").string();
  invocation.command = chexnet::command_words(chexnet::process_environment(),
                                              invocation.program);
  invocation.arguments.assign(argv + 1, argv + argc);

  CLI::App app{
      "Trains DenseNet-121 and ResNet-50 on chest X-rays with one rank per "
      "GPU.\nFor research use, not a medical device."};
  app.name("chexnet-train");
  app.require_subcommand(1);
  app.set_version_flag("--version", "chexnet-train " CHEXNET_VERSION,
                       "print the version; with --json what this build is made "
                       "of");
  add_commands(app, invocation);
  app.formatter(std::make_shared<OneScreen>());
  app.footer("Exit codes and errors: docs/errors.md");
  try {
    chexnet::refuse_empty_values(app, invocation.arguments);
    if (chexnet::print_version(invocation.arguments))
      return chexnet::code_when_said(0);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    // What is said of it follows from a word that nobody took, as does the help
    // of the command above it.
    const std::string unknown = chexnet::spelling_hint(app);
    if (unknown.empty()) return chexnet::say_end_of_parsing(app, e);
    std::cerr << chexnet::printable(unknown, "\n");
    return static_cast<int>(ExitCode::kUsage);
  }
  chexnet::set_end_of_stuck_work([&](const std::string& error) {
    fail(invocation, error, ExitCode::kHang);
  });
  try {
    require_stack();
    const int code = invocation.run();
    chexnet::require_stdout();
    chexnet::close_log();
    return chexnet::code_for_launcher(code);
  } catch (const chexnet::Error& e) {
    fail(invocation, e.what(), e.code());
  } catch (const c10::Error& e) {
    fail(invocation, chexnet::library_error_text(e), ExitCode::kDevice);
  } catch (const std::filesystem::filesystem_error& e) {
    fail(invocation,
         std::string("[files] ") + e.what() +
             ". Hint: check the path and its permissions",
         ExitCode::kCheckpoint);
  } catch (const std::bad_alloc&) {
    fail(invocation,
         "[memory] the machine has not enough memory. Hint: lower train.batch, "
         "data.prefetch or the number of ranks",
         ExitCode::kDevice);
  } catch (const std::exception& e) {
    if (is_lack_of_threads(e))
      fail(invocation,
           "[process] no further thread or process can be started. Hint: raise "
           "`ulimit -u`, or pids.max of the container or the job; data.workers "
           "and launch.threads say how many are wanted",
           ExitCode::kDevice);
    fail(invocation,
         std::string("[internal] ") + e.what() +
             ". Hint: this is a fault of the program or of a library; "
             "please report it",
         ExitCode::kDevice);
  }
}
