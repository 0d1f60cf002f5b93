#include "chexnet/launch/machine/binding.hpp"

#include <cstdlib>
#include <numeric>

#include "chexnet/launch/machine/affinity.hpp"
#include "support/catch.hpp"
#include "support/source_file.hpp"

using namespace chexnet;

namespace {

// Sockets of `cores` each with `threads` hardware threads a core (numbered as
// Linux does: second threads after all first ones) and `nodes` NUMA nodes a
// socket.
Machine fake(int packages, int cores, int threads = 1, int nodes = 1) {
  Machine machine;
  machine.packages = packages;
  machine.numa_nodes = packages * nodes;
  for (int t = 0; t < threads; ++t)
    for (int c = 0; c < packages * cores; ++c)
      machine.cpus.push_back(
          {t * packages * cores + c, c, c * nodes / cores, c / cores});
  return machine;
}
void add_gpu(Machine& machine, int package, std::vector<std::string> uuids,
             int numa = -2) {
  const auto index = std::to_string(machine.gpus.size());
  machine.gpus.push_back({"cuda" + index, "0000:" + index + "8:00.0",
                          std::move(uuids), numa == -2 ? package : numa,
                          package});
}
std::vector<int> range(int first, int last) {
  std::vector<int> cpus(static_cast<size_t>(last - first + 1));
  std::iota(cpus.begin(), cpus.end(), first);
  return cpus;
}
std::string found_text(Binding binding) {
  static const char* const kNames[] = {"good", "far", "shared", "wide",
                                       "narrow"};
  return kNames[static_cast<int>(binding)];
}
// "good 0-9 mlx5_0 | far 20-29 …"
std::string text_of(const std::vector<Placement>& placements) {
  std::string text;
  for (const auto& placement : placements)
    text += (text.empty() ? "" : " | ") + found_text(placement.found) + " " +
            cpu_list_text(placement.cpus) +
            (placement.hca.empty() ? "" : " " + placement.hca);
  return text;
}

Machine c4140(bool all_on_one) {
  Machine machine = fake(2, 20);
  for (int g = 0; g < 4; ++g)
    add_gpu(machine, all_on_one || g < 2 ? 0 : 1, {"GPU-" + std::to_string(g)});
  machine.hcas = {{"mlx5_0", "0000:3b:00.0", {}, 0, 0}};
  return machine;
}

}  // namespace

