#include "object_files.hpp"

#include <cstddef>
#include <cstdlib>

#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/data/image_source.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/self_launch.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

// Names the folder of stand-ins for the ranks of this process.
constexpr const char* kVariable = "CHEXNET_OBJECT_FILES";

S3Config s3_of(const std::vector<std::string>& set) {
  std::vector<std::string> own;
  for (const auto& item : set)
    if (item.starts_with("data.s3.")) own.push_back(item);
  return load_config({}, own).data.s3;
}

}  // namespace

void refuse_ranks_of_others(const std::string& path) {
  const Environment env = process_environment();
  if (!is_s3(path) || started_by_parent(env) || launched_processes(env) < 2)
    return;
  throw ConfigError(
      "[s3] {}: ranks that mpirun or srun started do not write one result "
      "there. Hint: the same command without mpirun or srun, with --ranks {}",
      path, launched_processes(env));
}

void refuse_several_hosts(const std::string& path, Communicator& comm) {
  if (!is_s3(path) || comm.world().local_size == comm.size()) return;
  if (comm.rank() == 0)
    throw ConfigError(
        "[s3] {}: ranks on several hosts do not write one result there. Hint: "
        "ranks on one host (--ranks, without launch.hostfile), or a folder "
        "that all hosts share",
        path);
  comm.barrier();  // rank 0 ends all
}

ObjectFiles::ObjectFiles(const std::vector<std::string>& set)
    : s3_(s3_of(set)), stores_(s3_options(s3_)) {
  if (const char* folder = std::getenv(kVariable); folder != nullptr) {
    is_owner_ = false;
    folder_ = folder;
  }
}

ObjectFiles::~ObjectFiles() {
  if (own_folder_) unsetenv(kVariable);
}

fs::path ObjectFiles::stand_in(const std::string& path) {
  if (folder_.empty()) {
    own_folder_ = std::make_unique<TemporaryFolder>("s3", "chexnet-s3");
    folder_ = own_folder_->path();
    setenv(kVariable, folder_.c_str(), 1);
  }
  fs::path name = fs::path(path.substr(5)).relative_path().lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  if (name.empty() || *name.begin() == "..")
    throw ConfigError("[s3] {} names no object. Hint: s3://bucket/key", path);
  fs::create_directories((folder_ / name).parent_path());
  return folder_ / name;
}

// A key that may not write is reported before the work, not after it.
void ObjectFiles::require_writable(const std::string& path) {
  const std::string probe = path + ".chexnet-probe";
  stores_.objects().put(probe, "");
  stores_.objects().remove(probe);
}

std::string ObjectFiles::output_file(const std::string& path,
                                     const std::string& head) {
  if (!is_s3(path)) return path;
  const fs::path local = stand_in(path);
  if (is_owner_) {
    const auto refuse = [&](const std::string& what) {
      throw ConfigError(
          "[output] {} is there, and {}: it is not replaced. Hint: give the "
          "output another name, or remove that object",
          path, what);
    };
    if (stores_.objects().exists(path)) {
      if (head.empty()) refuse("is not known to be an output of this command");
      std::vector<std::byte> begin;
      stores_.objects().read(path, 0, head.size(), begin);
      const std::string text(reinterpret_cast<const char*>(begin.data()),
                             begin.size());
      if (text != head) refuse("was not written by this command");
    }
    require_writable(path);
    outputs_.push_back({path, local});
  }
  return local.string();
}

std::string ObjectFiles::model(const std::string& path) {
  if (!is_s3(path)) return path;
  if (!path.ends_with(".safetensors"))
    throw ConfigError(
        "[s3] {}: runs and checkpoints are read from a file system. Hint: a "
        "model's .safetensors file may be there; else copy the run here first",
        path);
  const fs::path local = stand_in(path);
  if (!is_owner_) return local.string();
  log_info("fetching " + path);
  std::vector<std::byte> bytes;
  stores_.objects().read_whole(path, bytes);
  write_atomically(local,
                   {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return local.string();
}

int ObjectFiles::finish(int code) {
  if (code != 0) return code;
  for (const auto& output : outputs_) {
    if (!fs::exists(output.from)) continue;
    try {
      stores_.objects().put_file(output.to, output.from);
      log_info("written to " + output.to);
    } catch (const std::exception& e) {
      const fs::path name = fs::relative(output.from, own_folder_->path());
      throw CheckpointError(
          "[s3] {}: not stored there; the result is kept in {}. The reason: {}",
          output.to, (own_folder_->keep() / name).string(), e.what());
    }
  }
  return code;
}

}  // namespace chexnet
