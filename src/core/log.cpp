#include "chexnet/core/log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>
#include <utility>

#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/safe_open.hpp"

namespace chexnet {
namespace {

// Where the program's messages go: one object per process, as they come from
// every thread and library folder. The other objects of a process are the flags
// that signal handlers set (launch/signals), the plug-ins for MPI and CUDA that
// stay loaded (comm, cuda), and the mapped files that explain a SIGBUS
// (data/mapped_file).
struct Logs {
  std::mutex mutex;  // guards everything below
  std::shared_ptr<spdlog::logger> console = [] {
    auto logger = std::make_shared<spdlog::logger>(
        "console", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_pattern("%v");
    return logger;
  }();
  std::shared_ptr<spdlog::logger> file;
  std::string prefix;
  bool informs = true;
};

Logs& logs() {
  static Logs instance;
  return instance;
}

void write(spdlog::level::level_enum level, const std::string& raw,
           const char* label) {
  // Names of files and of archives' members are part of many messages.
  const std::string text = printable(raw, "\n\t");
  Logs& l = logs();
  const std::lock_guard lock(l.mutex);
  if (level > spdlog::level::info || l.informs) {
    l.console->log(level, l.prefix + label + text);
    l.console->flush();
  }
  if (l.file) {
    l.file->log(level, text);
    l.file->flush();
  }
}

}  // namespace

void log_info(const std::string& text) { write(spdlog::level::info, text, ""); }
void log_warning(const std::string& text) {
  write(spdlog::level::warn, text, "warning: ");
}
void log_error(const std::string& text) {
  write(spdlog::level::err, text, "error: ");
}

void set_log_rank(int rank, int world_size) {
  Logs& l = logs();
  const std::lock_guard lock(l.mutex);
  l.prefix =
      world_size > 1 && rank > 0 ? "rank " + std::to_string(rank) + ": " : "";
  l.informs = rank == 0;
}

void set_log_file(const std::string& path) {
  Logs& l = logs();
  const std::lock_guard lock(l.mutex);
  const AppendName file(path);
  l.file = std::make_shared<spdlog::logger>(
      "file", std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.name()));
  l.file->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  // Once: a full disk refuses every line. Whoever writes holds the lock.
  l.file->set_error_handler(
      [&l, path, told = false](const std::string& why) mutable {
        if (std::exchange(told, true)) return;
        const std::string reason = why.substr(why.rfind(": ") + 1);
        l.console->warn(l.prefix + "warning: [log] " + printable(path) +
                        ": lines are missing from here on:" + reason +
                        ". Hint: free space there");
      });
}

void close_log() {
  Logs& l = logs();
  const std::lock_guard lock(l.mutex);
  if (l.file) l.file->flush();
  l.file.reset();
  l.console->flush();
}

}  // namespace chexnet
