// Messages for people: to stderr (rank 0; every rank for warnings and errors)
// and, once a run folder exists, to that rank's log file. Safe from any thread.
// spdlog stays behind this header.
#pragma once

#include <string>

namespace chexnet {

void log_info(const std::string& text);
void log_warning(const std::string& text);
void log_error(const std::string& text);

// `rank` prefixes each line when the world is larger than 1; information goes
// to stderr from rank 0 only.
void set_log_rank(int rank, int world_size);
// Copies every message of this process to `path` (appended). Call once a run
// folder exists.
void set_log_file(const std::string& path);
// Flushes and forgets the file; call before MPI ends.
void close_log();

}  // namespace chexnet
