// What fills templates/kubernetes_*.yaml.in. A value that a user chose is
// written as a JSON string, which is YAML too.
#include "chexnet/launch/kubernetes.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/exit_codes.hpp"
#include "job_options.hpp"
#include "script_template.hpp"

namespace chexnet {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

// A label of DNS (RFC 1035), with room for what the operator adds.
std::string object_name(const std::string& name) {
  constexpr size_t kLongest = 40;
  std::string label;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 0x80 && std::isalnum(byte) != 0;
    label += plain ? static_cast<char>(std::tolower(byte)) : '-';
  }
  label.erase(0, label.find_first_not_of("-0123456789"));
  label.resize(std::min(label.size(), kLongest));
  while (label.ends_with('-')) label.pop_back();
  return label.empty() ? "chexnet" : label;
}

// Lines of a block that is indented.
std::string indented(const std::string& text, int spaces) {
  std::istringstream stream(text);
  std::string out;
  for (std::string line; std::getline(stream, line);)
    out += std::string(static_cast<size_t>(spaces), ' ') + line + "\n";
  return out;
}

std::string config_data(const KubernetesRequest& request) {
  std::string text;
  for (size_t i = 0; i < request.configs.size(); ++i)
    text += "  " + std::to_string(i) + ".yaml: |\n" +
            indented(request.configs[i], 4);
  return text;
}

std::string config_map(const std::string& name, const std::string& data) {
  return "# Written by `chexnet-train submit --kubernetes`: kubectl create -f "
         "FILE. The ConfigMap is named after what it\n# holds: of one that is "
         "there already kubectl says so, and creates the rest.\n"
         "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " +
         name +
         "\n  labels: {app.kubernetes.io/name: chexnet-train}\n"
         "immutable: true\ndata:\n" +
         data;
}

// Kueue admits a job by the label of its queue.
std::string labels(const KubernetesRequest& request) {
  std::string text = "app.kubernetes.io/name: chexnet-train\n";
  if (!request.job.partition.empty())
    text +=
        "kueue.x-k8s.io/queue-name: " + quoted(request.job.partition) + "\n";
  return indented(text, 4);
}

std::string resources(const JobRequest& job) {
  std::string text =
      "cpu: \"" +
      std::to_string(ranks_per_node(job) * std::max(1, job.cpus_per_rank)) +
      "\"";
  if (job.gpus_per_node > 0)
    text += ", nvidia.com/gpu: \"" + std::to_string(job.gpus_per_node) + "\"";
  return text;
}

std::string mounts(const JobRequest& job) {
  std::string text =
      "- {name: config, mountPath: /etc/chexnet-train, readOnly: true}\n"
      "- {name: shm, mountPath: /dev/shm}\n";
  for (size_t i = 0; i < job.mounts.size(); ++i)
    text += "- {name: volume-" + std::to_string(i) +
            ", mountPath: " + quoted(job.mounts[i].target) +
            (job.mounts[i].read_only ? ", readOnly: true}\n" : "}\n");
  return text;
}

// What a container has as /dev/shm by itself, 64 MB, is too little for the
// ranks' shared memory, NCCL's and MPI's.
std::string volumes(const JobRequest& job, const std::string& config_map) {
  constexpr int kSharedGibOfRank = 2;
  std::string text =
      "- {name: config, configMap: {name: " + config_map +
      "}}\n- {name: shm, emptyDir: {medium: Memory, sizeLimit: " +
      std::to_string(kSharedGibOfRank * ranks_per_node(job)) + "Gi}}\n";
  for (size_t i = 0; i < job.mounts.size(); ++i)
    text +=
        "- {name: volume-" + std::to_string(i) +
        ", persistentVolumeClaim: {claimName: " + quoted(job.mounts[i].source) +
        (job.mounts[i].read_only ? ", readOnly: true}}\n" : "}}\n");
  return text;
}

TemplateValues values_of(const KubernetesRequest& request,
                         const std::string& config_map) {
  const JobRequest& job = request.job;
  constexpr double kForTheStep_s = 30;
  TemplateValues values;
  values.parts = {request.configs.size() > 1 ? "SWEEP" : "ONE"};
  values.texts["POINTS"] = std::to_string(request.configs.size());
  values.texts["MAX_REQUEUES"] = std::to_string(job.max_requeues);
  values.texts["STOPPED"] =
      std::to_string(static_cast<int>(ExitCode::kRequeue));
  values.texts["GRACE_S"] = std::to_string(
      static_cast<int>(std::ceil(request.stop_margin_s + kForTheStep_s)));
  values.texts["IMAGE"] = quoted(job.container);
  values.texts["RANKS"] = std::to_string(ranks_per_node(job));
  values.texts["NODES"] = std::to_string(job.nodes);
  values.texts["RESOURCES"] = resources(job);
  values.lines["LABELS"] = labels(request);
  const std::string deadline =
      request.time_s
          ? "activeDeadlineSeconds: " +
                std::to_string(static_cast<int>(*request.time_s)) + "\n"
          : "";
  values.lines["DEADLINE"] = indented(deadline, 2);
  values.lines["MPI_DEADLINE"] = indented(deadline, 4);
  values.lines["JOB_MOUNTS"] = indented(mounts(job), 12);
  values.lines["MPI_MOUNTS"] = indented(mounts(job), 16);
  values.lines["JOB_VOLUMES"] = indented(volumes(job, config_map), 8);
  values.lines["MPI_VOLUMES"] = indented(volumes(job, config_map), 12);
  return values;
}

