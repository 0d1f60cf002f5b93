// doctor: is this machine, these ranks and these links fit for training? Rows
// with what to do, in less than a minute; alone, under mpirun or srun, also on
// a login node. In their order:
//
//   build          versions of what is linked and what was loaded
//   start          before any rank exists: can ranks be started at all?
//   ranks          each one's cores and GPU, on all hosts
//   hosts          GPUs, limits, disks: one rank of each host looks
//   clock, pace    differences between hosts, and between ranks at equal work
//   self-test      a step on each GPU against the CPU engine
//   links          MPI, all-reduce, NCCL's transports
//   acceptance     with a site's thresholds, what was measured against them
//
// Where ranks cannot be started the rest is still looked at, by this process
// alone.
#include <ATen/Version.h>
#include <hwloc.h>
#include <torch/headeronly/version.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "acceptance_rows.hpp"
#include "chexnet/app/commands.hpp"
#include "chexnet/app/enter_world.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/app/start_rows.hpp"
#include "chexnet/comm/cuda_library.hpp"
#include "chexnet/comm/gather_json.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/machine/health.hpp"
#include "chexnet/report/help_bundle.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/gradient_communicator.hpp"
#include "health_table.hpp"
#include "host_rows.hpp"
#include "link_rows.hpp"
#include "self_test_rows.hpp"

