#include "option_table.hpp"

namespace chexnet {
namespace {

constexpr double kBelowOne = 0.999999;

// The network and where its weights come from.
std::vector<ConfigOption> model_options() {
  return {
      {
          MEMBER(model.arch),
          .help = "network",
          .tier = Tier::kCommon,
      },
      {
          MEMBER(model.weights),
          .help = "initial weights (required: no silent default): a "
                  ".safetensors file with the names of torchvision, timm, "
                  "torchxrayvision or a CheXNet reproduction, or none for a "
                  "random start",
          .is_path = true,
          .tier = Tier::kCommon,
      },
      {
          MEMBER(model.sync_batchnorm),
          .help =
              "take batch statistics over all ranks, so that a config means "
              "the same on any number of them; false: a BatchNorm sees the "
              "train.batch / (ranks x train.accumulate) images of its rank",
          .tier = Tier::kCommon,
      },
      {
          MEMBER(model.freeze_until),
          .help = "parts that are not trained, from the stem up to this one: "
                  "block1 to block3 (a ResNet's layer1 to layer3) with the "
                  "transition after it, or backbone: all but the classifier. "
                  "They have no backward pass, and their BatchNorms use the "
                  "running statistics of model.weights, which stay as they are",
      },
      {
          MEMBER(model.freeze_epochs),
          .help = "after so many epochs what model.freeze_until names is "
                  "trained, too, with an optimizer state of its own that "
                  "starts then; 0 = never",
          .limits = {{0, 1e6}},
      },
      {
          MEMBER(model.memory),
          .help =
              "speed or recompute: a GPU computes BatchNorm's results again in "
              "the backward pass instead of keeping them. The bits stay the "
              "same, 2.7 times the images of DenseNet-121 fit (1.2 times "
              "ResNet-50's), and its step moves a sixth more bytes "
              "(ResNet-50's 4 %). CPUs take no notice: they never keep them",
          .effect = Effect::kNone,
      },
  };
}

// Images per step, and how long a run goes on.
std::vector<ConfigOption> length_options() {
  return {
      {
          MEMBER(train.batch),
          .help =
              "images per optimizer step, all ranks together; auto: the most "
              "that fit the memory that is free, by our own engine's plan or, "
              "on GPUs, by measuring steps, so another machine or day gets "
              "another batch (a resume keeps the run's)",
          .limits = {{1, 1e7}},
          .tier = Tier::kCommon,
      },
      {
          MEMBER(train.epochs),
          .help = "passes over the training images",
          .limits = {{0, 1e6}},
          .effect = Effect::kOtherResults,
          .tier = Tier::kCommon,
      },
      {
          MEMBER(train.max_steps),
          .help = "stop after this many steps; 0 = no limit",
          .limits = {{0, kNoMaximum}},
          .effect = Effect::kOtherResults,
      },
  };
}

// The optimizer and its rate. A change of the fixed ones would make the rest of
// a run another run.
std::vector<ConfigOption> optimizer_options() {
  return {
      {MEMBER(train.optimizer), .help = "optimizer", .tier = Tier::kCommon},
      {
          MEMBER(train.lr),
          .help = "learning rate for train.lr_base_batch images",
          .limits = {{0, 1e3}},
          .tier = Tier::kCommon,
      },
      {
          MEMBER(train.lr_scaling),
          .help = "how the learning rate grows with "
                  "train.batch / train.lr_base_batch",
      },
      {
          MEMBER(train.lr_base_batch),
          .help = "batch that train.lr is meant for, images",
          .limits = {{1, 1e7}},
      },
      {
          MEMBER(train.head_lr_factor),
          .help = "the classifier's rate is the others' x this",
          .limits = {{1e-9, 1e6}},
      },
      {
          MEMBER(train.layer_decay),
          .help = "the rate of a part is x this for each part between it and "
                  "the classifier: of block4 once, block3 twice, the stem "
                  "five times",
          .limits = {{1e-9, 1}},
      },
      {
          MEMBER(train.warmup_epochs),
          .help =
              "epochs of linear warm-up: the rate of a step is the full one "
              "x (images seen at its end / images of the warm-up)",
          .limits = {{0, 1e6}},
          .tier = Tier::kCommon,
      },
      {
          MEMBER(train.schedule),
          .help = "the rate after warm-up, counted from its end: constant; "
                  "plateau (x train.decay_factor when the validation loss "
                  "stops falling); cosine (to 0 at train.epochs); step (x "
                  "train.decay_factor every train.step_epochs)",
          .tier = Tier::kCommon,
      },
      {
          MEMBER(train.decay_factor),
          .help = "train.schedule plateau and step: factor on the rate",
          .limits = {{0, 1}},
      },
      {
          MEMBER(train.plateau_patience),
          .help =
              "evaluations without a lower loss (by 0.01 %) that count as a "
              "plateau; those of the warm-up, its end included, are neither "
              "counted nor compared with; PyTorch's ReduceLROnPlateau counts "
              "one more",
          .limits = {{1, 1e6}},
      },
      {
          MEMBER(train.step_epochs),
          .help = "train.schedule step: epochs between two steps of the rate; "
                  "the first comes this long after the warm-up",
          .limits = {{1e-9, 1e6}},
      },
  };
}

// Further parameters of an optimizer's update.
std::vector<ConfigOption> update_options() {
  return {
      {
          MEMBER(train.weight_decay),
          .help = "decay of weights (never of BatchNorm and bias): L2 in the "
                  "gradient for adam and sgd, decoupled for adamw",
          .limits = {{0, 10}},
      },
      {
          MEMBER(train.momentum),
          .help = "sgd: momentum",
          .limits = {{0, 1}},
      },
      {
          MEMBER(train.betas),
          .help = "adam: decay of the first and of the second moment",
          .limits = {{0, kBelowOne}},
      },
      {
          MEMBER(train.eps),
          .help = "adam: epsilon",
          .limits = {{0, 1}},
      },
      {
          MEMBER(train.clip_norm),
          .help = "largest global norm of the gradient; a larger one is scaled "
                  "down to it; 0 = off",
          .limits = {{0, 1e9}},
      },
  };
}

// How one step is computed.
std::vector<ConfigOption> step_options() {
  return {
      {
          MEMBER(train.accumulate),
          .help =
              "micro-batches per rank and step, whose gradients are added up",
          .limits = {{1, 1e5}},
          .effect = Effect::kOtherResults,
      },
      {
          MEMBER(train.precision),
          .help = "auto: bf16 on GPUs from sm_80, fp16 with loss scaling on "
                  "older ones, fp32 on CPU. tf32 lets GPUs from sm_80 round "
                  "factors "
                  "to 10 bits, PyTorch's default for convolutions; fp32 never "
                  "does. bf16 needs sm_80 on a GPU",
          .tier = Tier::kCommon,
      },
      {
          MEMBER(train.deterministic),
          .help =
              "on GPUs: true takes only kernels that add up in one order, so "
              "that a repeated or resumed run is equal bit for bit on the same "
              "kind of GPU; false takes the fastest. On CPUs results are "
              "always repeatable",
          .effect = Effect::kOtherResults,
      },
      {
          MEMBER(train.record_step),
          .help =
              "auto: a GPU gets a step's thousand kernels as one launch (a "
              "CUDA graph), after three steps and a comparison with steps "
              "launched kernel by kernel, which end with the same bits; where "
              "that fails, a warning says so and steps are launched as with "
              "off: kernel by kernel, with more memory left for evaluations. "
              "on: a GPU's failure is an error. CPUs take no notice",
          .effect = Effect::kNone,
      },
      {
          MEMBER(train.engine),
          .help = "auto: our own engine on CPU; on GPUs, and for fp16, ATen's "
                  "operators (LibTorch), on GPUs with kernels of our own for "
                  "BatchNorm, pooling and ReLU's gradient; direct: the same, "
                  "but our own 3x3 convolutions are plain sums, which round "
                  "less in fp32 than Winograd's algorithm; aten: ATen's "
                  "operators everywhere",
      },
  };
}

// The objective: the loss, and the images that it is of.
std::vector<ConfigOption> objective_options() {
  return {
      {
          MEMBER(train.loss),
          .help =
              "bce: binary cross-entropy; focal: entries that are scored well "
              "count less (Lin et al., 2017, without alpha); asymmetric: "
              "negatives alone, and none below a probability of 0.05 "
              "(Ridnik et al., 2021). Both move probabilities away from "
              "prevalence",
      },
      {
          MEMBER(train.loss_gamma),
          .help = "of focal and asymmetric: exponents for positives and for "
                  "negatives; empty: [2, 2] and [0, 4], as published",
      },
      {
          MEMBER(train.class_weights),
          .help =
              "none (as for CheXNet's 14 findings); pos_weight: positives x "
              "negatives/positives of the training split; balanced: positives "
              "x |N|/(|P|+|N|) and negatives x |P|/(|P|+|N|), as the CheXNet "
              "paper weighs pneumonia. Weights move probabilities away from "
              "prevalence",
      },
      {
          MEMBER(train.sampling),
          .help =
              "uniform: every training image once an epoch; rare_first: images "
              "are drawn with a frequency that grows with 1 / sqrt(share) of "
              "their rarest finding, as many as there are. It shifts "
              "probabilities as weighted losses do",
      },
      {
          MEMBER(train.mixup),
          .help =
              "train on mixtures of two images and of their labels, by a "
              "share drawn from Beta(x, x) (0.2 is common); decodes twice as "
              "many images; 0 = off",
          .limits = {{0, 1}},
      },
      {
          MEMBER(train.ema),
          .help =
              "decay of the exponential moving average of the weights, e.g. "
              "0.999 (an average over about 1 / (1 - decay) steps; less at "
              "the start). With it evaluation, the best checkpoint, model "
              "files and predict use the averaged weights; 0 = off",
          .limits = {{0, 0.999999}},
          .tier = Tier::kCommon,
      },
      {
          MEMBER(train.label_smoothing),
          .help = "labels of 1 and 0 count as 1 - x / 2 and x / 2 in training",
          .limits = {{0, 0.9}},
      },
      {
          MEMBER(train.order_file),
          .help = "train on exactly these images in this order, one name per "
                  "line, over and over, without augmentation (for parity "
                  "checks)",
          .is_path = true,
          .tier = Tier::kHidden,
      },
  };
}

// The reaction when a step fails, ranks differ or an epoch stops helping.
std::vector<ConfigOption> failure_options() {
  return {
      {
          MEMBER(train.not_finite),
          .help = "what follows from a gradient that is not finite: fail (exit "
                  "code 6) or skip (the step is left out; 10 in a row fail)",
      },
      {
          MEMBER(train.verify_every),
          .help = "compare the weights of all ranks, bit for bit, after every "
                  "so many steps and before each checkpoint: a rank whose "
                  "memory, processor or GPU changed a bit is named, and the "
                  "run goes back to its last checkpoint (exit code 5); 0 = "
                  "never",
          .limits = {{0, 1e9}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(train.early_stop_epochs),
          .help = "stop at an evaluation when checkpoint.best has not improved "
                  "for this many epochs; 0 = off",
          .limits = {{0, 1e6}},
          .effect = Effect::kOtherResults,
      },
      {
          MEMBER(train.rungs),
          .help = "of a run in the folder of a sweep: epochs after which it "
                  "ends unless checkpoint.best is among the best third of the "
                  "runs there that came so far. `submit --stop-losers` sets it",
          .limits = {{1, 1e6}},
          .effect = Effect::kOtherResults,
      },
  };
}

}  // namespace

// The order of the topics is the order of docs/config.md.
std::vector<ConfigOption> train_table() {
  return joined({model_options(), length_options(), optimizer_options(),
                 update_options(), step_options(), objective_options(),
                 failure_options()});
}

}  // namespace chexnet
