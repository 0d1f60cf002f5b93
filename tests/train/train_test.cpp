#include <ATen/ATen.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "chexnet/core/error.hpp"
#include "chexnet/model/weights.hpp"
#include "chexnet/run/dataset.hpp"
#include "chexnet/run/schedule.hpp"
#include "chexnet/run/stop_request.hpp"
#include "chexnet/run/train_state.hpp"
#include "chexnet/train/auto_batch.hpp"
#include "chexnet/train/network_state.hpp"
#include "chexnet/train/optimizer.hpp"
#include "chexnet/train/start.hpp"
#include "chexnet/train/step.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/parity_run.hpp"

using namespace chexnet;

TEST_CASE("the learning rate follows scaling and schedule in images") {
  TrainConfig c;
  c.lr = 1;
  c.lr_base_batch = 16;
  c.epochs = 10;
  const Plateau flat;
  const auto rate = [&](std::uint64_t position) {
    return learning_rate(c, 64, position, 640, flat);
  };
  CHECK(rate(3200) == 1);
  c.lr_scaling = LrScaling::kLinear;
  CHECK(rate(3200) == 4);
  c.lr_scaling = LrScaling::kSqrt;
  CHECK(rate(3200) == 2);
  c.lr_scaling = LrScaling::kNone;
  c.schedule = ScheduleKind::kCosine;
  CHECK(rate(0) == 1);
  CHECK(rate(3200) == Approx(0.5));
  CHECK(rate(6400) == Approx(0).margin(1e-15));
  c.schedule = ScheduleKind::kStep;
  c.step_epochs = 3;
  c.step_factor = 0.1;
  CHECK(rate(3 * 640 - 64) == Approx(1));
  CHECK(rate(3 * 640) == Approx(0.1));
  CHECK(rate(6 * 640) == Approx(0.01));
  c.schedule = ScheduleKind::kPlateau;
  CHECK(learning_rate(c, 64, 2560, 640, Plateau{.factor = 0.25}) == 0.25);
}

TEST_CASE("warm-up starts above 0, ends at the full rate, and schedules count from its end") {
  TrainConfig c;
  c.lr = 1;
  c.epochs = 10;
  c.warmup_epochs = 2;
  const Plateau flat;
  const auto rate = [&](std::uint64_t position) {
    return learning_rate(c, 64, position, 640, flat);
  };
  CHECK(rate(0) == 0.05);
  CHECK(rate(64) == 0.1);
  CHECK(rate(1280 - 64) == 1);
  CHECK(rate(1280) == 1);
  c.schedule = ScheduleKind::kCosine;
  CHECK(rate(1280) == Approx(1));
  CHECK(rate(1280 + 2560) == Approx(0.5));
  CHECK(rate(6400) == Approx(0).margin(1e-15));
  c.schedule = ScheduleKind::kStep;
  c.step_epochs = 3;
  c.step_factor = 0.1;
  CHECK(rate(5 * 640 - 64) == Approx(1));
  CHECK(rate(5 * 640) == Approx(0.1));

  c.schedule = ScheduleKind::kConstant;
  c.warmup_epochs = 0.05;  // half a batch: over within the first step
  CHECK(rate(0) == 1);
  c.warmup_epochs = 0.15;  // one and a half
  CHECK(rate(0) == Approx(2.0 / 3));
  CHECK(rate(64) == 1);

  c.schedule = ScheduleKind::kStep;
  c.warmup_epochs = 0.1;
  c.step_epochs = 0.3;  // 0.4 - 0.1 is a little less than 0.3 in binary
  CHECK(rate(256) == Approx(0.1));
}

TEST_CASE("a plateau lowers the rate when the loss stops falling") {
  TrainConfig c;
  c.plateau_patience = 2;
  c.plateau_factor = 0.1;
  Plateau p;
  CHECK_FALSE(p.observe(1.0, c));
  CHECK_FALSE(p.observe(0.9, c));
  CHECK_FALSE(p.observe(0.9, c));  // not lower by 1e-4
  CHECK(p.observe(0.89999, c));    // still not
  CHECK(p.factor == Approx(0.1));
  CHECK_FALSE(p.observe(0.8, c));
  CHECK(p.best == 0.8);
  CHECK_FALSE(p.observe(NAN, c));  // counts as no progress
  CHECK(p.observe(NAN, c));
}

