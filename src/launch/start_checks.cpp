#include "chexnet/launch/start_checks.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "chexnet/core/error.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/child_process.hpp"
#include "chexnet/launch/network_settings.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;
constexpr const char* kInterface = "network interface";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

std::string list_text(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

// A program's output; empty when it cannot be started.
std::string answer_of(const std::vector<std::string>& command) {
  constexpr double kTimeout_s = 20;
  try {
    return output_of(command, kTimeout_s).output;
  } catch (const DeviceError&) {
    return "";
  }
}

// Whether `address` ("10.1.2.3") is one of `subnet` ("10.1.0.0/16"). Other
// forms are MPI's to know.
bool is_in(const std::string& address, const std::string& subnet) {
  const auto slash = subnet.find('/');
  in_addr net{}, own{};
  if (inet_pton(AF_INET, subnet.substr(0, slash).c_str(), &net) != 1)
    return true;
  if (inet_pton(AF_INET, address.c_str(), &own) != 1) return false;
  const int bits = std::clamp(std::atoi(subnet.c_str() + slash + 1), 0, 32);
  const uint64_t mask = ~((uint64_t{1} << (32 - bits)) - 1);
  return (ntohl(net.s_addr) & mask) == (ntohl(own.s_addr) & mask);
}

bool has_interface(const NetworkFacts& facts, const std::string& name) {
  if (name.find('/') == std::string::npos)
    return std::ranges::find(facts.interfaces, name) != facts.interfaces.end();
  return std::ranges::any_of(facts.addresses,
                             [&](const auto& own) { return is_in(own, name); });
}

bool has_adapter(const std::vector<std::string>& adapters,
                 NetworkChoice::Kind kind, const std::string& device) {
  return std::ranges::any_of(adapters, [&](const std::string& adapter) {
    const bool omni_path = adapter.starts_with("hfi1");
    if (kind == NetworkChoice::Kind::kOmniPath) return omni_path;
    return !omni_path && (device.empty() || adapter == device);
  });
}

// Twice and more what Open MPI 4.1 puts into its folder on a host: 8.1 MiB in
// 21 files.
constexpr double kSessionBytes = 16 << 20, kSessionFiles = 64;

// Why no file can be kept in `folder`; empty when one can. Where a file system
// does not count blocks or files, they are 0 of 0.
std::string lack_of_room(const std::string& folder) {
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) == 0) {
    const double bytes =
        static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
    if (disk.f_blocks != 0 && bytes < kSessionBytes)
      return formatted("has {} free, {} are needed", readable_bytes(bytes),
                       readable_bytes(kSessionBytes));
    if (disk.f_files != 0 && static_cast<double>(disk.f_favail) < kSessionFiles)
      return formatted("has room for {} files, {} are needed", disk.f_favail,
                       static_cast<int>(kSessionFiles));
  }

  // A quota shows in none of these figures.
  try {
    OutputFile file(fs::path(folder) / "chexnet-room");
    file.write(std::vector<std::byte>(1 << 16));
  } catch (const CheckpointError&) {
    return "takes no file of 64 KiB";
  }
  return "";
}

}  // namespace

Mpirun find_mpirun(std::optional<MpiFamily> wanted) {
  std::vector<std::string> names = {"mpirun"};
  if (wanted == MpiFamily::kOpenMpi) names.emplace_back("mpirun.openmpi");
  if (wanted == MpiFamily::kMpich)
    names.insert(names.end(), {"mpirun.mpich", "mpiexec.hydra"});
  Mpirun first;
  for (const auto& name : names) {
    const std::string path = in_path(name);
    if (path.empty()) continue;
    Mpirun found{path, answer_of({path, "--version"})};
    if (!wanted || found.name().family == wanted) return found;
    if (first.path.empty()) first = found;
  }
  return first;
}

RankStarter rank_starter(const Mpirun& mpirun,
                         std::optional<MpiFamily> wanted) {
  RankStarter starter;
  if (!mpirun.path.empty())
    starter.command = fs::path(mpirun.path).filename().string();
  const MpiName name = mpirun.name();
  starter.family = name.family.value_or(wanted.value_or(MpiFamily::kOpenMpi));
  starter.is_intel = name.product == "Intel MPI";
  return starter;
}

CheckResult mpirun_check(const Mpirun& mpirun, bool needed,
                         std::optional<MpiFamily> wanted) {
  const std::string name = "mpirun";
  const Level bad = needed ? Level::kFail : Level::kWarn;
  if (mpirun.path.empty())
    return {bad, name, "there is none in PATH",
            "install openmpi-bin, or load the module of Open MPI or MPICH; one "
            "rank needs none"};
  const MpiName of = mpirun.name();
  if (!of.family) {
    const std::string line = mpirun.says.substr(0, mpirun.says.find('\n'));
    return {bad, name,
            mpirun.path + " is neither Open MPI's nor MPICH's" +
                (line.empty() ? "" : " (\"" + line + "\")"),
            "put the bin folder of Open MPI or MPICH first in PATH, or load "
            "its module"};
  }
  const std::string text = of.text() + ", " + mpirun.path;
  if (wanted && of.family != wanted)
    return {bad, name,
            text + ": launch.mpi=" + choice_name(*wanted) + " asks for " +
                mpi_title(*wanted),
            std::string("put the bin folder of ") + mpi_title(*wanted) +
                " first in PATH, or set launch.mpi=auto"};
  return {Level::kPass, name, text, ""};
}

