// What a center writes down once for all of its users ($CHEXNET_SITE, submit
// --site).
#include <algorithm>

#include "chexnet/config/strict_yaml.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/tools/jobs/job_script.hpp"

namespace chexnet {

void read_site_file(const std::filesystem::path& path, JobRequest& request) {
  const std::vector<std::string> known = {
      "account",        "constraint", "container", "cpus_per_rank", "exclusive",
      "gpus_per_node",  "launcher",   "lines",     "max_requeues",  "mem",
      "mounts",         "nodes",      "partition", "program",       "qos",
      "ranks_per_node", "scheduler",  "setup",     "time"};
  for (const auto& [key, value] : read_strict_yaml_file(path)) {
    const std::string first = value.items.empty() ? "" : value.items.front();
    const auto fail = [&, &key = key, &value = value](const std::string& what) {
      throw ConfigError("[submit] {}: '{}' {}", value.place, key, what);
    };
    const auto count = [&](int least) {
      const auto number = parsed_number<int>(first);
      if (!number || *number < least || *number > kMostOfAJob)
        fail(formatted("= '{}' is no count. Hint: a whole number from {} to {}",
                       first, least, kMostOfAJob));
      return *number;
    };
    if (std::ranges::find(known, key) == known.end())
      fail("is unknown. Hint: nearest are " + nearest_names(key, known));
    const bool takes_list = key == "lines" || key == "setup" || key == "mounts";
    if (value.is_list != takes_list)
      fail(value.is_list ? "is a list. Hint: a single value"
                         : "is no list. Hint: [..., ...]");
    if (key == "account") request.account = first;
    if (key == "partition") request.partition = first;
    if (key == "qos") request.qos = first;
    if (key == "constraint") request.constraint = first;
    if (key == "mem") request.memory = first;
    if (key == "exclusive") {
      if (first != "true" && first != "false")
        fail("= '" + first + "'. Hint: true or false");
      request.exclusive = first == "true";
    }
    if (key == "time") request.time = first;
    if (key == "program") request.program = {first};
    if (key == "container") request.container = first;
    if (key == "mounts")
      for (const auto& item : value.items)
        request.mounts.push_back(parsed_mount(item));
    if (key == "lines") request.lines = value.items;
    if (key == "setup") request.setup = value.items;
    if (key == "nodes") request.nodes = count(1);
    if (key == "ranks_per_node") request.ranks_per_node = count(1);
    if (key == "gpus_per_node") request.gpus_per_node = count(1);
    if (key == "cpus_per_rank") request.cpus_per_rank = count(1);
    if (key == "max_requeues") request.max_requeues = count(0);
    if (key == "launcher") {
      const auto launcher = find_choice<JobLauncher>(first);
      if (!launcher) fail("= '" + first + "'. Hint: mpirun or srun");
      request.launcher = *launcher;
    }
    if (key == "scheduler") {
      const auto scheduler = find_choice<Scheduler>(first);
      if (!scheduler) fail("= '" + first + "'. Hint: slurm or pbs");
      request.scheduler = *scheduler;
    }
  }
}

}  // namespace chexnet
