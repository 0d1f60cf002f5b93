#include "chexnet/train/run/recipe.hpp"

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("a BatchNorm sees the images of its rank's micro-batch") {
  Config config;
  CHECK(batchnorm_text(config, 64, 1) == "64 images of its rank");
  CHECK(batchnorm_text(config, 64, 4) == "16 images of its rank");
  config.train.accumulate = 2;
  CHECK(batchnorm_text(config, 64, 4) == "8 images of its rank");
}

TEST_CASE("a synchronized BatchNorm sees the micro-batches of all ranks") {
  Config config;
  config.model.sync_batchnorm = true;
  CHECK(batchnorm_text(config, 64, 1) == "64 images (synchronized)");
  CHECK(batchnorm_text(config, 64, 4) == "64 images (synchronized)");
  config.train.accumulate = 2;
  CHECK(batchnorm_text(config, 64, 4) == "32 images (synchronized)");
}

TEST_CASE(
    "a resume is warned of where BatchNorms see other numbers of images") {
  Config config;
  config.train.accumulate = 2;
  const auto effect = [&](const SummationOrder& before) {
    return resume_effect_text(
        batchnorm_change(config, 64, before, {.ranks = 4, .accumulate = 2}));
  };
  CHECK(effect({.ranks = 8, .accumulate = 1}).find("sums round differently") !=
        std::string::npos);
  const std::string other = effect({.ranks = 4, .accumulate = 1});
  CHECK(other.find("over 8 images, and did over 16") != std::string::npos);
  CHECK(other.find("sums round") == std::string::npos);
}

TEST_CASE("a frozen backbone's BatchNorms see nothing of a batch") {
  Config config;
  config.model.freeze_until = FrozenPart::kBackbone;
  config.model.sync_batchnorm = true;
  CHECK(batchnorm_text(config, 64, 4) ==
        "running statistics, which stay (frozen backbone)");
}

TEST_CASE("a weighted loss says that scores are then no probabilities") {
  TrainConfig config;
  CHECK(loss_text(config) == "unweighted binary cross-entropy");
  for (const auto weighting :
       {LossWeighting::kPosWeight, LossWeighting::kBalanced}) {
    config.class_weights = weighting;
    const std::string text = loss_text(config);
    CHECK(text.find(choice_name(weighting)) != std::string::npos);
    CHECK(text.find("no probabilities") != std::string::npos);
  }
}

TEST_CASE("a loss is told with what it was made of") {
  TrainConfig config;
  config.loss = LossKind::kFocal;
  CHECK(loss_text(config).starts_with("focal loss, exponents 2 and 2: scores"));
  config.loss = LossKind::kAsymmetric;
  config.class_weights = LossWeighting::kBalanced;
  config.loss_gamma = {1, 3.5};
  CHECK(loss_text(config).starts_with(
      "asymmetric loss, exponents 1 and 3.5, margin 0.05, weights balanced: "));
}

TEST_CASE("a training that moves scores is told") {
  CHECK_FALSE(moves_scores({}));
  TrainConfig config;
  config.loss = LossKind::kFocal;
  CHECK(moves_scores(config));
  config = {};
  config.sampling = SamplingKind::kRareFirst;
  CHECK(moves_scores(config));
  config = {};
  config.class_weights = LossWeighting::kBalanced;
  CHECK(moves_scores(config));
}

TEST_CASE("settings that ask for the same run are told") {
  Config config;
  config.train.batch = config.train.lr_base_batch = 32;
  const std::string text = recipe_text(config);
  const auto is_other = [&](auto&& change) {
    Config other = config;
    change(other.train);
    return recipe_text(other) != text;
  };
  CHECK_FALSE(
      is_other([](TrainConfig& t) { t.lr_scaling = LrScaling::kSqrt; }));
  CHECK_FALSE(is_other([](TrainConfig& t) { t.momentum = 0.5; }));
  const auto focal = [&](const Doubles& gamma) {
    Config other = config;
    other.train.loss = LossKind::kFocal;
    other.train.loss_gamma = gamma;
    return recipe_text(other);
  };
  CHECK(focal({}) != text);
  CHECK(focal({2, 2}) == focal({}));  // as published
  CHECK(focal({2, 3}) != focal({}));
  CHECK_FALSE(is_other([](TrainConfig& t) { t.step_epochs = 3; }));
  CHECK_FALSE(is_other([](TrainConfig& t) { t.decay_factor = 0.5; }));
  CHECK_FALSE(is_other([](TrainConfig& t) { t.plateau_patience = 3; }));
  CHECK(is_other([](TrainConfig& t) {
    t.lr_scaling = LrScaling::kSqrt;
    t.lr_base_batch = 16;
  }));
  CHECK(is_other([](TrainConfig& t) { t.betas[0] = 0.5; }));
  CHECK(is_other([](TrainConfig& t) { t.precision = Precision::kFp32; }));
  Config fp32 = config;
  fp32.launch.device = DeviceKind::kCpu;
  Config automatic = fp32;
  fp32.train.precision = Precision::kFp32;
  CHECK(recipe_text(fp32) == recipe_text(automatic));
  Config buckets = config;
  buckets.launch.bucket_mb = 25;
  buckets.launch.gradient_compression = GradientCompression::kBf16;
  CHECK(recipe_text(buckets) != text);
  Config alone = config;
  alone.launch.ranks = buckets.launch.ranks = 1;
  CHECK(recipe_text(buckets) == recipe_text(alone));
  Config cropped = config;
  cropped.data.crop_area_min = 0.5;
  cropped.data.eval_resize = cropped.data.resize;
  cropped.data.images = {"./x", "y/"};
  cropped.data.manifest.path = {"./a//t.csv"};
  cropped.data.train_list = "./train.txt";
  cropped.model.weights = "w/./x.safetensors";
  config.data.images = {"x", "y"};
  config.data.manifest.path = {"a/t.csv"};
  config.data.train_list = "train.txt";
  config.model.weights = "w/x.safetensors";
  CHECK(recipe_text(cropped) == recipe_text(config));
  cropped.data.images = {"link/../x", "y"};  // may be another x
  CHECK(recipe_text(cropped) != recipe_text(config));
  config.data.images.clear();
  cropped = config;
  cropped.data.train_crop = TrainCrop::kResized;
  Config smaller = cropped;
  smaller.data.crop_area_min = 0.5;
  CHECK(recipe_text(smaller) != recipe_text(cropped));
  Config listed = config;
  listed.data.val_list = "val.txt";
  Config other = listed;
  other.data.val_fraction = 0.3;
  CHECK(recipe_text(other) == recipe_text(listed));
  config.train.batch.reset();  // auto: the rate follows what the ranks choose
  CHECK(recipe_text(config) != text);
  CHECK(is_other([](TrainConfig& t) { t.lr_scaling = LrScaling::kSqrt; }));
}