TEST_CASE("where ranks belong on machines of many kinds") {
  const auto all = [](int last) { return range(0, last); };
  const std::vector<std::string> gpus = {"GPU-0", "GPU-1", "GPU-2", "GPU-3"};
  const auto four = [&](const std::vector<std::vector<int>>& cpus) {
    std::vector<RankAffinity> ranks;
    for (size_t r = 0; r < 4; ++r)
      ranks.push_back({cpus[r % cpus.size()], gpus[r]});
    return ranks;
  };

  SECTION("C4140, two GPUs on each socket") {
    const Machine m = c4140(false);
    // mpirun --map-by socket deals ranks out in turn: 0 and 2 on the first, 1
    // and 3 on the second.
    CHECK(text_of(decide_placement(m, four({range(0, 19), range(20, 39)}),
                                   false)) ==
          "shared 0-9 mlx5_0 | far 10-19 mlx5_0 | far 20-29 mlx5_0 | shared "
          "30-39 mlx5_0");
    CHECK(text_of(decide_placement(m, four({all(39)}), false)) ==
          "shared 0-9 mlx5_0 | shared 10-19 mlx5_0 | shared 20-29 mlx5_0 | "
          "shared 30-39 mlx5_0");
    CHECK(
        text_of(decide_placement(
            m, four({range(0, 9), range(10, 19), range(20, 29), range(30, 39)}),
            false)) ==
        "good 0-9 mlx5_0 | good 10-19 mlx5_0 | good 20-29 mlx5_0 | good 30-39 "
        "mlx5_0");
  }
  SECTION("C4140, all four GPUs behind a switch on one socket") {
    const Machine m = c4140(true);
    CHECK(text_of(decide_placement(m, four({range(0, 19), range(20, 39)}),
                                   false)) ==
          "shared 0-4 mlx5_0 | far 5-9 mlx5_0 | shared 10-14 mlx5_0 | far "
          "15-19 mlx5_0");
  }
  SECTION("a rank alone, bound to the wrong socket") {
    const Machine m = c4140(false);
    const std::vector<RankAffinity> one = {{range(0, 19), "GPU-3"}};
    // Of a job that owns the whole host it may move; else only among what the
    // job was given.
    CHECK(text_of(decide_placement(m, one, true)) == "far 20-39 mlx5_0");
    const auto stays = decide_placement(m, one, false);
    CHECK(text_of(stays) == "good 0-19 mlx5_0");
  }
  SECTION("two GPU ranks, bound to a core each by default") {
    const Machine m = c4140(false);
    CHECK(
        text_of(decide_placement(m, {{{0}, "GPU-0"}, {{1}, "GPU-1"}}, true)) ==
        "narrow 0-9 mlx5_0 | narrow 10-19 mlx5_0");
  }
  SECTION("8 GPUs, two sockets of two NUMA nodes, hyper-threads") {
    Machine m = fake(2, 32, 2, 2);
    std::vector<RankAffinity> ranks;
    for (int g = 0; g < 8; ++g) {
      add_gpu(m, g / 4, {"GPU-" + std::to_string(g)}, g / 2);
      m.hcas.push_back({"mlx5_" + std::to_string(g), "", {}, g / 2, g / 4});
      ranks.push_back({all(127), "GPU-" + std::to_string(g)});
    }
    const auto placements = decide_placement(m, ranks, false);
    // Whole cores: both threads.
    CHECK(cpu_list_text(placements[0].cpus) == "0-7,64-71");
    CHECK(cpu_list_text(placements[1].cpus) == "8-15,72-79");
    CHECK(cpu_list_text(placements[7].cpus) == "56-63,120-127");
    CHECK(placements[7].numa == 3);
    CHECK(placements[7].hca == "mlx5_6");  // the first of its node
    CHECK(placements[0].hca == "mlx5_0");
  }
  SECTION("one socket: nothing is far") {
    Machine m = fake(1, 8);
    add_gpu(m, 0, {"GPU-0"});
    add_gpu(m, 0, {"GPU-1"});
    CHECK(text_of(decide_placement(
              m, {{range(0, 3), "GPU-0"}, {range(4, 7), "GPU-1"}}, false)) ==
          "good 0-3 | good 4-7");
    CHECK(text_of(decide_placement(m, {{all(7), "GPU-0"}}, false)) ==
          "good 0-7");
  }
  SECTION("a cpuset that leaves no core near the GPU") {
    Machine m = c4140(false);
    std::erase_if(m.cpus, [](const Cpu& cpu) {
      return cpu.id >= 8;
    });  // what hwloc then shows
    CHECK(text_of(decide_placement(m, {{range(0, 7), "GPU-3"}}, true)) ==
          "good 0-7 mlx5_0");
  }
  SECTION("MIG devices of one GPU") {
    Machine m = fake(2, 8);
    add_gpu(m, 1, {"GPU-0", "MIG-a", "MIG-b"});
    CHECK(text_of(decide_placement(
              m, {{range(0, 7), "MIG-a"}, {range(8, 15), "MIG-b"}}, false)) ==
          "far 8-11 | shared 12-15");
  }
  SECTION("no GPU") {
    const Machine m = fake(2, 10);
    const auto cpu_ranks = [](const std::vector<std::vector<int>>& cpus) {
      std::vector<RankAffinity> ranks;
      for (const auto& c : cpus) ranks.push_back({c, ""});
      return ranks;
    };
    CHECK(text_of(decide_placement(m, cpu_ranks({range(0, 9), range(10, 19)}),
                                   false)) == "good 0-9 | good 10-19");
    CHECK(text_of(decide_placement(m, cpu_ranks({all(19), all(19)}), false)) ==
          "shared 0-9 | shared 10-19");
    CHECK(text_of(decide_placement(m, cpu_ranks({all(19)}), false)) ==
          "good 0-19");
    // mpirun binds one or two ranks to a core each; a batch job's single core
    // is all it has.
    CHECK(text_of(decide_placement(m, cpu_ranks({{0}, {1}}), true)) ==
          "narrow 0-9 | narrow 10-19");
    CHECK(text_of(decide_placement(m, cpu_ranks({{0}, {1}}), false)) ==
          "good 0 | good 1");
    CHECK(text_of(decide_placement(fake(1, 2), cpu_ranks({{0}, {1}}), true)) ==
          "good 0 | good 1");
    // More ranks than cores: they share, and nothing can be improved.
    CHECK(text_of(decide_placement(
              fake(1, 2), cpu_ranks({all(1), all(1), all(1)}), false)) ==
          "good 0-1 | good 0-1 | good 0-1");
  }
  SECTION("a GPU whose place nobody tells, or that is unknown") {
    Machine m = fake(2, 4);
    add_gpu(m, -1, {"GPU-0"}, -1);
    CHECK(text_of(decide_placement(
              m, {{range(0, 3), "GPU-0"}, {range(4, 7), "GPU-9"}}, false)) ==
          "good 0-3 | good 4-7");
  }
}