TEST_CASE("steps and epochs are counted in images") {
  TrainConfig c;
  c.epochs = 15;
  CHECK(total_steps(c, 32, 836) == 392);
  c.max_steps = 20;
  CHECK(total_steps(c, 32, 836) == 20);
  c.epochs = 0;
  CHECK(total_steps(c, 32, 836) == 20);
  CHECK(epochs_complete(26, 32, 836) == 0);
  CHECK(epochs_complete(27, 32, 836) == 1);
  CHECK(epochs_complete(392, 32, 836) == 15);
}

TEST_CASE("optimizers follow their formulas, and only weights decay") {
  for (const auto kind : {OptimizerKind::kAdam, OptimizerKind::kAdamW, OptimizerKind::kSgd}) {
    INFO(choice_name(kind));
    Network network(network_spec("densenet121"), 14, {.precision = Precision::kFp64});
    Parameters& p = network.parameters();
    p.initialize(1);
    TrainConfig c;
    c.optimizer = kind;
    c.weight_decay = 0.1;
    Optimizer optimizer(c, p, p.size());
    at::Tensor decay = at::zeros_like(p.flat_values());
    for (const auto& q : p.list())
      if (q.is_weight) decay.narrow(0, q.begin, q.end - q.begin).fill_(c.weight_decay);
    at::Tensor value = p.flat_values().clone(), m = at::zeros_like(value),
               v = at::zeros_like(value);
    for (int t = 1; t <= 3; ++t) {
      const double lr = 0.01 * t;
      at::Tensor gradient = at::sin(at::arange(value.numel(), at::kDouble) * t);
      at::Tensor target = p.flat_gradients();
      target.copy_(gradient);
      optimizer.step(lr);
      if (kind == OptimizerKind::kSgd) {
        gradient = gradient + decay * value;
        m = t == 1 ? gradient : m * c.momentum + gradient;
        value = value - lr * m;
        continue;
      }
      if (kind == OptimizerKind::kAdamW)
        value = value * (1 - lr * decay);
      else
        gradient = gradient + decay * value;
      m = m * c.beta1 + gradient * (1 - c.beta1);
      v = v * c.beta2 + gradient.square() * (1 - c.beta2);
      value = value - lr * (m / (1 - std::pow(c.beta1, t))) /
                          ((v / (1 - std::pow(c.beta2, t))).sqrt() + c.eps);
    }
    CHECK((value - p.flat_values()).abs().max().item<double>() < 1e-12);
  }
}

TEST_CASE("a gradient that is not finite changes nothing and says so") {
  Network network(network_spec("densenet121"), 14, {});
  network.parameters().initialize(1);
  const auto comm = solo_communicator();
  TrainStep step(network, *comm, {TrainConfig{}, equal_weights()});
  at::Tensor labels = parity_labels(0);
  labels[0][0] = INFINITY;  // a value no manifest lets through
  const at::Tensor before = network.parameters().flat_values().clone(),
                   running = network.parameters().flat_running().clone();
  const auto result = step.run(parity_images(0), labels, 84, 1e-3);
  CHECK_FALSE(result.applied);
  CHECK(at::equal(network.parameters().flat_values(), before));
  CHECK(at::equal(network.parameters().flat_running(), running));
}

TEST_CASE("clipping bounds the update's gradient") {
  TrainConfig c;
  c.optimizer = OptimizerKind::kSgd;
  c.momentum = 0;
  c.clip_norm = 1e-3;
  Network network(network_spec("densenet121"), 14, {.precision = Precision::kFp64});
  network.parameters().initialize(1);
  const auto comm = solo_communicator();
  TrainStep step(network, *comm, {c, equal_weights()});
  const at::Tensor before = network.parameters().flat_values().clone();
  const auto result = step.run(parity_images(0), parity_labels(0), 84, 1.0);
  CHECK(result.gradient_norm > 1e-3);
  CHECK(at::linalg_vector_norm(network.parameters().flat_values() - before).item<double>() ==
        Approx(1e-3).epsilon(1e-6));
}

