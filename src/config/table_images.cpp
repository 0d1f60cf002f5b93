#include "option_table.hpp"

namespace chexnet {
namespace {

// From file to network input: the fixed steps.
std::vector<ConfigOption> image_options() {
  return {
      {
          MEMBER(data.resize),
          .help = "side of the square an image is resized to, pixels",
          .limits = {{8, 4096}},
          .tier = Tier::kCommon,
      },
      {
          AUTO_MEMBER(data.eval_resize),
          .help = "data.resize in evaluation, pixels; auto: the same",
          .limits = {{8, 4096}},
      },
      {
          MEMBER(data.crop),
          .help =
              "side of the square the network sees, pixels; evaluation takes "
              "the "
              "center, at the place where torchvision's center_crop takes it",
          .limits = {{8, 4096}},
          .tier = Tier::kCommon,
      },
      {
          MEMBER(data.resize_kind),
          .help = "antialias: torchvision's bilinear antialias kernel for "
                  "uint8, bit for bit; area: exact box mean",
      },
      {
          MEMBER(data.jpeg_scale),
          .help =
              "auto: a JPEG much larger than data.resize is decoded at 1/2, "
              "1/4 or 1/8 of its size; off: always at full size, as other "
              "programs do",
      },
  };
}

// The steps that training draws anew for each image of an epoch, then the scale
// of the input.
std::vector<ConfigOption> augmentation_options() {
  return {
      {
          MEMBER(data.train_crop),
          .help = "what training takes of each image: center or random (a "
                  "square of data.crop from the resized image), or resized (a "
                  "random part of data.crop_area_min to 1 of its area and of "
                  "its own shape, resized to data.crop; not from packs)",
      },
      {
          MEMBER(data.crop_area_min),
          .help = "data.train_crop resized: smallest fraction of the area",
          .limits = {{0.01, 1}},
      },
      {
          MEMBER(data.flip),
          .help = "training flips left and right with probability 1/2, as the "
                  "CheXNet paper does (the heart is then on the other side)",
          .tier = Tier::kCommon,
      },
      {
          MEMBER(data.rotate_deg),
          .help = "training rotates by a random angle of up to this many "
                  "degrees either way",
          .limits = {{0, 45}},
      },
      {
          MEMBER(data.zoom),
          .help = "training zooms by a random fraction of up to this much "
                  "either way",
          .limits = {{0, 0.5}},
      },
      {
          MEMBER(data.contrast),
          .help =
              "training scales contrast around the image's mean by a random "
              "fraction of up to this much either way",
          .limits = {{0, 0.9}},
      },
      {
          MEMBER(data.mean),
          .help = "mean of the three input channels on a scale of 0..1",
          .limits = {{-1000, 1000}},
      },
      {
          MEMBER(data.std),
          .help = "standard deviation of the three input channels on a scale "
                  "of 0..1; pixels are divided by it",
          .limits = {{0.001, 1000}},
      },
  };
}

// Threads and storage: how fast images come, and in data.pipeline which come
// next. The first four change no bit of a run, so a resume may change them.
std::vector<ConfigOption> loading_options() {
  return {
      {
          MEMBER(data.workers),
          .help = "loader threads per rank; 0 = images are decoded on the "
                  "training thread; auto: one, and one more whenever training "
                  "waits for data, up to the rank's cores",
          .limits = {{0, 256}},
          .effect = Effect::kNone,
          .tier = Tier::kCommon,
      },
      {
          MEMBER(data.prefetch),
          .help = "batches decoded ahead; auto: 3 to 8, as many as training "
                  "uses up while the slowest recent batch was made",
          .limits = {{0, 64}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(data.readers),
          .help =
              "reads in flight per rank, ahead of the loader threads; 0 = "
              "loader threads read for themselves; auto: 32 for s3://, else "
              "0",
          .limits = {{0, 1024}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(data.stage),
          .help = "copy packs, shards and archives to a local disk, once per "
                  "node: off, auto or a folder; auto: only from network file "
                  "systems and s3://, to the first of $SLURM_TMPDIR, $TMPDIR "
                  "and /tmp that has room",
          .is_path = true,
          .effect = Effect::kNone,
      },
      {
          MEMBER(data.pipeline),
          .help = "order of training images: global (one permutation of all "
                  "images per epoch, the same on any number of ranks); new or "
                  "old (the pipelines of Dell's article, over TFRecord shards; "
                  "old decodes every image on every rank)",
      },
  };
}

// Object stores. No secret has a key here: a config ends up in every run
// folder and log.
std::vector<ConfigOption> s3_options() {
  return {
      {
          MEMBER(data.s3.endpoint),
          .help = "URL of an S3-compatible server (buckets are part of the "
                  "path); empty = AWS_ENDPOINT_URL, else AWS",
          .effect = Effect::kNone,
      },
      {
          MEMBER(data.s3.region),
          .help = "region that requests are signed for; empty = AWS_REGION, "
                  "else the profile's, else us-east-1",
          .effect = Effect::kNone,
      },
      {
          MEMBER(data.s3.profile),
          .help =
              "profile of ~/.aws/credentials; empty = AWS_ACCESS_KEY_ID and "
              "AWS_SECRET_ACCESS_KEY, else AWS_PROFILE, else default; "
              "secret keys never appear in a config",
          .effect = Effect::kNone,
      },
      {
          MEMBER(data.s3.instance_metadata),
          .help = "ask the cloud machine's metadata service for credentials "
                  "when there are no others",
          .effect = Effect::kNone,
      },
      {
          MEMBER(data.s3.attempts),
          .help = "attempts per request when the failure may pass (5xx, 429, "
                  "reset, cut short, stalled)",
          .limits = {{1, 100}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(data.s3.timeout_s),
          .help = "seconds slower than 1 KiB/s after which a request counts as "
                  "stalled",
          .limits = {{1, 3600}},
          .effect = Effect::kNone,
      },
  };
}

// Images that are absent or damaged, failing reads and hostile headers.
std::vector<ConfigOption> fault_options() {
  return {
      {
          MEMBER(data.missing),
          .help =
              "what follows from images of the table that are not below "
              "data.images: fail (before anything is trained) or skip (they "
              "leave their split; how many is said at the start, with the "
              "scores and in the report). A split that would lose all fails",
          .effect = Effect::kOtherResults,
      },
      {
          MEMBER(data.corrupt),
          .help =
              "what follows from a damaged image (it cannot be decoded, or "
              "its checksum is wrong): fail (all ranks stop and name it) or "
              "skip (it counts as not labeled, and is logged). A number skips "
              "up to this fraction of an epoch (from its start or the resume), "
              "a scored split or a pack; skip is 0.01. More, or a step of "
              "nothing else, end the run. One image is always allowed, unless "
              "this is 0",
          .effect = Effect::kOtherResults,
      },
      {
          MEMBER(data.retry_s),
          .help = "seconds for which a failed read is tried again when the "
                  "failure may pass (EIO, a stale handle, a lost mount); then "
                  "the run ends with exit code 9. Less than launch.timeout_s. "
                  "For s3:// see data.s3.attempts",
          .limits = {{0, 1e6}},
          .effect = Effect::kNone,
      },
  };
}

}  // namespace

std::vector<ConfigOption> image_table() {
  return joined({image_options(), augmentation_options(), loading_options(),
                 s3_options(), fault_options()});
}

}  // namespace chexnet