namespace chexnet {
namespace {

struct DoctorOptions {
  LinkOptions links;
  std::string folder = ".", collect, acceptance, node_type;
  bool json = false;
};

// As the loaded libtorch_cpu.so tells it; TORCH_VERSION is of the headers.
std::string loaded_torch_version() {
  const std::string config = at::show_config();
  static const std::string kKey = "TORCH_VERSION=";
  const auto at = config.find(kKey);
  if (at == std::string::npos) return "";
  const auto begin = at + kKey.size();
  return config.substr(begin,
                       config.find_first_not_of("0123456789.", begin) - begin);
}

std::vector<CheckResult> of_build() {
  const auto version_of = [](unsigned api) {
    return std::to_string(api >> 16) + "." + std::to_string((api >> 8) & 255);
  };
  return {{Level::kPass, "chexnet-train",
           CHEXNET_VERSION " of variant " CHEXNET_CUDA_VARIANT, ""},
          check_versions("LibTorch", TORCH_VERSION, loaded_torch_version()),
          check_versions("hwloc", version_of(HWLOC_API_VERSION),
                         version_of(hwloc_get_api_version()))};
}

// What is known before any rank exists.
struct Start {
  LaunchConfig config;
  bool is_rank = false;
  std::vector<CheckResult> checks;
};

Start look_at_start(const DoctorOptions& options) {
  Start start;
  start.config = options.links.config();
  start.is_rank = started_as_rank(process_environment());
  const bool here =
      start.is_rank ||
      (start.config.hostfile.empty() &&
       job_with_hosts(process_environment(), ask_command).nodes == 1);
  start.checks =
      of_start(start.config, !start.is_rank && wants_ranks(start.config), here);
  return start;
}

bool may_start_ranks(const Start& start) {
  return std::ranges::count(start.checks, Level::kFail, &CheckResult::level) ==
         0;
}

// This process alone, because the ranks cannot start: `why`.
RankWorld enter_alone(Start& start, const std::string& why,
                      Invocation& invocation) {
  start.checks.push_back(
      {Level::kFail, "ranks", why, "the rows here are of one process"});
  return enter_world(one_rank(start.config), invocation);
}

RankWorld enter(Start& start, bool dry_run, Invocation& invocation) {
  if (!start.is_rank && !may_start_ranks(start) && !dry_run)
    start.config = one_rank(start.config);
  ParentTask parent;
  parent.dry_run = dry_run;
  std::string why;
  try {
    RankWorld world = enter_world(start.config, invocation, parent);
    const auto code = world.parent_exit_code();
    if (!code || *code == 0 || *code == static_cast<int>(ExitCode::kDevice))
      return world;
    why =
        "mpirun ended with exit code " + std::to_string(*code) + ", see above";
  } catch (const DeviceError& e) {
    if (start.is_rank) throw;
    why = e.what();
  }
  return enter_alone(start, why, invocation);
}

std::vector<CheckResult> of_placements(const std::vector<PlacementRow>& rows) {
  std::vector<CheckResult> checks;
  for (const auto& row : rows)
    checks.push_back(
        {row.good ? Level::kPass : Level::kWarn,
         "rank " + std::to_string(row.rank),
         row.host + ", cores " + row.cores + ", NUMA node " + row.numa +
             (row.gpu.empty() ? "" : ", " + row.gpu) +
             (row.hca.empty() ? "" : ", " + row.hca) + ": " + row.binding,
         row.good
             ? ""
             : "mpirun --map-by socket or --bind-to none, or launch.bind=fix"});
  return checks;
}

// What keeps this host's GPUs from being used is a row, and the other rows are
// found on CPUs. So is a host without a GPU, where the config wants GPUs or
// other hosts have them. Collective.
GpuProblem set_gpus_aside(LaunchConfig& config, Communicator& comm) {
  if (config.device == DeviceKind::kCpu) return {};
  GpuProblem problem = CudaLibrary::access().problem;
  const bool has_none =
      problem.empty() && CudaLibrary::access().library == nullptr;
  const bool some_have =
      any_rank(comm, CudaLibrary::access().library != nullptr);
  if (has_none && (some_have || config.device == DeviceKind::kCuda))
    problem = {"no NVIDIA GPU is on this host's bus, and no driver shows one",
               "start on a host with GPUs (submit --gpus-per-node)" +
                   std::string(kOrOnCpu)};
  if (any_rank(comm, !problem.empty())) config.device = DeviceKind::kCpu;
  return problem;
}

Json acceptance_json(const std::string& type,
                     const std::vector<AcceptanceRow>& rows) {
  Json list = Json::array();
  for (const auto& row : rows)
    list.push_back({{"name", row.name},
                    {"unit", row.unit},
                    {"wanted", row.wanted},
                    {"found", row.found},
                    {"good", row.good}});
  return {{"node_type", type}, {"rows", list}};
}

// Prints the rows, and packs them for a help desk where an option says so.
// Returns the exit code.
int report(const DoctorOptions& options, const std::vector<CheckResult>& checks,
           const Json& acceptance, const std::set<std::string>& hosts,
           double seconds) {
  const auto count = [&](Level level) {
    return std::ranges::count(checks, level, &CheckResult::level);
  };
  const std::string summary = std::to_string(count(Level::kPass)) + " PASS, " +
                              std::to_string(count(Level::kWarn)) + " WARN, " +
                              std::to_string(count(Level::kFail)) + " FAIL, " +
                              std::to_string(count(Level::kSkip)) +
                              " SKIP in " + fixed(seconds, 1) + " s";
  const std::string text = text_of(checks) + summary + "\n";
  if (options.json) {
    Json json = {{"seconds", seconds},          {"pass", count(Level::kPass)},
                 {"warn", count(Level::kWarn)}, {"fail", count(Level::kFail)},
                 {"skip", count(Level::kSkip)}, {"checks", json_of(checks)}};
    if (!acceptance.is_null()) json["acceptance"] = acceptance;
    std::cout << json_text(json) << std::endl;
  } else {
    std::cout << text << std::flush;
  }
  if (!options.collect.empty())
    log_info("for a help desk: " +
             collect_for_help(options.collect, text, hosts).string() +
             " (names that the run's split.csv, config and records hold were "
             "replaced: of patients, "
             "images, hosts, folders, and the files' owners; read it before "
             "you pass it on)");
  return count(Level::kFail) > 0 ? static_cast<int>(ExitCode::kDevice) : 0;
}

int run(const DoctorOptions& options, Invocation& invocation) {
  const double begin = now_s();
  std::optional<NodeThresholds> wanted;  // before any rank exists
  if (!options.acceptance.empty())
    wanted =
        read_acceptance(options.acceptance, options.node_type, host_name());
  Start start = look_at_start(options);
  RankWorld world = enter(start, options.links.launch.dry_run, invocation);
  if (const auto code = world.parent_exit_code()) return *code;
  const GpuProblem gpu_problem = set_gpus_aside(start.config, world.comm());
  const Device device = choose_device(start.config, world.comm());
  NcclReport transports;
  const auto comm = gradient_communicator(world.take_comm(), device,
                                          start.config, &transports);

  std::vector<CheckResult> checks = of_build();
  const auto add = [&](const std::vector<CheckResult>& more) {
    checks.insert(checks.end(), more.begin(), more.end());
  };
  add(start.checks);
  add(of_placements(device.placements));
  const HostChecks hosts = of_hosts(options.folder, *comm, device, gpu_problem);
  add(hosts.checks);
  add({check_clock_skew(clock_skew(*comm),
                        static_cast<int>(hosts.names.size()))});
  add({check_pace(paces(*comm, device))});
  const auto self_test = of_self_test(*comm, device, start.config.timeout_s);
  add(self_test);
  add(of_links(*comm, device));
  add(of_nccl(transports));
  Json acceptance;
  if (wanted) {
    const auto rows =
        measure_acceptance(*wanted, options.folder, self_test, *comm, device);
    for (const auto& row : rows) add({row.check()});
    acceptance = acceptance_json(wanted->type, rows);
  }
  if (comm->rank() != 0) return 0;
  return report(options, checks, acceptance, hosts.names, now_s() - begin);
}

}  // namespace

void add_doctor(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<DoctorOptions>();
  auto* command = app.add_subcommand(
      "doctor", "check versions, binding, GPUs, limits, disks and links");
  options->links.add_to(*command);
  command->add_option("--folder", options->folder, "where runs will be written")
      ->capture_default_str();
  command->add_option(
      "--collect", options->collect,
      "collect what a help desk needs from this run folder, without ids");
  auto* acceptance =
      command
          ->add_option("--acceptance", options->acceptance,
                       "compare with a site's thresholds for its types of node "
                       "(configs/acceptance/site.yaml)")
          ->type_name("SITE.yaml");
  command
      ->add_option("--node-type", options->node_type,
                   "which of them; default: the one whose hosts fit")
      ->needs(acceptance);
  command->add_flag("--json", options->json,
                    "one JSON object on stdout (docs/json.md)");
  command->callback([&invocation, options] {
    invocation.run = [&invocation, options] {
      return run(*options, invocation);
    };
  });
}

}  // namespace chexnet