TEST_CASE("the fp16 loss scale halves on overflow and doubles after 2,000 good steps") {
  LossScale s = LossScale::for_fp16();
  s.overflowed();
  CHECK(s.value == 32768);
  for (int i = 0; i < 2000; ++i) s.succeeded();
  CHECK(s.value == 65536);
  LossScale fixed_scale;
  for (int i = 0; i < 3000; ++i) fixed_scale.succeeded();
  CHECK(fixed_scale.value == 1);
}

TEST_CASE("the state of a run survives JSON") {
  TrainState s;
  s.step = 7;
  s.position = 224;
  s.plateau = {0.1, 0.123456789012345678, 2};
  s.loss_scale = {1024, 5, true};
  s.best = 0.7;
  s.order = {2, 3, "none", "torch"};
  s.config = "a: \"b\"\n";
  s.best_step = 6;
  s.best_epoch = 2;
  s.epochs_without_best = 3;
  s.validation_sha256 = "aa";
  s.evaluation_due = true;
  s.origin = "from B\xe9.safetensors";  // not UTF-8
  const TrainState t = TrainState::from_json(s.to_json(), "x");
  CHECK((t.step == 7 && t.position == 224 && t.plateau.best == s.plateau.best &&
         t.loss_scale.good == 5 && t.best == 0.7));
  CHECK((t.order.ranks == 2 && t.config == s.config));
  CHECK((t.best_step == 6 && t.best_epoch == 2 && t.epochs_without_best == 3));
  CHECK((t.validation_sha256 == "aa" && t.evaluation_due && !t.complete));
  CHECK(t.origin == "from B\xef\xbf\xbd.safetensors");
  CHECK(std::isnan(TrainState::from_json(TrainState{}.to_json(), "x").best));
  CHECK(std::isinf(TrainState::from_json(TrainState{}.to_json(), "x").plateau.best));
  CHECK(error_of<CheckpointError>([] { TrainState::from_json("{}", "folder"); }).find("folder") !=
        std::string::npos);
}

TEST_CASE("a checkpoint that was evaluated with another center crop is refused") {
  const ScratchFolder folder;
  Network network(network_spec("densenet121"), 1, {});
  network.parameters().initialize(1);
  Dataset dataset;
  dataset.manifest.findings = {"A"};
  Config config;
  config.data.resize = 35;
  config.data.crop = 32;
  const auto error_with_begin = [&](int begin) {
    auto description = nlohmann::json::parse(model_description(config, dataset));
    description["preprocessing"]["eval_crop_begin"] = begin;
    save_weights(folder / "model.safetensors", network.parameters(), 1,
                 {{"format", "pt"}, {"chexnet", description.dump()}});
    return error_of<CheckpointError>(
        [&] { read_network(folder / "model.safetensors", config, {"A"}, network.parameters()); });
  };
  CHECK(error_with_begin(2).empty());
  CHECK(error_with_begin(1).find("\"eval_crop_begin\":1") != std::string::npos);
}

TEST_CASE("another validation split starts best, plateau and early stop afresh, not the rate") {
  TrainState s;
  s.epoch = 5;
  s.best = 0.7;
  s.best_step = 40;
  s.epochs_without_best = 3;
  s.plateau = {.factor = 0.1, .best = 0.4, .bad = 1};
  s.forget_validation();
  CHECK(std::isnan(s.best));
  CHECK((s.best_step == -1 && s.best_epoch == 5 && s.epochs_without_best == 0));
  CHECK((s.plateau.factor == 0.1 && std::isinf(s.plateau.best) && s.plateau.bad == 0));
}

