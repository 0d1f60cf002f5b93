// A key is a row of `keys` with what takes its value; another key is refused
// with the nearest names, as in a config. `gpus_per_node` is read like the
// other numbers and cut to a whole one afterwards.
#include "chexnet/tools/plan/cluster_file.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "chexnet/config/strict_yaml.hpp"
#include "chexnet/core/error.hpp"

namespace chexnet {

Cluster read_cluster(const std::filesystem::path& path) {
  Cluster cluster;
  // False: not such a value.
  using Take = std::function<bool(const std::string&)>;
  const auto number = [](double& into) -> Take {
    return [&into](const std::string& text) {
      size_t used = 0;
      try {
        into = std::stod(text, &used);
      } catch (const std::exception&) {
        return false;
      }
      return used == text.size() && into >= 0 && std::isfinite(into);
    };
  };
  const auto flag = [](bool& into) -> Take {
    return [&into](const std::string& text) {
      into = text == "true";
      return text == "true" || text == "false";
    };
  };
  double gpus = cluster.fabric.gpus_per_node;
  const std::map<std::string, Take> keys = {
      {"name",
       [&](const std::string& text) {
         cluster.name = text;
         return true;
       }},
      {"gpus_per_node", number(gpus)},
      {"intra_gb_per_s", number(cluster.fabric.intra_gb_per_s)},
      {"inter_gb_per_s", number(cluster.fabric.inter_gb_per_s)},
      {"intra_latency_us", number(cluster.fabric.intra_latency_us)},
      {"inter_latency_us", number(cluster.fabric.inter_latency_us)},
      {"jitter", number(cluster.jitter)},
      {"overlap", flag(cluster.overlap)},
      {"coordination_ms", number(cluster.coordination_ms)},
      {"images_per_s", number(cluster.images_per_s)},
      {"batch", number(cluster.batch)},
      {"gradient_bytes", number(cluster.gradient_bytes)},
      {"loader.images_per_s", number(cluster.loader.images_per_s)},
      {"loader.every_rank_decodes_all",
       flag(cluster.loader.every_rank_decodes_all)},
      {"loader.shares_cores", flag(cluster.loader.shares_cores)},
      {"loader.storage_gb_per_s", number(cluster.loader.storage_gb_per_s)},
      {"loader.bytes_per_image", number(cluster.loader.bytes_per_image)}};
  std::vector<std::string> names;
  for (const auto& [name, take] : keys) names.push_back(name);
  const auto values = read_strict_yaml_file(path);
  if (values.empty())
    throw ConfigError(
        "[bench] {}: describes no cluster. Hint: gpus_per_node, "
        "intra_gb_per_s, inter_gb_per_s, images_per_s, batch",
        path.string());
  for (const auto& [key, value] : values) {
    const auto found = keys.find(key);
    if (found == keys.end())
      throw ConfigError("[bench] {}: unknown key '{}'. Hint: nearest are {}",
                        value.place, key, nearest_names(key, names));
    if (value.is_list || value.items.size() != 1 ||
        !found->second(value.items.front()))
      throw ConfigError(
          "[bench] {}: '{}' is no such value. Hint: a number, or true and "
          "false",
          value.place, key);
  }
  constexpr double kMostGpus = 1 << 20;
  cluster.fabric.gpus_per_node = static_cast<int>(std::min(gpus, kMostGpus));
  if (gpus > kMostGpus || cluster.fabric.gpus_per_node < 1 ||
      cluster.fabric.intra_gb_per_s <= 0 || cluster.fabric.inter_gb_per_s <= 0)
    throw ConfigError(
        "[bench] {}: a cluster needs GPUs and bandwidth. Hint: gpus_per_node, "
        "intra_gb_per_s and inter_gb_per_s above 0",
        path.string());
  return cluster;
}

}  // namespace chexnet
