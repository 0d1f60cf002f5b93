#include "chexnet/config/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace chexnet {
namespace {

#define FIELD(member) [](Config& c) -> FieldRef { return &c.member; }

std::vector<ConfigOption> make_options() {
  constexpr double kBig = 1e15;
  using enum ConfigOption::Kind;
  const Strings labels = {"ignore", "zero", "one"};
  // clang-format off
  return {
    {"run.dir", FIELD(run.dir), "run folder; empty = runs/<run.name>; --out sets it", {}, 0, 0, kPath, true},
    {"run.name", FIELD(run.name), "name of the run, and of its folder below runs/", {}, 0, 0, kPlain, true},
    {"run.seed", FIELD(run.seed), "seed of order, augmentation and initial weights", {}, 0, kBig},
    {"run.world_readable", FIELD(run.world_readable), "make the run's files readable by everybody; otherwise only by the user and group rules of the umask without 'other'", {}, 0, 0, kPlain, true},
    {"run.log_every", FIELD(run.log_every), "steps between two train lines of metrics.jsonl", {}, 1, kBig, kPlain, true},

    {"data.manifest.format", FIELD(data.manifest.format), "nih: ChestX-ray14's Data_Entry table (both releases, .gz too); chexpert: train.csv/valid.csv; csv: any table, see data.manifest.columns", {"nih", "chexpert", "csv"}},
    {"data.manifest.path", FIELD(data.manifest.path), "the table of images and labels (required)", {}, 0, 0, kPath, true},
    {"data.manifest.columns.image", FIELD(data.manifest.columns.image), "csv: column with the image's file name", {}},
    {"data.manifest.columns.patient", FIELD(data.manifest.columns.patient), "csv: column with the patient id; empty = every image is a patient of its own", {}},
    {"data.manifest.columns.findings", FIELD(data.manifest.columns.findings), "csv: columns with 1/0/-1/blank, one per finding; empty = every column not named here", {}},
    {"data.manifest.columns.age", FIELD(data.manifest.columns.age), "csv: column with the age in years", {}},
    {"data.manifest.columns.sex", FIELD(data.manifest.columns.sex), "csv: column with the sex", {}},
    {"data.manifest.columns.view", FIELD(data.manifest.columns.view), "csv: column with the view position", {}},
    {"data.images", FIELD(data.images), "where the images are, searched with sub-folders (required): folders, tar or tar.gz archives, TFRecord shards, packs, or s3://bucket/prefix of any of them", {}, 0, 0, kPath, true},
    {"data.train_list", FIELD(data.train_list), "file with the names of the training images, one a line; NIH's train_val_list.txt is cut by patient into train and val when data.val_list is empty; empty = every image of no other list", {}, 0, 0, kPath, true},
    {"data.val_list", FIELD(data.val_list), "file with the names of the validation images; empty = data.val_fraction of the training patients", {}, 0, 0, kPath, true},
    {"data.test_list", FIELD(data.test_list), "file with the names of the test images; empty = no test split", {}, 0, 0, kPath, true},
    {"data.val_fraction", FIELD(data.val_fraction), "share of the training patients set aside for validation when there is no data.val_list", {}, 0, 0.9},
    {"data.split_seed", FIELD(data.split_seed), "seed of that cut", {}, 0, kBig},
    {"data.allow_patient_leak", FIELD(data.allow_patient_leak), "accept lists that put one patient into two splits (the count is reported)", {}},
    {"data.findings", FIELD(data.findings), "findings to learn, by name and in this order; empty = all of the manifest", {}},
    {"data.blank", FIELD(data.blank), "a blank label in training: ignore (not labeled: skipped by the loss), zero, one; auto = zero for chexpert, as its authors count what a report does not mention, else ignore", {"auto", "ignore", "zero", "one"}},
    {"data.uncertain", FIELD(data.uncertain), "an uncertain label (-1) in training: ignore, zero, one", labels},
    {"data.uncertain_by_finding", FIELD(data.uncertain_by_finding), "another choice for single findings: [Atelectasis=one, Edema=one]", {}},
    {"data.resize", FIELD(data.resize), "side of the square an image is resized to, pixels", {}, 8, 4096},
    {"data.eval_resize", FIELD(data.eval_resize), "the same for evaluation, pixels; 0 = data.resize", {}, 0, 4096},
    {"data.crop", FIELD(data.crop), "side of the square the network sees, pixels; evaluation takes the center, where torchvision's center_crop does", {}, 8, 4096},
    {"data.resize_kind", FIELD(data.resize_kind), "antialias: torchvision's bilinear antialias kernel for uint8, bit for bit; area: exact box mean", {"antialias", "area"}},
    {"data.jpeg_scale", FIELD(data.jpeg_scale), "auto: a JPEG much larger than data.resize is decoded at 1/2, 1/4 or 1/8 of its size, scaled in its DCT; off: always at full size, as other programs do", {"auto", "off"}},
    {"data.random_crop", FIELD(data.random_crop), "training takes a random crop instead of the center", {}},
    {"data.random_resized_crop", FIELD(data.random_resized_crop), "training takes a random part of data.crop_area_min..1 of the area, with the picture's own shape, resized to data.crop; not from packs", {}},
    {"data.crop_area_min", FIELD(data.crop_area_min), "smallest area of data.random_resized_crop", {}, 0.01, 1},
    {"data.flip", FIELD(data.flip), "training flips left-right with probability 1/2 (moves the heart to the other side, as the CheXNet paper does)", {}},
    {"data.rotate_deg", FIELD(data.rotate_deg), "training rotates by up to this many degrees either way", {}, 0, 45},
    {"data.scale_jitter", FIELD(data.scale_jitter), "training zooms by up to this fraction either way", {}, 0, 0.5},
    {"data.contrast_jitter", FIELD(data.contrast_jitter), "training scales contrast around the image's mean by up to this fraction either way", {}, 0, 0.9},
    {"data.mean", FIELD(data.mean), "mean of the three input channels on a scale of 0..1", {}},
    {"data.std", FIELD(data.std), "standard deviation of the three input channels on a scale of 0..1", {}},
    {"data.workers", FIELD(data.workers), "loader threads a rank; 0 = decode on the training thread; auto = one, and one more whenever training waits for data, up to the rank's cores", {}, 0, 256, kPlain, true, true},
    {"data.prefetch", FIELD(data.prefetch), "batches decoded ahead; auto = 3 to 8, as many as training takes while the slowest recent one was made", {}, 0, 64, kPlain, true, true},
    {"data.readers", FIELD(data.readers), "reads in flight ahead of the loader threads; auto = 32 for s3://, 0 (loader threads read themselves) elsewhere", {}, 0, 1024, kPlain, true, true},
    {"data.stage", FIELD(data.stage), "copy packs, shards and archives to a local disk once per node: off; auto (only from network file systems and s3://, where $SLURM_TMPDIR, $TMPDIR or /tmp has room); or a folder", {}, 0, 0, kPath, true},
    {"data.pipeline", FIELD(data.pipeline), "order of training images: global (one permutation of all an epoch, the same on any number of ranks); new or old: the pipelines of Dell's article, over TFRecord shards (old decodes every image on every rank)", {"global", "new", "old"}},
    {"data.cycle_length", FIELD(data.cycle_length), "data.pipeline new: files a rank reads in turn", {}, 1, 1e6},
    {"data.shuffle_files", FIELD(data.shuffle_files), "data.pipeline new: shuffle a rank's files each epoch", {}},
    {"data.shuffle_records", FIELD(data.shuffle_records), "data.pipeline new and old: records in the shuffle buffer; 0 = off", {}, 0, 1e9},
    {"data.s3.endpoint", FIELD(data.s3.endpoint), "URL of an S3-compatible server, buckets addressed by path; empty = AWS_ENDPOINT_URL or AWS", {}, 0, 0, kPlain, true},
    {"data.s3.region", FIELD(data.s3.region), "region to sign for; empty = AWS_REGION, the profile's, or us-east-1", {}, 0, 0, kPlain, true},
    {"data.s3.profile", FIELD(data.s3.profile), "profile of ~/.aws/credentials; empty = AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, then AWS_PROFILE, then default; keys never appear in a config", {}, 0, 0, kPlain, true},
    {"data.s3.instance_metadata", FIELD(data.s3.instance_metadata), "ask the cloud machine's metadata service for credentials when there are no others", {}, 0, 0, kPlain, true},
    {"data.s3.attempts", FIELD(data.s3.attempts), "attempts of a request that fails for a reason that may pass (5xx, 429, reset, cut short, stalled)", {}, 1, 100, kPlain, true},
    {"data.s3.timeout_s", FIELD(data.s3.timeout_s), "seconds without a byte after which a request counts as stalled", {}, 1, 3600, kPlain, true},
    {"data.corrupt", FIELD(data.corrupt), "a damaged image (it cannot be decoded, its checksum is wrong): fail (all ranks stop and name it) or skip (it counts as not labeled; each is logged)", {"fail", "skip"}, 0, 0, kPlain, true},
    {"data.corrupt_limit", FIELD(data.corrupt_limit), "data.corrupt skip: more damaged images than this share of an epoch (counted from its start, or from the resume), of a split that is scored, or of a pack are an error, as is a step of nothing else; one image is always allowed, but with 0 none", {}, 0, 1, kPlain, true},
    {"data.retry_s", FIELD(data.retry_s), "seconds for which a read is tried again that fails for a reason that may pass (EIO, a stale handle, a mount that went away); then exit 9; less than launch.timeout_s; s3:// has data.s3.attempts", {}, 0, 1e6, kPlain, true},
    {"data.max_pixels", FIELD(data.max_pixels), "largest width x height accepted, checked on the header before any memory is taken", {}, 1, 1e10, kPlain, true},

    {"model.arch", FIELD(model.arch), "network", {"densenet121", "densenet169", "densenet201", "resnet50", "resnet101"}},
    {"model.weights", FIELD(model.weights), "initial weights: a .safetensors file with torchvision's names, or none for a random start (required: no silent default)", {}, 0, 0, kPath},
    {"model.sync_batchnorm", FIELD(model.sync_batchnorm), "share batch statistics over all ranks, so that a config means the same on any number of them; else a BatchNorm sees train.batch / (ranks x train.accumulate) images", {}},
    {"model.freeze_backbone", FIELD(model.freeze_backbone), "train the classifier only", {}},

    {"train.batch", FIELD(train.batch), "images of one optimizer step, all ranks together; auto = the most whose memory plan fits the memory that is free, so another machine or day chooses another (own engine only; a resume keeps the run's)", {}, 1, 1e7, kPlain, false, true},
    {"train.epochs", FIELD(train.epochs), "passes over the training images", {}, 0, 1e6, kPlain, true},
    {"train.max_steps", FIELD(train.max_steps), "stop after this many steps; 0 = no limit", {}, 0, kBig, kPlain, true},
    {"train.max_seconds", FIELD(train.max_seconds), "checkpoint and exit 75 after this many seconds; 0 = no limit", {}, 0, 1e9, kPlain, true},
    {"train.optimizer", FIELD(train.optimizer), "optimizer", {"adam", "adamw", "sgd"}},
    {"train.lr", FIELD(train.lr), "learning rate for train.lr_base_batch images", {}, 0, 1e3},
    {"train.lr_scaling", FIELD(train.lr_scaling), "how the rate grows with batch/lr_base_batch", {"none", "linear", "sqrt"}},
    {"train.lr_base_batch", FIELD(train.lr_base_batch), "batch size that train.lr is meant for, images", {}, 1, 1e7},
    {"train.warmup_epochs", FIELD(train.warmup_epochs), "epochs of linear warm-up: a step's rate is the full one x the images seen at its end / those of the warm-up", {}, 0, 1e6},
    {"train.schedule", FIELD(train.schedule), "after warm-up, counted from its end: constant; plateau (x plateau_factor when the validation loss stops falling); cosine, to 0 at train.epochs; step (x step_factor every step_epochs)", {"constant", "plateau", "cosine", "step"}},
    {"train.plateau_factor", FIELD(train.plateau_factor), "factor on a plateau", {}, 0, 1},
    {"train.plateau_patience", FIELD(train.plateau_patience), "evaluations without a lower loss (by 0.01 %) that make a plateau; PyTorch's ReduceLROnPlateau counts one more", {}, 1, 1e6},
    {"train.step_epochs", FIELD(train.step_epochs), "train.schedule step: epochs between two steps of the rate, the first so many after the warm-up", {}, 1e-9, 1e6},
    {"train.step_factor", FIELD(train.step_factor), "factor of such a step", {}, 0, 1},
    {"train.weight_decay", FIELD(train.weight_decay), "decay of weights (never of BatchNorm and bias): L2 in the gradient for adam and sgd, decoupled for adamw", {}, 0, 10},
    {"train.momentum", FIELD(train.momentum), "sgd: momentum", {}, 0, 1},
    {"train.beta1", FIELD(train.beta1), "adam: decay of the first moment", {}, 0, 1},
    {"train.beta2", FIELD(train.beta2), "adam: decay of the second moment", {}, 0, 1},
    {"train.eps", FIELD(train.eps), "adam: epsilon", {}, 0, 1},
    {"train.clip_norm", FIELD(train.clip_norm), "clip the global gradient norm to this; 0 = off", {}, 0, 1e9},
    {"train.accumulate", FIELD(train.accumulate), "micro-batches a rank computes for one step", {}, 1, 1e5},
    {"train.precision", FIELD(train.precision), "auto: bf16 on GPUs from sm_80, fp16 with loss scaling on older ones, fp32 on CPU", {"auto", "fp64", "fp32", "bf16", "fp16"}},
    {"train.engine", FIELD(train.engine), "auto: our own engine on CPU, ATen's operators (LibTorch) on GPUs and for fp16; aten: ATen's operators everywhere", {"auto", "aten"}},
    {"train.deterministic", FIELD(train.deterministic), "threads: the same bits for any number of threads; strict: also only direct convolutions, no Winograd, on CPU", {"threads", "strict"}},
    {"train.loss_weights", FIELD(train.loss_weights), "none (CheXNet's 14 findings); pos_weight: positives x negatives/positives of the training split; balanced: |N|/(|P|+|N|) for positives and |P|/(|P|+|N|) for negatives, as the CheXNet paper weighs its single pneumonia output. A finding without positives (or negatives) in the training split then has no loss there. Weighted losses shift the scores away from prevalence: AUROC stays meaningful, probabilities do not", {"none", "pos_weight", "balanced"}},
    {"train.nan_policy", FIELD(train.nan_policy), "a gradient that is not finite: fail (exit 6) or skip the step (10 in a row fail)", {"fail", "skip"}},
    {"train.early_stop_epochs", FIELD(train.early_stop_epochs), "stop at an evaluation that finds no better checkpoint.best since this many epochs; 0 = off", {}, 0, 1e6, kPlain, true},
    {"train.order_file", FIELD(train.order_file), "train on exactly these images in this order, one a line, over and over, without augmentation (parity checks)", {}, 0, 0, kPath},

    {"eval.batch", FIELD(eval.batch), "images of one forward pass; the last is padded", {}, 1, 1e5, kPlain, true},
    {"eval.threads", FIELD(eval.threads), "compute threads a rank in evaluation, so that scores are equal to the last bit on any number of ranks; 0 = as in training", {}, 0, 1024, kPlain, true},
    {"eval.every_epochs", FIELD(eval.every_epochs), "epochs between two evaluations of the validation split, each with a checkpoint before it; 0 = only at the end", {}, 0, 1e6, kPlain, true},
    {"eval.splits", FIELD(eval.splits), "splits scored at the end of training", {"train", "val", "test"}, 0, 0, kPlain, true},

    {"eval.findings", FIELD(eval.findings), "findings that are scored; empty = all that the network knows", {}, 0, 0, kPlain, true},
    {"eval.blank", FIELD(eval.blank), "a blank label in what is scored: ignore, zero, one; auto = as data.blank", {"auto", "ignore", "zero", "one"}, 0, 0, kPlain, true},
    {"eval.uncertain", FIELD(eval.uncertain), "an uncertain label (-1) in what is scored: ignore, zero, one", labels, 0, 0, kPlain, true},

    {"checkpoint.every_steps", FIELD(checkpoint.every_steps), "steps between two checkpoints; 0 = only at epochs", {}, 0, kBig, kPlain, true},
    {"checkpoint.every_epochs", FIELD(checkpoint.every_epochs), "epochs between two checkpoints; 0 = only before evaluations and at the end", {}, 0, 1e6, kPlain, true},
    {"checkpoint.keep", FIELD(checkpoint.keep), "newest checkpoints kept, besides the best", {}, 1, 1e6, kPlain, true},
    {"checkpoint.best", FIELD(checkpoint.best), "what makes a checkpoint the best on the validation split", {"auroc", "loss"}},

    {"launch.ranks", FIELD(launch.ranks), "ranks to start when no launcher did: 0 = one per GPU, or 1 on CPU; --ranks sets it", {}, 0, 1e6, kPlain, true},
    {"launch.ranks_per_node", FIELD(launch.ranks_per_node), "ranks to start on each host; 0 = one per GPU, or as the host file's slots say; --ranks-per-node and --gpus set it", {}, 0, 1e4, kPlain, true},
    {"launch.hostfile", FIELD(launch.hostfile), "hosts to start ranks on, in Open MPI's form or PBS's; empty = those of the batch job ($PBS_NODEFILE, Slurm), else this host; --hostfile sets it", {}, 0, 0, kPath, true},
    {"launch.threads", FIELD(launch.threads), "compute threads a rank; 0 = the cores it is bound to, shared between ranks of one host", {}, 0, 1024, kPlain, true},
    {"launch.device", FIELD(launch.device), "auto: GPUs where there are any", {"auto", "cpu", "cuda"}},
    {"launch.bind", FIELD(launch.bind), "ranks on the wrong cores (far from their GPU, shared, unbound): fix (each moves itself, its loader threads and its memory), check (only says so), off", {"fix", "check", "off"}, 0, 0, kPlain, true},
    {"launch.network", FIELD(launch.network), "network for MPI and NCCL: auto, ib[:mlx5_0] (InfiniBand, RoCE), opa (Omni-Path), tcp[:eth0 or :10.1.0.0/16], ucx (UCX over whatever there is); settings made by hand stay", {}, 0, 0, kPlain, true},
    {"launch.wire", FIELD(launch.wire), "format of gradients on the network; fp32 means the gradient's own type", {"fp32", "fp16", "bf16"}},
    {"launch.bucket_mb", FIELD(launch.bucket_mb), "gradient bucket, MB of 10^6 bytes; auto = the best of 1 to 32, tried by all ranks over the first 48 steps and kept in the checkpoint (which sizes win is a matter of time, so two such runs need not be equal to the last bit)", {}, 0.001, 1e4, kPlain, false, true},
    {"launch.timeout_s", FIELD(launch.timeout_s), "a collective that takes longer ends the run with exit 7, seconds", {}, 0.1, 1e6, kPlain, true},
    {"launch.time_limit", FIELD(launch.time_limit), "time the job may run, e.g. 2:00:00 or 1-12:00:00, counted from the program's start; empty = what Slurm or PBS says", {}, 0, 0, kPlain, true},
    {"launch.stop_margin_s", FIELD(launch.stop_margin_s), "checkpoint and exit 75 when less than this (and the time of a checkpoint, or of an evaluation where one is next) is left of the job's time, seconds", {}, 0, 1e6, kPlain, true},
    {"launch.restarts", FIELD(launch.restarts), "how often the program starts its ranks again from the last checkpoint after a hang, a crash, a lost host or storage that does not answer; not after errors of config, data or checkpoint, nor after two restarts at the same checkpoint", {}, 0, 1e6, kPlain, true},
    {"launch.mpi_args", FIELD(launch.mpi_args), "further words for mpirun when the program starts it", {}, 0, 0, kPlain, true},
  };
  // clang-format on
}
#undef FIELD

std::string number_text(double value) {
  std::array<char, 40> text{};
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), result.ptr};
}