TEST_CASE("all that validation scores depend on is in one sum") {
  const auto sum = [](const auto& change) {
    Config config;
    Dataset dataset;
    Manifest& m = dataset.manifest;
    m.findings = {"A", "B"};
    m.images = {"x", "y"};
    m.labels = {1, 0, 0, NAN};
    dataset.splits.val.rows = {1};
    change(config, dataset);
    return validation_sha256(config, dataset);
  };
  const std::string plain = sum([](Config&, Dataset&) {});
  const auto same = [&](const auto& change) { return sum(change) == plain; };
  CHECK(same([](Config& c, Dataset&) { c.eval.batch = c.eval.threads = 7; }));
  CHECK(same([](Config& c, Dataset&) { c.eval.findings = {"A", "B"}; }));
  CHECK(same([](Config&, Dataset& d) { d.manifest.labels[0] = 0; }));  // not of the split
  CHECK_FALSE(same([](Config&, Dataset& d) { d.manifest.labels[2] = 1; }));
  CHECK_FALSE(same([](Config&, Dataset& d) { d.manifest.labels[3] = 0; }));
  CHECK_FALSE(same([](Config&, Dataset& d) { d.manifest.scored = {1, 0, 0, 0}; }));
  CHECK_FALSE(same([](Config&, Dataset& d) { d.splits.val.sha256 = "another"; }));
  CHECK_FALSE(same([](Config& c, Dataset&) { c.eval.findings = {"B"}; }));
  CHECK_FALSE(same([](Config& c, Dataset&) { c.checkpoint.best = BestBy::kLoss; }));
}

TEST_CASE("a complete run has nothing left unless it is asked for more steps") {
  Config config;
  config.train.epochs = 3;
  config.train.early_stop_epochs = 2;
  TrainState s;
  s.step = 30;
  CHECK_FALSE(nothing_left(s, config, 10, 100));  // eval.splits are still to be scored
  s.complete = true;
  CHECK(nothing_left(s, config, 10, 100));
  config.train.epochs = 4;
  CHECK_FALSE(nothing_left(s, config, 10, 100));
  s.epochs_without_best = 2;  // it had stopped early
  CHECK(nothing_left(s, config, 10, 100));
}

TEST_CASE("what cannot be finished in the time of the job is not begun") {
  const ScratchFolder scratch;
  const auto solo = solo_communicator();
  Config config;
  config.run.dir = (scratch / "run").string();
  config.launch.time_limit = "100:00:00";
  config.launch.stop_margin_s = 3600;
  const RunFolder folder(config, Resume::kNo, *solo);
  StopRequest stop(config, folder, true);
  CHECK_FALSE(stop.asked(0));
  CHECK_FALSE(stop.asked(10 * 3600));
  CHECK(stop.asked(99.5 * 3600));  // an evaluation that takes as long
  CHECK(StopRequest(config, folder, false).asked(99.5 * 3600) == false);  // rank 0 knows the time
  scratch.write("run/STOP", "");
  CHECK(stop.asked(0));
  CHECK(stop.stopped(3, nullptr) == ExitCode::kRequeue);
}

TEST_CASE("the automatic batch is the largest whose memory plan fits") {
  const auto solo = solo_communicator();
  Network network(network_spec("densenet121"), 14, {});
  Config config;
  config.data.crop = 64;
  const std::uint64_t memory = std::uint64_t{1} << 30;
  const std::int64_t batch = auto_batch(config, network, *solo, 1'000'000, memory);
  CHECK(batch > 16);
  CHECK(*network.planned_bytes(batch, 64) < memory);
  CHECK(*network.planned_bytes(batch + batch / 4, 64) > memory / 2);
  CHECK(auto_batch(config, network, *solo, 1'000'000, 2 * memory) > batch);
  CHECK(auto_batch(config, network, *solo, 10, memory) == 10);
  config.train.accumulate = 4;
  CHECK(auto_batch(config, network, *solo, 1'000'000, memory) % 4 == 0);
  CHECK(error_of<ConfigError>([&] {
          auto_batch(config, network, *solo, 100, 1'000'000);
        }).find("not even one image") != std::string::npos);
}
