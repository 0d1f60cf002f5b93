// Everything an experiment can set, with defaults and units. Filled once, from
// files, --set and the command line (see load.hpp), const afterwards
// (tests/config_strings_test): for values left to the run ("auto", an empty
// optional) its decisions are in train/run/run_decisions.hpp. The table in
// src/config/table_*.cpp gives each member its key, meaning and limits;
// docs/config.md is printed from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/config/choices.hpp"

namespace chexnet {

using Strings = std::vector<std::string>;
using Doubles = std::vector<double>;
using SplitNames = std::vector<SplitName>;
using ManifestFormats = std::vector<ManifestFormat>;

struct RunConfig {
  std::string dir;  // run folder; empty = runs/<name>
  std::string name = "run";
  int64_t seed = 1;
  int64_t log_every = 10;        // steps between train lines
  std::string prometheus;        // folder of the node exporter; empty = none
  std::string after_checkpoint;  // shell command; empty = none
};

struct ColumnsConfig {
  std::string image = "image";
  std::string patient;
  Strings findings;
  std::string age, sex, view, study;
};

struct ManifestConfig {
  ManifestFormats format = {ManifestFormat::kNih};  // of all, or of each path
  Strings path;
  SplitNames split;  // of each path; empty = by lists and fractions
  ColumnsConfig columns;
};

struct S3Config {
  std::string endpoint, region, profile;
  bool instance_metadata = false;
  int64_t attempts = 8;
  double timeout_s = 20;
};

struct DataConfig {
  ManifestConfig manifest;
  Strings images;
  std::string train_list, val_list, test_list;
  double val_fraction = 0.1, test_fraction = 0;
  FoldChoice fold;
  bool stratify = false;
  int64_t split_seed = 1;
  bool allow_patient_leak = false;
  Strings filter;             // "view=PA"
  std::string exclude;        // file of images and patients
  std::string sample_weight;  // column
  std::string finding_names;  // file
  Strings findings;
  std::optional<LabelPolicy> blank;  // auto: by the table's format
  UncertainChoice uncertain;
  int64_t resize = 256, eval_resize = 0, crop = 224;  // pixels
  ResizeKind resize_kind = ResizeKind::kAntialias;
  JpegScale jpeg_scale = JpegScale::kAuto;
  TrainCrop train_crop = TrainCrop::kCenter;
  double crop_area_min = 0.8;
  bool flip = true;
  double rotate_deg = 0, zoom = 0, contrast = 0;
  Doubles mean = {0.485, 0.456, 0.406}, std = {0.229, 0.224, 0.225};
  std::optional<int64_t> workers;
  std::optional<int64_t> prefetch;  // batches
  std::optional<int64_t> readers;
  StageChoice stage;
  PipelineKind pipeline = PipelineKind::kGlobal;
  S3Config s3;
  CorruptChoice corrupt;
  OnMissing missing = OnMissing::kFail;
  double retry_s = 60;
};

struct ModelConfig {
  Architecture arch = Architecture::kDenseNet121;
  std::string weights;  // a file; or "none"
  bool starts_random() const { return weights == "none"; }
  bool sync_batchnorm = false;
  FrozenPart freeze_until = FrozenPart::kNone;
  int64_t freeze_epochs = 0;  // 0: all
  ActivationMemory memory = ActivationMemory::kSpeed;
  // The layers that no epoch of the run trains.
  FrozenPart always_frozen() const {
    return freeze_epochs > 0 ? FrozenPart::kNone : freeze_until;
  }
};

struct TrainConfig {
  std::optional<int64_t> batch = 16;  // images of a step, all ranks together
  double epochs = 10;
  int64_t max_steps = 0;
  OptimizerKind optimizer = OptimizerKind::kAdam;
  double lr = 1e-3;
  LrScaling lr_scaling = LrScaling::kNone;
  int64_t lr_base_batch = 16;
  double head_lr_factor = 1, layer_decay = 1;
  double warmup_epochs = 0;
  ScheduleKind schedule = ScheduleKind::kConstant;
  double decay_factor = 0.1;  // of a plateau or step
  int64_t plateau_patience = 1;
  double step_epochs = 10;
  double weight_decay = 0;
  double momentum = 0.9, eps = 1e-8;
  Doubles betas = {0.9, 0.999};
  double clip_norm = 0;
  int64_t accumulate = 1;
  std::optional<Precision> precision;  // auto: by the device
  EngineKind engine = EngineKind::kAuto;
  bool deterministic = false;
  RecordStep record_step = RecordStep::kAuto;
  LossKind loss = LossKind::kBce;
  Doubles loss_gamma;  // of positives, of negatives; empty: as published
  LossWeighting class_weights = LossWeighting::kNone;
  double label_smoothing = 0;
  double mixup = 0;  // alpha of Beta(alpha, alpha)
  SamplingKind sampling = SamplingKind::kUniform;
  double ema = 0;  // decay of a step
  OnNonFinite not_finite = OnNonFinite::kFail;
  int64_t verify_every = 100;  // steps
  int64_t early_stop_epochs = 0;
  Doubles rungs;  // epochs, ascending
  std::string order_file;
};

struct EvalConfig {
  int64_t batch = 32;
  int64_t every_epochs = 1;
  EvalCrops crops = EvalCrops::kOne;
  ScoredBy by = ScoredBy::kImage;
  CombineImages combine = CombineImages::kMax;
  SplitNames splits = {SplitName::kVal, SplitName::kTest};
  Strings findings;                  // empty = all
  std::optional<LabelPolicy> blank;  // auto: as data.blank
  LabelPolicy uncertain = LabelPolicy::kIgnore;
  double sensitivity = 0.9, specificity = 0.9;  // of operating points, 0..1
  int64_t examples = 12;  // pictures with heat maps, for the report
};

struct CheckpointConfig {
  int64_t every_steps = 0;
  int64_t keep = 2;
  BestBy best = BestBy::kAuroc;
};

struct LaunchConfig {
  int64_t ranks = 0;
  int64_t ranks_per_node = 0;
  std::string hostfile;
  int64_t threads = 0;
  std::optional<DeviceKind> device;  // auto: GPUs where there are any
  std::optional<MpiFamily> mpi;  // auto: what started the ranks, or mpirun's
  BindPolicy bind = BindPolicy::kFix;
  NetworkChoice network;
  GradientCompression gradient_compression = GradientCompression::kNone;
  std::optional<double> bucket_mb = 4;  // MB of 10^6 bytes; auto: tried out
  double timeout_s = 600;
  std::string time_limit;
  double stop_margin_s = 120;
  int64_t restarts = 0;
  int64_t min_hosts = 1;
  Strings mpi_args;
};

struct PrivacyConfig {
  std::optional<PatientIdForm> ids;  // empty: by the format of the table
  std::string key;                   // file; empty: the user's
};

struct Config {
  RunConfig run;
  DataConfig data;
  PrivacyConfig privacy;
  ModelConfig model;
  TrainConfig train;
  EvalConfig eval;
  CheckpointConfig checkpoint;
  LaunchConfig launch;
};

}  // namespace chexnet