// Open MPI's mpirun needs a library of its own version. Where ranks are started
// over PMI (MPICH's ABI) any two versions work.
CheckResult mpi_library_check(const Mpirun& mpirun, const MpiName& library,
                              const std::string& path,
                              const std::string& problem, bool needed) {
  const std::string name = "MPI library";
  const Level bad = needed ? Level::kFail : Level::kWarn;
  if (!library.family) {
    const auto hint = problem.find(". Hint: ");
    constexpr size_t kHint = sizeof ". Hint: " - 1;
    if (hint == std::string::npos)
      return {bad, name, problem, "load the module of the MPI"};
    return {bad, name, problem.substr(0, hint), problem.substr(hint + kHint)};
  }
  const MpiName starts = mpirun.name();
  const std::string text = library.text() + ", " + path;
  const bool agree = !starts.family || (starts.family == library.family &&
                                        (starts.version == library.version ||
                                         *starts.family == MpiFamily::kMpich));
  if (agree) return {Level::kPass, name, text, ""};
  return {bad, name, text + ", but mpirun is of " + starts.text(),
          "PATH and LD_LIBRARY_PATH must name the same installation"};
}

CheckResult temporary_folder_check(const Environment& env) {
  std::string folder = "/tmp";
  for (const char* name : {"TMPDIR", "TMP", "TEMP"})
    if (const char* value = env(name); value != nullptr && *value != 0) {
      folder = value;
      break;
    }
  const std::string name = "TMPDIR";
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return {Level::kFail, name, folder + " is no folder",
            "export TMPDIR=/tmp, or make that folder"};
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return {Level::kFail, name, folder + " cannot be written to",
            "export TMPDIR=/tmp"};
  if (const std::string lack = lack_of_room(folder); !lack.empty())
    return {
        Level::kFail, name, folder + " " + lack,
        "make room there (disk or quota), or export TMPDIR=/another/folder"};
  return {Level::kPass, name, folder, ""};
}

NetworkFacts read_network_facts(const Mpirun* mpirun) {
  NetworkFacts facts;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) == 0) {
    for (const ifaddrs* entry = list; entry != nullptr;
         entry = entry->ifa_next) {
      // An interface comes once for each of its addresses.
      if (std::ranges::find(facts.interfaces, entry->ifa_name) ==
          facts.interfaces.end())
        facts.interfaces.emplace_back(entry->ifa_name);
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET)
        continue;
      std::array<char, INET_ADDRSTRLEN> text{};
      inet_ntop(
          AF_INET,
          &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr,
          text.data(), text.size());
      facts.addresses.emplace_back(text.data());
    }
    freeifaddrs(list);
  }
  std::error_code error;
  facts.adapters.emplace();
  for (const auto& entry :
       fs::directory_iterator("/sys/class/infiniband", error))
    facts.adapters->push_back(entry.path().filename().string());
  if (mpirun == nullptr || mpirun->path.empty()) return facts;
  const auto info = fs::path(mpirun->path).parent_path() / "ompi_info";
  const std::string parts = answer_of({info.string(), "--parsable"});
  if (!parts.empty())
    facts.ucx = parts.find("mca:pml:ucx:") != std::string::npos;
  return facts;
}

CheckResult network_check(const NetworkChoice& network,
                          const NetworkFacts& facts) {
  using Kind = NetworkChoice::Kind;
  const std::string name = "launch.network";
  const std::string text = network.text();
  const auto devices = split(network.device, ',');
  const bool takes_adapter =
      network.kind == Kind::kInfiniBand || network.kind == Kind::kOmniPath;
  const bool needs_ucx =
      network.kind == Kind::kInfiniBand || network.kind == Kind::kUcx;

  if (network.kind == Kind::kTcp)
    for (const auto& device : devices)
      if (!has_interface(facts, device))
        return {
            Level::kFail, kInterface,
            "launch.network=" + text + ": " + host_name() + " has no " + device,
            "it has " + list_text(facts.interfaces)};
  if (takes_adapter)
    for (const auto& device :
         devices.empty() ? std::vector<std::string>{""} : devices)
      if (facts.adapters && !has_adapter(*facts.adapters, network.kind, device))
        return {Level::kFail, name,
                text + ": " + host_name() + " has no such adapter (it has " +
                    list_text(*facts.adapters) + ")",
                "launch.network=auto or tcp; ibstat and the driver's modules "
                "tell why"};
  if (needs_ucx && facts.ucx && !*facts.ucx)
    return {Level::kFail, name, text + ": this Open MPI was built without UCX",
            "launch.network=auto or tcp, or an Open MPI with UCX (ompi_info | "
            "grep ucx)"};
  return {Level::kPass, name, text, ""};
}

void refuse_failed(const std::vector<CheckResult>& checks) {
  for (const auto& check : checks) {
    if (check.level != Level::kFail) continue;
    const std::string text = "[launch] " + check.name + ": " + check.text +
                             ". Hint: " + check.advice;
    if (check.name == kInterface) throw ConfigError(text);
    throw DeviceError(text);
  }
}

}  // namespace chexnet