constexpr const char* kSmallAndDigits = "abcdefghijklmnopqrstuvwxyz0123456789";

// As of a claim or a queue (RFC 1123).
bool is_object_name(const std::string& name, size_t longest) {
  const std::string plain = kSmallAndDigits;
  return !name.empty() && name.size() <= longest &&
         name.find_first_not_of(plain + ".-") == std::string::npos &&
         plain.find(name.front()) != std::string::npos &&
         plain.find(name.back()) != std::string::npos;
}

// [HOST[:PORT]/]PATH[:TAG][@DIGEST]; capitals in a tag alone.
bool is_image(const std::string& image) {
  const auto path_begins = image.rfind('/') + 1;  // 0 where there is none
  const auto tag = image.find_first_of(":@", path_begins);
  const std::string plain = std::string(kSmallAndDigits) + "._-/:";
  const std::string capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ@";
  return image.substr(0, tag).find_first_not_of(plain) == std::string::npos &&
         image.find_first_not_of(plain + capitals) == std::string::npos;
}

void check_mounts(const std::vector<Mount>& mounts,
                  const std::function<void(const std::string&)>& refuse) {
  constexpr size_t kLongestClaim = 253;
  std::set<std::string> targets = {"/etc/chexnet-train", "/dev/shm"};
  for (const auto& mount : mounts) {
    if (!is_object_name(mount.source, kLongestClaim))
      refuse("mounts claims, and '" + mount.source +
             "' is no name of one. Hint: --mount CLAIM:/folder (kubectl get "
             "pvc)");
    const std::string target =
        std::filesystem::path(mount.target + "/").lexically_normal().string();
    if (!targets.insert(target.substr(0, target.size() - 1)).second)
      refuse("mounts " + mount.target +
             " twice, or over a folder of the objects' own. Hint: another "
             "folder; /etc/chexnet-train and /dev/shm are taken");
  }
}

void check(const KubernetesRequest& request) {
  const JobRequest& job = request.job;
  const auto refuse = [](const std::string& text) {
    throw ConfigError("[submit] --kubernetes " + text);
  };
  if (job.container.empty() || is_sif(job.container) ||
      !is_image(job.container))
    refuse("needs an image of a registry" +
           (job.container.empty() ? ""
                                  : ", which '" + job.container + "' is not") +
           ". Hint: --container registry.example.org/chexnet-train:cuda13");
  if (job.mounts.empty())
    refuse(
        "needs the volumes that hold data and runs. Hint: --mount "
        "CLAIM:/data:ro --mount CLAIM:/runs");
  check_mounts(job.mounts, refuse);
  constexpr size_t kLongestLabel = 63;
  if (!job.partition.empty() && !is_object_name(job.partition, kLongestLabel))
    refuse("has queues of Kueue for partitions, and '" + job.partition +
           "' is no name of one. Hint: --partition, or partition in the site "
           "file; "
           "kubectl get localqueues");
  if (!job.lines.empty() || !job.setup.empty())
    refuse(
        "takes no --line and no --setup. Hint: change what --dry-run prints");
  if (job.launcher != JobLauncher::kMpirun)
    refuse("starts ranks by mpirun. Hint: leave out --launcher");
  constexpr size_t kMostConfigBytes = 1 << 20;  // of a ConfigMap
  size_t bytes = 0;
  for (const auto& config : request.configs) bytes += config.size();
  if (bytes > kMostConfigBytes)
    refuse(
        "puts the configs of all runs into one ConfigMap, which holds 1 "
        "MiB; those of " +
        std::to_string(request.configs.size()) +
        " runs are larger. Hint: a sweep in several parts");
}

}  // namespace

KubernetesManifest kubernetes_manifest(const KubernetesRequest& request) {
  check(request);
  const std::string name = object_name(request.job.name);
  const std::string data = config_data(request);
  // A job of the same name that is submitted anew must not find the configs of
  // the one before: nobody deletes these with it.
  constexpr size_t kDigits = 10;
  const std::string configs =
      name + "-config-" + sha256_hex(data).substr(0, kDigits);
  TemplateValues values = values_of(request, configs);
  KubernetesManifest manifest{config_map(configs, data), ""};
  if (request.job.nodes == 1) {
    values.texts["NAME"] = name;
    manifest.jobs = filled(kKubernetesJobTemplate, values);
    return manifest;
  }
  for (size_t i = 0; i < request.configs.size(); ++i) {
    const std::string index = std::to_string(i);
    values.texts["INDEX"] = index;
    values.texts["NAME"] =
        request.configs.size() > 1 ? name + "-" + index : name;
    manifest.jobs += filled(kKubernetesMpiJobTemplate, values);
  }
  return manifest;
}

}  // namespace chexnet
