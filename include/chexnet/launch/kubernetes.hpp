// A training as objects of Kubernetes. On one host it is an indexed Job, whose
// pods are the points of a sweep, or one pod; on several hosts an MPIJob of
// Kubeflow's MPI operator (v2beta1) for each point. A ConfigMap holds the
// configs, so nothing but the volumes must be there before.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chexnet/launch/job_script.hpp"

namespace chexnet {

struct KubernetesRequest {
  // Of which hosts, ranks, cores and GPUs, restarts, container and mounts
  // (claims) are taken; `partition` is a queue of Kueue.
  JobRequest job;
  std::vector<std::string> configs;  // YAML, of each point, with its run folder
  double stop_margin_s = 120;        // for the last checkpoint
  std::optional<double> time_s;      // all restarts together
};

// YAML documents: of a ConfigMap that is named after what it holds, and so may
// be there already, and behind it those of the jobs that read it.
struct KubernetesManifest {
  std::string config_map, jobs;
};
// ConfigError where something is missing or is not what Kubernetes takes.
KubernetesManifest kubernetes_manifest(const KubernetesRequest& request);

}  // namespace chexnet
