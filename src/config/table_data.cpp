#include "table.hpp"

namespace chexnet {
namespace {

// What there is to learn from, and which split each image belongs to.
std::vector<ConfigOption> manifest_options() {
  return {
      {MEMBER(data.manifest.format),
       .help = "nih: ChestX-ray14's Data_Entry table (both releases, .gz "
               "too); chexpert: train.csv/valid.csv; csv: any table, see "
               "data.manifest.columns. One for all tables, or one for each"},
      {MEMBER(data.manifest.path),
       .help = "the table of images and labels (required), or several: "
               "[train.csv, valid.csv]. Findings are aligned by name; what a "
               "table lacks is not labeled there",
       .is_path = true, .may_change_on_resume = true},
      {MEMBER(data.manifest.split),
       .help = "the split that all rows of a table belong to, one for each "
               "table: [train, val]; empty = by lists and fractions"},
      {MEMBER(data.manifest.columns.image),
       .help = "csv: column with the image's file name"},
      {MEMBER(data.manifest.columns.patient),
       .help = "csv: column with the patient id; empty = every image is a "
               "patient of its own"},
      {MEMBER(data.manifest.columns.findings),
       .help = "csv: columns with 1/0/-1/blank, one per finding; empty = "
               "every column not named here"},
      {MEMBER(data.manifest.columns.age),
       .help = "csv: column with the age in years"},
      {MEMBER(data.manifest.columns.sex), .help = "csv: column with the sex"},
      {MEMBER(data.manifest.columns.view),
       .help = "csv: column with the view position"},
      {MEMBER(data.images),
       .help = "where the images are, searched with sub-folders (required): "
               "folders, tar or tar.gz archives, TFRecord shards, packs, or "
               "s3://bucket/prefix of any of them",
       .is_path = true, .may_change_on_resume = true},
      {MEMBER(data.train_list),
       .help =
           "file with the names of the training images, one per line; empty = "
           "every image of no other list. NIH's train_val_list.txt is cut by "
           "patient into train and val when data.val_list is empty",
       .is_path = true, .may_change_on_resume = true},
      {MEMBER(data.val_list),
       .help = "file with the names of the validation images; empty = "
               "data.val_fraction of the training patients",
       .is_path = true, .may_change_on_resume = true},
      {MEMBER(data.test_list),
       .help = "file with the names of the test images; empty = "
               "data.test_fraction of the patients",
       .is_path = true, .may_change_on_resume = true},
      {MEMBER(data.test_fraction),
       .help = "fraction of the patients set aside for the test when no list "
               "or table names test images; 0 = no test split",
       .limits = {{0, 0.9}}},
      {MEMBER(data.val_fraction),
       .help = "fraction of the training patients set aside for validation "
               "when no list or table names validation images",
       .limits = {{0, 0.9}}},
      {MEMBER(data.folds),
       .help = "cross-validation: the training patients are dealt out to this "
               "many folds, and fold data.fold is for validation instead of "
               "data.val_fraction; 0 = off",
       .limits = {{0, 1000}}},
      {MEMBER(data.fold), .help = "the fold for validation, counted from 0",
       .limits = {{0, 999}}},
      {MEMBER(data.stratify),
       .help = "draw data.test_fraction, data.val_fraction and folds so that "
               "each finding gets its share: patients are grouped by the "
               "rarest finding that they have"},
      {MEMBER(data.split_seed),
       .help = "seed of the random choice of patients for data.test_fraction, "
               "data.val_fraction and data.folds",
       .limits = {{0, kNoMaximum}}},
      {MEMBER(data.allow_patient_leak),
       .help = "accept lists that put one patient into two splits (their "
               "number is reported)"},
  };
}

// Which rows of the tables take part.
std::vector<ConfigOption> choice_options() {
  return {
      {MEMBER(data.filter),
       .help = "conditions that each row must meet: [view=PA, age>=18, "
               "sex!=M, Frontal/Lateral=Frontal], with =, !=, <, <=, >, >= "
               "and | between values. A column by its name in the table, or "
               "image, patient, age, sex, view in any. A table without the "
               "column keeps its rows"},
      {MEMBER(data.exclude),
       .help = "file with images or patients that take no part anywhere "
               "(withdrawn.txt), one per line",
       .is_path = true, .may_change_on_resume = true},
  };
}

// Findings, and what labels count as that are neither 1 nor 0.
std::vector<ConfigOption> label_options() {
  return {
      {MEMBER(data.findings), .help = "findings to learn, by name and in "
                                      "this order; empty = all of the "
                                      "manifest"},
      {MEMBER(data.finding_names),
       .help = "CSV file with the header name,finding: what columns of the "
               "tables are called here, e.g. Lung Lesion,Mass; several names "
               "may be of one finding",
       .is_path = true, .may_change_on_resume = true},
      {MEMBER(data.blank),
       .help = "what a blank label counts as in training: ignore (not "
               "labeled, no loss), zero or one; auto: zero for chexpert, "
               "whose authors count what a report does not mention as "
               "absent, else ignore"},
      {MEMBER(data.uncertain),
       .help = "what an uncertain label (-1) counts as in training; smooth: "
               "0.7, between unknown and positive"},
      {MEMBER(data.uncertain_by_finding),
       .help =
           "the same for single findings, e.g. [Atelectasis=one, Edema=one]"},
  };
}

// From file to network input: what is done alike each time, then what training
// draws anew for each image of an epoch, then the scale of the input.
std::vector<ConfigOption> image_options() {
  return {
      {MEMBER(data.resize),
       .help = "side of the square an image is resized to, pixels",
       .limits = {{8, 4096}}},
      {MEMBER(data.eval_resize),
       .help = "the same in evaluation, pixels; 0 = data.resize",
       .limits = {{0, 4096}}},
      {MEMBER(data.crop),
       .help =
           "side of the square the network sees, pixels; evaluation takes the "
           "center, at the place where torchvision's center_crop takes it",
       .limits = {{8, 4096}}},
      {MEMBER(data.resize_kind),
       .help = "antialias: torchvision's bilinear antialias kernel for "
               "uint8, bit for bit; area: exact box mean"},
      {MEMBER(data.jpeg_scale),
       .help = "auto: a JPEG much larger than data.resize is decoded at 1/2, "
               "1/4 or 1/8 of its size; off: always at full size, as other "
               "programs do"},
      {MEMBER(data.random_crop),
       .help = "training takes a random crop instead of the center"},
      {MEMBER(data.random_resized_crop),
       .help = "training takes a random part of each image, of "
               "data.crop_area_min to 1 of its area and of its own shape, "
               "resized to data.crop; not from packs"},
      {MEMBER(data.crop_area_min),
       .help =
           "smallest fraction of the area that data.random_resized_crop takes",
       .limits = {{0.01, 1}}},
      {MEMBER(data.flip),
       .help = "training flips left and right with probability 1/2, as the "
               "CheXNet paper does (the heart is then on the other side)"},
      {MEMBER(data.rotate_deg),
       .help = "training rotates by a random angle of up to this many "
               "degrees either way",
       .limits = {{0, 45}}},
      {MEMBER(data.scale_jitter),
       .help =
           "training zooms by a random fraction of up to this much either way",
       .limits = {{0, 0.5}}},
      {MEMBER(data.contrast_jitter),
       .help = "training scales contrast around the image's mean by a random "
               "fraction of up to this much either way",
       .limits = {{0, 0.9}}},
      {MEMBER(data.mean),
       .help = "mean of the three input channels on a scale of 0..1"},
      {MEMBER(data.std),
       .help =
           "standard deviation of the three input channels on a scale of 0..1"},
  };
}

// Threads and storage: how fast images come, and in data.pipeline which come
// next. The first four change no bit of a run, so a resume may change them.
std::vector<ConfigOption> loading_options() {
  return {
      {MEMBER(data.workers),
       .help = "loader threads per rank; 0 = images are decoded on the "
               "training thread; auto: one, and one more whenever training "
               "waits for data, up to the rank's cores",
       .limits = {{0, 256}}, .may_change_on_resume = true},
      {MEMBER(data.prefetch),
       .help = "batches decoded ahead; auto: 3 to 8, as many as training "
               "uses up while the slowest recent batch was made",
       .limits = {{0, 64}}, .may_change_on_resume = true},
      {MEMBER(data.readers),
       .help = "reads in flight per rank, ahead of the loader threads; 0 = "
               "loader threads read for themselves; auto: 32 for s3://, else "
               "0",
       .limits = {{0, 1024}}, .may_change_on_resume = true},
      {MEMBER(data.stage),
       .help = "copy packs, shards and archives to a local disk, once per "
               "node: off, auto or a folder; auto: only from network file "
               "systems and s3://, to the first of $SLURM_TMPDIR, $TMPDIR "
               "and /tmp that has room",
       .is_path = true, .may_change_on_resume = true},
      {MEMBER(data.pipeline),
       .help = "order of training images: global (one permutation of all "
               "images per epoch, the same on any number of ranks); new or "
               "old (the pipelines of Dell's article, over TFRecord shards; "
               "old decodes every image on every rank)"},
      {MEMBER(data.cycle_length),
       .help = "data.pipeline new: files that a rank reads in turn",
       .limits = {{1, 1e6}}},
      {MEMBER(data.shuffle_files),
       .help = "data.pipeline new: shuffle a rank's files before each epoch"},
      {MEMBER(data.shuffle_records),
       .help =
           "data.pipeline new and old: records in the shuffle buffer; 0 = off",
       .limits = {{0, 1e9}}},
  };
}

// Object stores. No secret has a key here: a config ends up in every run
// folder and log.
std::vector<ConfigOption> s3_options() {
  return {
      {MEMBER(data.s3.endpoint),
       .help = "URL of an S3-compatible server (buckets are part of the "
               "path); empty = AWS_ENDPOINT_URL, else AWS",
       .may_change_on_resume = true},
      {MEMBER(data.s3.region),
       .help = "region that requests are signed for; empty = AWS_REGION, "
               "else the profile's, else us-east-1",
       .may_change_on_resume = true},
      {MEMBER(data.s3.profile),
       .help = "profile of ~/.aws/credentials; empty = AWS_ACCESS_KEY_ID and "
               "AWS_SECRET_ACCESS_KEY, else AWS_PROFILE, else default; "
               "secret keys never appear in a config",
       .may_change_on_resume = true},
      {MEMBER(data.s3.instance_metadata),
       .help = "ask the cloud machine's metadata service for credentials "
               "when there are no others",
       .may_change_on_resume = true},
      {MEMBER(data.s3.attempts),
       .help = "attempts per request when the failure may pass (5xx, 429, "
               "reset, cut short, stalled)",
       .limits = {{1, 100}}, .may_change_on_resume = true},
      {MEMBER(data.s3.timeout_s),
       .help = "seconds without a byte after which a request counts as stalled",
       .limits = {{1, 3600}}, .may_change_on_resume = true},
  };
}

// Damaged images, failing reads and hostile headers.
std::vector<ConfigOption> fault_options() {
  return {
      {MEMBER(data.corrupt),
       .help = "what follows from a damaged image (it cannot be decoded, or "
               "its checksum is wrong): fail (all ranks stop and name it) or "
               "skip (it counts as not labeled, and is logged)",
       .may_change_on_resume = true},
      {MEMBER(data.corrupt_limit),
       .help =
           "data.corrupt skip: largest fraction of damaged images in an epoch "
           "(counted from its start, or from the resume), in a split that is "
           "scored, and in a pack; more of them, or a step of nothing else, "
           "end the run. One image is always allowed, unless this is 0",
       .limits = {{0, 1}}, .may_change_on_resume = true},
      {MEMBER(data.retry_s),
       .help = "seconds for which a failed read is tried again when the "
               "failure may pass (EIO, a stale handle, a lost mount); then "
               "the run ends with exit code 9. Less than launch.timeout_s. "
               "For s3:// see data.s3.attempts",
       .limits = {{0, 1e6}}, .may_change_on_resume = true},
      {MEMBER(data.max_pixels),
       .help = "largest width x height accepted; checked on an image's "
               "header before memory is taken",
       .limits = {{1, 1e10}}, .may_change_on_resume = true},
  };
}

}  // namespace

// The order of the topics is the order of docs/config.md.
std::vector<ConfigOption> data_table() {
  return joined({manifest_options(), choice_options(), label_options(),
                 image_options(), loading_options(), s3_options(),
                 fault_options()});
}

}  // namespace chexnet
