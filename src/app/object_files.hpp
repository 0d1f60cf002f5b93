// Files other than data that commands read from and write to s3://, as local
// files meanwhile: a model file is fetched before the work, results of one file
// are sent after it. The process that starts ranks does both; they find the
// same files through a variable of the environment.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/core/temporary_folder.hpp"
#include "chexnet/data/storage/stores.hpp"

namespace chexnet {

// Results that all ranks write together are gathered in a folder of this host,
// which the process that started the ranks sends to `path`. ConfigError where
// `path` is on s3:// and mpirun or srun started this process beside others, so
// that there is none.
void refuse_ranks_of_others(const std::string& path);
// The same where ranks are on several hosts. Collective.
void refuse_several_hosts(const std::string& path, Communicator& comm);

class ObjectFiles {
 public:
  // `set`: of the command line; those of data.s3 count here.
  explicit ObjectFiles(const std::vector<std::string>& set);
  ~ObjectFiles();
  ObjectFiles(const ObjectFiles&) = delete;
  ObjectFiles& operator=(const ObjectFiles&) = delete;

  const S3Config& s3() const { return s3_; }
  // The path to write to instead of `path`: itself, unless it is on s3://.
  // Before the work: AbsentError where nothing may be written there, and
  // ConfigError where an object exists that does not begin with `head`.
  std::string output_file(const std::string& path, const std::string& head);
  // The path to read instead of a model file's. ConfigError for anything else
  // on s3://.
  std::string model(const std::string& path);
  // The end of a command that returned `code`: sends the results where that is
  // 0, and returns it. CheckpointError names the local file, which is kept,
  // where that failed.
  int finish(int code);

 private:
  struct Output {
    std::string to;
    std::filesystem::path from;
  };
  std::filesystem::path stand_in(const std::string& path);
  void require_writable(const std::string& path);
  S3Config s3_;
  Stores stores_;
  bool is_owner_ = true;  // not a rank that our parent started
  std::unique_ptr<TemporaryFolder> own_folder_;  // where this is the owner
  std::filesystem::path folder_;                 // of stand-ins
  std::vector<Output> outputs_;
};

}  // namespace chexnet
