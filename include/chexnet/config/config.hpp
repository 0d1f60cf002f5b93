// Everything an experiment can set, with defaults and units. Filled once (see load.hpp), const
// afterwards. The table in options.cpp gives each member its key, meaning and limits;
// docs/config.md is printed from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chexnet {

using Strings = std::vector<std::string>;
using Doubles = std::vector<double>;

struct RunConfig {
  std::string dir;  // run folder; empty = runs/<name>
  std::string name = "run";
  std::int64_t seed = 1;
  bool world_readable = false;  // files readable by everybody
  std::int64_t log_every = 10;  // steps between train lines
};

struct ColumnsConfig {
  std::string image = "image";
  std::string patient;
  Strings findings;
  std::string age, sex, view;
};

struct ManifestConfig {
  std::string format = "nih";
  std::string path;
  ColumnsConfig columns;
};

struct S3Config {
  std::string endpoint, region, profile;
  bool instance_metadata = false;
  std::int64_t attempts = 8;
  double timeout_s = 20;
};

struct DataConfig {
  ManifestConfig manifest;
  Strings images;
  std::string train_list, val_list, test_list;
  double val_fraction = 0.1;
  std::int64_t split_seed = 1;
  bool allow_patient_leak = false;
  Strings findings;
  std::string blank = "auto", uncertain = "ignore";
  Strings uncertain_by_finding;                            // "Atelectasis=one"
  std::int64_t resize = 256, eval_resize = 0, crop = 224;  // pixels
  std::string resize_kind = "antialias";
  std::string jpeg_scale = "auto";
  bool random_crop = false;
  bool random_resized_crop = false;
  double crop_area_min = 0.8;
  bool flip = true;
  double rotate_deg = 0, scale_jitter = 0, contrast_jitter = 0;
  Doubles mean = {0.485, 0.456, 0.406}, std = {0.229, 0.224, 0.225};
  std::int64_t workers = -1;
  std::int64_t prefetch = -1;  // batches
  std::int64_t readers = -1;
  std::string stage = "off";
  std::string pipeline = "global";
  std::int64_t cycle_length = 10, shuffle_records = 500;
  bool shuffle_files = true;
  S3Config s3;
  std::string corrupt = "fail";
  double corrupt_limit = 0.01;  // of an epoch
  double retry_s = 60;
  std::int64_t max_pixels = 64'000'000;
};

struct ModelConfig {
  std::string arch = "densenet121";
  std::string weights;
  bool sync_batchnorm = false;
  bool freeze_backbone = false;
};

struct TrainConfig {
  std::int64_t batch = 16;  // images, all ranks together; -1 = auto
  double epochs = 10;
  std::int64_t max_steps = 0;
  double max_seconds = 0;
  std::string optimizer = "adam";
  double lr = 1e-3;
  std::string lr_scaling = "none";
  std::int64_t lr_base_batch = 16;
  double warmup_epochs = 0;
  std::string schedule = "constant";
  double plateau_factor = 0.1;
  std::int64_t plateau_patience = 1;
  double step_epochs = 10;
  double step_factor = 0.1;
  double weight_decay = 0;
  double momentum = 0.9, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double clip_norm = 0;
  std::int64_t accumulate = 1;
  std::string precision = "auto";
  std::string engine = "auto";
  std::string deterministic = "threads";
  std::string loss_weights = "none";
  std::string nan_policy = "fail";
  std::int64_t early_stop_epochs = 0;
  std::string order_file;
};

struct EvalConfig {
  std::int64_t batch = 32;
  std::int64_t threads = 0;  // 0 = as in training
  std::int64_t every_epochs = 1;
  Strings splits = {"val", "test"};
  Strings findings;  // empty = all
  std::string blank = "auto", uncertain = "ignore";
};

struct CheckpointConfig {
  std::int64_t every_steps = 0;
  std::int64_t every_epochs = 1;
  std::int64_t keep = 2;
  std::string best = "auroc";
};

struct LaunchConfig {
  std::int64_t ranks = 0;
  std::int64_t ranks_per_node = 0;
  std::string hostfile;
  std::int64_t threads = 0;
  std::string device = "auto";
  std::string bind = "fix";
  std::string network = "auto";
  std::string wire = "fp32";
  double bucket_mb = 4;  // -1 = auto
  double timeout_s = 600;
  std::string time_limit;
  double stop_margin_s = 120;
  std::int64_t restarts = 0;
  Strings mpi_args;
  Strings variables;  // no key: names of the environment variables that the config refers to
};

struct Config {
  RunConfig run;
  DataConfig data;
  ModelConfig model;
  TrainConfig train;
  EvalConfig eval;
  CheckpointConfig checkpoint;
  LaunchConfig launch;
};

}  // namespace chexnet
