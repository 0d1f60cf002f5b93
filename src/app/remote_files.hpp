// What a command reads from and writes to s3://, as files of this machine
// meanwhile: models and runs are fetched before the work, results are sent
// after it. The process that starts ranks does both; they find the same files
// through a variable of the environment.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/core/temporary_folder.hpp"
#include "chexnet/run/remote_run.hpp"
#include "chexnet/storage/stores.hpp"

namespace chexnet {

// Results that all ranks write together are gathered in a folder of this host,
// which the process that started the ranks sends to `path`. ConfigError where
// `path` is on s3:// and mpirun or srun started this process beside others, so
// that there is none.
void refuse_ranks_of_others(const std::string& path);
// The same where ranks are on several hosts. Collective.
void refuse_several_hosts(const std::string& path, Communicator& comm);

class RemoteFiles {
 public:
  // `set`: of the command line; those of data.s3 count here.
  explicit RemoteFiles(const std::vector<std::string>& set);
  ~RemoteFiles();
  RemoteFiles(const RemoteFiles&) = delete;
  RemoteFiles& operator=(const RemoteFiles&) = delete;

  const S3Config& s3() const { return s3_; }
  // What is to be written in place of `path`: itself, unless it is on s3://.
  // Before the work: AbsentError where nothing may be written there, and
  // ConfigError where an object is that does not begin with `head`.
  std::string output_file(const std::string& path, const std::string& head);
  // The same; ConfigError where there is anything already.
  std::string output_folder(const std::string& path);
  // What is to be read in place of a run, a checkpoint or a model file.
  std::string input(const std::string& path, FetchedFiles files);
  // The end of a command that returned `code`: sends what there is to send
  // where that is 0, and returns it. CheckpointError names the local file,
  // which is kept, where that failed.
  int finish(int code);

 private:
  struct Output {
    std::string to;
    std::filesystem::path from;
  };
  std::filesystem::path stand_in(const std::string& path);
  void require_writable(const std::string& path);
  void send(const Output& output);
  S3Config s3_;
  Stores stores_;
  bool is_owner_ = true;  // not a rank that our parent started
  std::unique_ptr<TemporaryFolder> own_folder_;  // where this is the owner
  std::filesystem::path folder_;                 // of stand-ins
  std::vector<Output> outputs_;
};

}  // namespace chexnet
