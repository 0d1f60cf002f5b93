#include "remote_files.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/data/image_source.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/self_launch.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

// Names the folder of stand-ins for the ranks of this process.
constexpr const char* kVariable = "CHEXNET_REMOTE_FILES";

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
  throw ConfigError("[s3] " + path +
                    ": ranks that mpirun or srun started do not write one "
                    "result there. Hint: the same command without mpirun or "
                    "srun, with --ranks " +
                    std::to_string(launched_processes(env)));
}

void refuse_several_hosts(const std::string& path, Communicator& comm) {
  if (!is_s3(path) || comm.world().local_size == comm.size()) return;
  if (comm.rank() == 0)
    throw ConfigError(
        "[s3] " + path +
        ": ranks on several hosts do not write one result there. Hint: ranks "
        "on one host (--ranks, without launch.hostfile), or a folder that all "
        "hosts share");
  comm.barrier();  // rank 0 ends all
}

RemoteFiles::RemoteFiles(const std::vector<std::string>& set)
    : s3_(s3_of(set)), stores_(s3_options(s3_)) {
  if (const char* folder = std::getenv(kVariable); folder != nullptr) {
    is_owner_ = false;
    folder_ = folder;
  }
}

RemoteFiles::~RemoteFiles() {
  if (own_folder_) unsetenv(kVariable);
}

fs::path RemoteFiles::stand_in(const std::string& path) {
  if (folder_.empty()) {
    own_folder_ = std::make_unique<TemporaryFolder>("s3", "chexnet-s3");
    folder_ = own_folder_->path();
    setenv(kVariable, folder_.c_str(), 1);
  }
  fs::path name = fs::path(path.substr(5)).relative_path().lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  if (name.empty() || *name.begin() == "..")
    throw ConfigError("[s3] " + path +
                      " names no object. Hint: s3://bucket/key");
  fs::create_directories((folder_ / name).parent_path());
  return folder_ / name;
}

// A key without the right to write is told before the work, not behind it.
void RemoteFiles::require_writable(const std::string& path) {
  const std::string probe = path + ".chexnet-probe";
  stores_.objects().put(probe, "");
  stores_.objects().remove(probe);
}

std::string RemoteFiles::output_file(const std::string& path,
                                     const std::string& head) {
  if (!is_s3(path)) return path;
  const fs::path local = stand_in(path);
  if (is_owner_) {
    const auto refuse = [&](const std::string& what) {
      throw ConfigError("[output] " + path + " is there, and " + what +
                        ": it is not replaced. Hint: give the output another "
                        "name, or remove that object");
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

std::string RemoteFiles::output_folder(const std::string& path) {
  if (!is_s3(path)) return path;
  const fs::path local = stand_in(path);
  fs::create_directories(local);
  if (!is_owner_) return local.string();
  bool is_empty = false;
  try {
    stores_.objects().list(path);
  } catch (const AbsentError&) {
    is_empty = true;
  }
  if (!is_empty)
    throw ConfigError("[output] " + path +
                      ": objects are there already. Hint: give the output "
                      "another name, or remove them");
  require_writable(path + "/x");
  outputs_.push_back({path, local});
  return local.string();
}

std::string RemoteFiles::input(const std::string& path, FetchedFiles files) {
  if (!is_s3(path)) return path;
  std::string place = path;
  while (place.ends_with('/')) place.pop_back();
  const fs::path local = stand_in(place);
  if (!is_owner_) return local.string();
  log_info("fetching " + place);
  if (place.ends_with(".safetensors")) {
    std::vector<std::byte> bytes;
    stores_.objects().read_whole(place, bytes);
    write_atomically(
        local, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } else {
    fs::create_directories(local);
    fetch_run(stores_.objects(), place, local, files, [] {});
  }
  return local.string();
}

void RemoteFiles::send(const Output& output) {
  if (!fs::is_directory(output.from)) {
    stores_.objects().put_file(output.to, output.from);
    log_info("written to " + output.to);
    return;
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(output.from))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  for (const auto& file : files)
    stores_.objects().put_file(
        output.to + "/" + fs::relative(file, output.from).string(), file);
  log_info(std::to_string(files.size()) + " files written to " + output.to);
}

int RemoteFiles::finish(int code) {
  if (code != 0) return code;
  for (const auto& output : outputs_) {
    if (!fs::exists(output.from)) continue;
    try {
      send(output);
    } catch (const std::exception& e) {
      const fs::path name = fs::relative(output.from, own_folder_->path());
      throw CheckpointError(
          "[s3] " + output.to + ": not stored there; the result is kept in " +
          (own_folder_->keep() / name).string() + ". The reason: " + e.what());
    }
  }
  return code;
}

}  // namespace chexnet