TEST_CASE(
    "a rank that was bound well makes room for one that must move onto its "
    "cores") {
  const Machine m = c4140(false);
  const auto placements = decide_placement(
      m, {{range(5, 14), "GPU-0"}, {range(20, 29), "GPU-1"}}, false);
  // The job was given 5-14 and 20-29; of those only the first ten are near the
  // GPUs.
  CHECK(text_of(placements) == "shared 5-9 mlx5_0 | far 10-14 mlx5_0");
  CHECK(placements[0].reason ==
        "cores 5-14 are also where local rank 1 belongs");
  CHECK(placements[1].reason == "cores 20-29 are not on its GPU's socket");
}

TEST_CASE("a GPU whose node has no permitted core belongs to its socket") {
  Machine m = fake(2, 4, 1, 2);
  add_gpu(m, 1, {"GPU-0"}, 3);
  CHECK(text_of(decide_placement(m, {{range(0, 7), "GPU-0"}}, false)) ==
        "wide 6-7");
  std::erase_if(m.cpus, [](const Cpu& cpu) { return cpu.numa == 3; });
  CHECK(text_of(decide_placement(m, {{range(0, 5), "GPU-0"}}, false)) ==
        "wide 4-5");
  m.gpus[0].numa = -1;  // not told
  CHECK(text_of(decide_placement(m, {{range(0, 5), "GPU-0"}}, false)) ==
        "wide 4-5");
}

TEST_CASE("the nearest adapter is of the cores where there is no GPU") {
  Machine m = fake(2, 4);
  m.hcas = {{"mlx5_0", "", {}, 0, 0},
            {"mlx5_1", "", {}, 1, 1},
            {"mlx5_2", "", {}, -1, -1}};
  CHECK(text_of(decide_placement(m, {{range(0, 3), ""}, {range(4, 7), ""}},
                                 false)) ==
        "good 0-3 mlx5_0 | good 4-7 mlx5_1");
  const auto across = decide_placement(m, {{range(0, 7), ""}}, false);
  CHECK(across[0].numa == -1);
  CHECK(across[0].hca == "mlx5_0");
}

TEST_CASE("cores that the machine does not show are left alone") {
  const Machine m = fake(1, 4);
  const auto placements = decide_placement(m, {{{100}, ""}}, false);
  CHECK(text_of(placements) == "good 100");
  CHECK(placements[0].numa == -1);
}

TEST_CASE("hwloc's file of a C4140 gives sockets, GPUs and the adapter") {
  setenv("HWLOC_XMLFILE",
         source_file("tests/launch/machine/machines/c4140.xml").c_str(), 1);
  GpuState second;
  second.uuid = "GPU-x";
  GpuState hidden;  // of a container that hides PCI devices
  hidden.uuid = "GPU-y";
  hidden.bus_id = "ffff:ff:1f.0";
  const Machine plain = read_machine({});
  REQUIRE(plain.gpus.size() == 4);
  second.bus_id = plain.gpus[1].bus_id;
  const Machine m = read_machine({second, hidden});
  unsetenv("HWLOC_XMLFILE");
  CHECK(m.cpus.size() == 40);
  CHECK(m.packages == 2);
  REQUIRE(m.gpus.size() == 5);
  CHECK(m.gpus[0].package == 0);
  CHECK(m.gpus[1].package == 0);
  CHECK(m.gpus[2].package == 1);
  CHECK(m.gpus[3].package == 1);
  CHECK(m.gpu_of("GPU-x") == &m.gpus[1]);
  CHECK(m.gpu_of("GPU-y")->package == -1);
  CHECK(m.gpu_of("GPU-z") == nullptr);
  REQUIRE(m.hcas.size() == 1);
  CHECK(m.hcas[0].name == "mlx5_0");
  CHECK(machine_text(plain) ==
        "2 sockets, 2 NUMA nodes, 40 cores, 4 GPUs, mlx5_0");
}

TEST_CASE("a bound process is where the kernel says it is") {
  const auto before = allowed_cpus();
  REQUIRE_FALSE(before.empty());
  const std::vector<int> one = {before.back()};
  CHECK(bind_process(one) == one);
  CHECK(allowed_cpus() == one);
  CHECK(bind_process(before) == before);
  CHECK(cpu_list_text({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
}