std::string quoted(const std::string& text) {
  static const Strings kReserved = {"null", "~", "true", "false", "yes", "no", "on", "off"};
  const bool plain = !text.empty() &&
                     text.find_first_of(":#,[]{}&*!|>'\"%@`\\ \t\n") == std::string::npos &&
                     text.find_first_of("-?0123456789.+") != 0 &&
                     std::ranges::find(kReserved, text) == kReserved.end();
  const bool path = !text.empty() && (text[0] == '.' || text[0] == '/') &&
                    text.find_first_of(":#,[]{}'\" \t\n\\") == std::string::npos &&
                    text.find('/') != std::string::npos;
  if (plain || path) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

template <class List, class Text>
std::string flow_list(const List& list, Text text) {
  std::string out = "[";
  for (std::size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + text(list[i]);
  return out + "]";
}

}  // namespace

const std::vector<ConfigOption>& config_options() {
  static const std::vector<ConfigOption> table = make_options();
  return table;
}

const ConfigOption* find_option(const std::string& key) {
  const auto found = std::ranges::find(config_options(), key, &ConfigOption::key);
  return found == config_options().end() ? nullptr : &*found;
}

std::vector<std::string> option_keys() {
  std::vector<std::string> keys;
  for (const auto& option : config_options()) keys.push_back(option.key);
  return keys;
}

std::string option_text(const ConfigOption& option, const Config& config) {
  Config copy = config;
  return std::visit(
      Overloaded{[](bool* v) { return std::string(*v ? "true" : "false"); },
                 [&](std::int64_t* v) {
                   return option.has_auto && *v < 0 ? std::string("auto") : std::to_string(*v);
                 },
                 [&](double* v) {
                   return option.has_auto && *v < 0 ? std::string("auto") : number_text(*v);
                 },
                 [](std::string* v) { return quoted(*v); },
                 [](Strings* v) { return flow_list(*v, quoted); },
                 [](Doubles* v) { return flow_list(*v, number_text); }},
      option.field(copy));
}

std::string option_type(const ConfigOption& option) {
  Config scratch;
  return std::visit(
      Overloaded{[](bool*) { return "true/false"; },
                 [&](std::int64_t*) { return option.has_auto ? "integer or auto" : "integer"; },
                 [&](double*) { return option.has_auto ? "number or auto" : "number"; },
                 [](std::string*) { return "text"; }, [](Strings*) { return "list of text"; },
                 [](Doubles*) { return "list of numbers"; }},
      option.field(scratch));
}

namespace {
std::string option_meaning(const ConfigOption& option) {
  std::string text = option.help;
  if (!option.choices.empty()) {
    text += " (one of ";
    for (std::size_t i = 0; i < option.choices.size(); ++i)
      text += (i ? ", " : "") + option.choices[i];
    text += ")";
  }
  return text;
}
}  // namespace

std::string options_markdown() {
  std::string text =
      "# Config keys\n\nPrinted by `chexnet-train config --markdown`; a test keeps this page equal "
      "to the program.\n\n"
      "Files are strict YAML: an unknown or doubled key, an alias or a wrong type is refused with "
      "file and line. "
      "Later files override earlier ones (`train base.yaml site.yaml exp.yaml`), `--set key=value` "
      "overrides all. "
      "Paths may use `~` and `${VAR}` or `${VAR:-default}`; a relative path is relative to the "
      "working folder. "
      "A key marked with * may differ when a run is resumed.\n\n"
      "| key | type | default | meaning |\n|---|---|---|---|\n";
  const Config defaults;
  for (const auto& option : config_options()) {
    std::string meaning = option_meaning(option);
    for (std::size_t at = 0; (at = meaning.find('|', at)) != std::string::npos; at += 2)
      meaning.insert(at, "\\");
    text += "| `" + option.key + "`" + (option.may_change_on_resume ? "*" : "") + " | " +
            option_type(option) + " | `" + option_text(option, defaults) + "` | " + meaning +
            " |\n";
  }
  return text;
}

std::string options_help(const std::string& prefix) {
  std::string text;
  const Config defaults;
  for (const auto& option : config_options())
    if (option.key.starts_with(prefix))
      text += "  " + option.key + " = " + option_text(option, defaults) + "  (" +
              option_type(option) + ")\n      " + option_meaning(option) + "\n";
  return text;
}

}  // namespace chexnet
