// Where and how ranks run. A resume may change keys that change no sum; the
// device, the format of gradients on the network and the cut into buckets stay.
#include "option_table.hpp"

namespace chexnet {
namespace {

std::vector<ConfigOption> rank_options() {
  return {
      {
          AUTO_MEMBER(launch.ranks),
          .help =
              "ranks to start when no launcher did; auto: "
              "launch.ranks_per_node on each host; where that is auto too, one "
              "per GPU, and without GPUs as many as the batch job has "
              "tasks or the host file slots, else 1; --ranks sets "
              "it",
          .limits = {{1, 1e6}},
          .effect = Effect::kNone,
      },
      {
          AUTO_MEMBER(launch.ranks_per_node),
          .help =
              "ranks to start on each host; auto: one per GPU, or as the host "
              "file's slots say; --ranks-per-node and --gpus set it",
          .limits = {{1, 1e4}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(launch.hostfile),
          .help = "hosts to start ranks on, as Open MPI or PBS writes them; "
                  "empty = those of the batch job, else "
                  "this host; --hostfile sets it",
          .is_path = true,
          .effect = Effect::kNone,
      },
      {
          AUTO_MEMBER(launch.threads),
          .help =
              "compute threads per rank; auto: OMP_NUM_THREADS where it is "
              "set (PBS does), else the cores the rank is bound to, divided "
              "among the ranks of a host that share them",
          .limits = {{1, 1024}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(launch.device),
          .help = "auto: GPUs where there are any",
          .tier = Tier::kCommon,
      },
      {
          MEMBER(launch.mpi),
          .help =
              "which MPI: openmpi, or mpich (MPICH, Cray MPICH, Intel MPI, "
              "which share its ABI); auto: that of the launcher (mpirun, srun) "
              "that started the ranks, and without one that of the mpirun in "
              "PATH",
          .effect = Effect::kNone,
      },
      {
          MEMBER(launch.bind),
          .help =
              "ranks on the wrong cores (far from their GPU, shared, "
              "unbound): fix (each moves itself, its loader threads and its "
              "memory), check (a warning only) or off",
          .effect = Effect::kNone,
      },
  };
}

// Communication of ranks.
std::vector<ConfigOption> link_options() {
  return {
      {
          MEMBER(launch.network),
          .help =
              "network for MPI and NCCL: auto, ib[:mlx5_0] (InfiniBand, "
              "RoCE), opa (Omni-Path), tcp[:eth0 or :10.1.0.0/16], ucx (UCX "
              "over whatever there is); variables that are set by hand stay",
          .effect = Effect::kNone,
      },
      {
          MEMBER(launch.gradient_compression),
          .help = "format of gradients on the network: none (their own type), "
                  "fp16 or bf16 (half the bytes)",
      },
      {
          MEMBER(launch.bucket_mb),
          .help = "gradients per all-reduce, MB of 10^6 bytes; auto: the best "
                  "of 1 to 32, tried by all ranks over the first 48 steps and "
                  "kept in the checkpoint (which one wins is a matter of time, "
                  "so two such runs need not be equal to the last bit)",
          .limits = {{0.001, 1e4}},
      },
  };
}

// How long a run may take, or stand still, and what follows.
std::vector<ConfigOption> time_options() {
  return {
      {
          MEMBER(launch.timeout_s),
          .help = "longest time a collective may take, or no rank move, "
                  "seconds; then the run ends with exit code 7",
          .limits = {{0.1, 1e6}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(launch.time_limit),
          .help =
              "time the job may run, e.g. 2:00:00 or 1-12:00:00, counted "
              "from the program's start; empty = what the batch system says",
          .effect = Effect::kNone,
      },
      {
          MEMBER(launch.stop_margin_s),
          .help =
              "write a checkpoint and exit with code 75 when less of the "
              "job's time is left than this many seconds (and the time of a "
              "checkpoint, or of an evaluation where one is next)",
          .limits = {{0, 1e6}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(launch.restarts),
          .help = "how often the program starts its ranks again from the last "
                  "checkpoint after a hang, a crash, a lost host or storage "
                  "that does not answer; not after errors of config, data or "
                  "checkpoint, nor after two restarts at the same checkpoint",
          .limits = {{0, 1e6}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(launch.min_hosts),
          .help =
              "a restart goes on without hosts that do not answer any more, on "
              "fewer ranks with the same train.batch and a larger "
              "train.accumulate, while so many hosts are left; the number of "
              "all hosts = none may be missing",
          .limits = {{1, 1e6}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(launch.mpi_args),
          .help = "further arguments for mpirun when the program starts it",
          .effect = Effect::kNone,
      },
  };
}

}  // namespace

std::vector<ConfigOption> launch_table() {
  return joined({rank_options(), link_options(), time_options()});
}

}  // namespace chexnet
