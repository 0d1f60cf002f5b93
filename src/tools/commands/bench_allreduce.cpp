// bench allreduce: what nccl-tests' all_reduce_perf prints, over MPI and NCCL.
// Sizes grow by factors of 4: small ones show the latency, large ones the
// bandwidth.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "allreduce_bench.hpp"
#include "bench.hpp"
#include "chexnet/app/enter_world.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_table.hpp"
#include "chexnet/launch/hosts.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/gradient_communicator.hpp"

namespace chexnet {
namespace {

struct BenchAllreduceOptions {
  LinkOptions links;
  double least = 4, most = 64e6;
  int rounds = 20;
  bool json = false;
};

int run(const BenchAllreduceOptions& options, Invocation& invocation) {
  const LaunchConfig config = options.links.config();
  ParentTask parent;
  parent.dry_run = options.links.launch.dry_run;
  RankWorld world = enter_world(config, invocation, parent);
  if (const auto code = world.parent_exit_code()) return *code;
  if (world.comm().size() == 1)
    throw ConfigError(
        "[bench] one rank has nobody to exchange with. Hint: --ranks 2, or "
        "mpirun");
  const Device device = choose_device(config, world.comm());
  const auto comm = gradient_communicator(world.take_comm(), device, config);
  std::vector<double> sizes;
  for (double bytes = options.least; bytes <= options.most; bytes *= 4)
    sizes.push_back(bytes);
  const double barrier = barrier_us(*comm, options.rounds);
  const auto rows = measure_allreduce(*comm, device, sizes, options.rounds);
  if (comm->rank() != 0) return 0;
  if (options.json) {
    HostTally tally;
    for (const auto& rank : device.placements) tally.add(rank.host, 1);
    std::vector<int> ranks_of_hosts;
    for (const auto& host : tally.take()) ranks_of_hosts.push_back(host.slots);
    Json json = {{"ranks", comm->size()},
                 {"ranks_of_hosts", ranks_of_hosts},
                 {"communication", comm->description()},
                 {"barrier_us", barrier},
                 {"rows", Json::array()}};
    for (const auto& row : rows)
      json["rows"].push_back({{"bytes", row.bytes},
                              {"us", row.us},
                              {"algbw_gb_per_s", row.alg_gb_per_s},
                              {"busbw_gb_per_s", row.bus_gb_per_s}});
    std::cout << json.dump() << std::endl;
    return 0;
  }
  std::vector<std::vector<std::string>> lines = {
      {"bytes", "time us", "algbw GB/s", "busbw GB/s"}};
  for (const auto& row : rows)
    lines.push_back({fixed(row.bytes, 0), fixed(row.us, 1),
                     fixed(row.alg_gb_per_s, 3), fixed(row.bus_gb_per_s, 3)});
  std::cout << counted(comm->size(), "rank") << ", " << comm->description()
            << ", barrier " << fixed(barrier, 1) << " us; fp32 sums, in place\n"
            << columns(lines) << std::flush;
  return 0;
}

}  // namespace

void add_bench_allreduce(CLI::App& bench, Invocation& invocation) {
  auto options = std::make_shared<BenchAllreduceOptions>();
  auto* command =
      bench.add_subcommand("allreduce",
                           "time and bandwidth of all-reduces of growing size, "
                           "as nccl-tests prints them");
  options->links.add_to(*command);
  command->add_option("--min-bytes", options->least, "smallest size, bytes")
      ->check(CLI::Range(4.0, 1e12));
  command->add_option("--max-bytes", options->most, "largest size, bytes")
      ->check(CLI::Range(4.0, 1e12));
  command->add_option("--rounds", options->rounds, "measurements of each size")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_flag("--json", options->json,
                    "one JSON object on stdout (docs/json.md)");
  command->callback([&invocation, options] {
    invocation.run = [&invocation, options] {
      return run(*options, invocation);
    };
  });
}

}  // namespace chexnet
