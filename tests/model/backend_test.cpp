#include "chexnet/model/backend.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <stdexcept>
#include <utility>

#include "chexnet/core/profiler.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/train/step.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/forwarding_backend.hpp"
#include "support/parity_run.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;

namespace {

// Where the back end below fails, and what it saw. An empty name: it does not
// fail.
struct Fault {
  std::string parameter;
  bool in_forward = false;
  int failures = 0;
};

// Another back end that fails on purpose: in forward, or at the first gradient
// of a parameter.
class FailingBackend final : public ForwardingBackend {
 public:
  FailingBackend(std::unique_ptr<Backend> inner, const Parameters& parameters,
                 Fault& fault)
      : ForwardingBackend(std::move(inner)),
        parameters_(parameters),
        fault_(fault) {}

  at::Tensor forward(const at::Tensor& images, Mode mode,
                     const MicroBatch& micro_batch) override {
    at::Tensor logits = ForwardingBackend::forward(images, mode, micro_batch);
    if (fault_.in_forward) fail("forward");
    return logits;
  }
  void backward(const at::Tensor& dlogits,
                const MicroBatch& micro_batch) override {
    if (fault_.parameter.empty())
      return ForwardingBackend::backward(dlogits, micro_batch);
    const int64_t begin = parameters_.begin_of(fault_.parameter);
    MicroBatch watched = micro_batch;
    watched.on_ready = [&](int64_t end) {
      if (end > begin) fail(fault_.parameter);
      micro_batch.written(end);
    };
    ForwardingBackend::backward(dlogits, watched);
  }
  std::string description(int64_t, int64_t) override {
    return "fails on purpose";
  }

 private:
  void fail(const std::string& where) {
    ++fault_.failures;
    throw std::runtime_error("failed on purpose at " + where);
  }
  const Parameters& parameters_;
  Fault& fault_;
};

// `inner` with the fault; refuses nothing.
std::vector<BackendEntry> failing(const BackendEntry& inner, Fault& fault) {
  return only_backend([inner, &fault](const BackendContext& context) {
    return std::make_unique<FailingBackend>(inner.make(context),
                                            context.parameters, fault);
  });
}

// Counts what it is asked; computes nothing.
struct Probe final : Backend {
  struct Seen {
    int made = 0, forwards = 0;
    Attachments attached;
  };
  Probe(Seen& seen, std::string name) : seen(seen), name(std::move(name)) {
    ++seen.made;
  }
  at::Tensor forward(const at::Tensor& images, Mode,
                     const MicroBatch&) override {
    ++seen.forwards;
    return at::zeros({images.size(0), 14});
  }
  void backward(const at::Tensor&, const MicroBatch&) override {}
  FeatureForward forward_features(const at::Tensor& images) override {
    return {forward(images, Mode::kInference, {}),
            at::zeros({images.size(0), 32, 1, 1})};
  }
  at::Tensor feature_gradient(const at::Tensor& dlogits) override {
    return at::zeros({dlogits.size(0), 32, 1, 1});
  }
  std::optional<size_t> planned_bytes(int64_t, int64_t) override { return 7; }
  std::string description(int64_t, int64_t) override { return name; }
  bool depends_on_threads() const override { return false; }
  void attach(const Attachments& attachments) override {
    seen.attached = attachments;
  }
  Seen& seen;
  std::string name;
};

at::Tensor images_of(int64_t height, int64_t width) {
  return at::zeros({1, 1, height, width}, at::kByte);
}

TrainStep::Options many_buckets() {
  TrainStep::Options options;
  options.weights = equal_weights();
  // Dozens of buckets: some travel when the fault comes.
  options.bucket_mb = 0.5;
  return options;
}

constexpr double kEntries = kParityBatch * kParityFindings;

}  // namespace

TEST_CASE(
    "the engine computes where it can, and the description says why not where "
    "it cannot") {
  const auto text = [](const NetworkOptions& options, int64_t size) {
    return Network(network_spec("densenet121"), 14, options)
        .description(2, size);
  };
  CHECK(text({}, 64).starts_with("own engine, fp32 by "));
  CHECK(text({.precision = Precision::kBf16}, 64)
            .starts_with("own engine, bf16 by "));
  CHECK(text({.precision = Precision::kFp64, .winograd = false}, 64)
            .ends_with(", 3x3 direct"));
  CHECK(text({.precision = Precision::kFp16}, 64) == "ATen's operators (fp16)");
  CHECK(text({.own_engine = false}, 64) ==
        "ATen's operators (train.engine: aten)");
  CHECK(text({}, 31) ==
        "ATen's operators (images of at least 32 pixels, not 31)");
}

TEST_CASE(
    "a network that the engine does not know is computed by ATen, and both "
    "plans say so") {
  // 64 + 5 * 32 = 224 channels, of which the transition leaves 112.
  const NetworkSpec odd{"odd", DenseNetSpec{32, {5, 2, 2, 2}},
                        network_spec("densenet121").head};
  Network network(odd, 14, {});
  network.parameters().initialize(1);
  CHECK(network.description(2, 64) ==
        "ATen's operators (channels in multiples of 32)");
  CHECK(!network.planned_bytes(2, 64));
  CHECK(network.depends_on_threads(64));
  CHECK(at::isfinite(network.forward(parity_images(0, 2), Mode::kTraining))
            .all()
            .item<bool>());

  Network known(network_spec("densenet121"), 14, {});
  CHECK(known.planned_bytes(2, 64).value_or(0) > 0);
  CHECK(!known.depends_on_threads(64));
}

TEST_CASE("images that are not square go to ATen and give its logits") {
  const at::Tensor images = at::randint(0, 256, {2, 1, 64, 96}, at::kByte);
  Network free(network_spec("densenet121"), 14, {}),
      aten(network_spec("densenet121"), 14, {.own_engine = false});
  free.parameters().initialize(1);
  aten.parameters().initialize(1);
  CHECK(at::equal(free.forward(images, Mode::kInference),
                  aten.forward(images, Mode::kInference)));
}

TEST_CASE(
    "the first back end that does not refuse a shape computes it, and is made "
    "once") {
  Probe::Seen first, second;
  const auto entry = [](Probe::Seen& seen, const char* name, int64_t smallest) {
    return BackendEntry{
        [=](const BackendContext&, int64_t height, int64_t) {
          return height < smallest ? std::string(name) + " is too large" : "";
        },
        [&seen, name](const BackendContext&) {
          return std::make_unique<Probe>(seen, name);
        }};
  };
  Network network(network_spec("densenet121"), 14, {},
                  {entry(first, "first", 64), entry(second, "second", 0)});
  CHECK(first.made == 0);
  for (const int64_t size : {64, 32, 64, 32, 96})
    network.forward(images_of(size, size), Mode::kInference);
  CHECK(first.made == 1);
  CHECK(first.forwards == 3);
  CHECK(second.made == 1);
  CHECK(second.forwards == 2);
  CHECK(network.description(1, 64) == "first");
  CHECK(network.description(1, 32) == "second (first is too large)");
  CHECK(network.planned_bytes(1, 32) == 7);
}

TEST_CASE(
    "what is attached reaches back ends made before and after, and a tick goes "
    "with its guard") {
  Probe::Seen seen;
  const auto refuses_nothing = [](const BackendContext&, int64_t, int64_t) {
    return std::string();
  };
  Network network(network_spec("densenet121"), 14, {},
                  {{refuses_nothing, [&](const BackendContext&) {
                      return std::make_unique<Probe>(seen, "probe");
                    }}});
  LayerTimes times;
  network.set_layer_times(&times);
  network.forward(images_of(32, 32), Mode::kInference);
  CHECK(seen.attached.layer_times == &times);
  int ticks = 0;
  {
    const Network::TickGuard guard(network, [&] { ++ticks; });
    CHECK(network.ticks());
    seen.attached.tick();
    CHECK(seen.attached.layer_times == &times);
  }
  CHECK(ticks == 1);
  CHECK(!network.ticks());
  CHECK(!seen.attached.tick);
  network.set_layer_times(nullptr);
  CHECK(seen.attached.layer_times == nullptr);
}

TEST_CASE(
    "a back end that fails ends the step, leaves nothing set, and the next "
    "step is right") {
  const auto entries = default_backends();
  const std::vector<Fault> faults = {
      {"classifier.weight"},
      {"features.denseblock3.denselayer7.conv2.weight"},
      {"features.conv0.weight"},
      {"", true}};
  for (const auto& inner : entries) {
    const auto solo = solo_communicator();
    Network expected(network_spec("densenet121"), 14, {}, {inner});
    expected.parameters().initialize(1);
    TrainStep reference(expected, *solo, many_buckets());
    reference.run(parity_images(1), parity_labels(1), kEntries, 1e-3);

    for (const Fault& planned : faults) {
      Fault fault = planned;
      Network network(network_spec("densenet121"), 14, {},
                      failing(inner, fault));
      network.parameters().initialize(1);
      const at::Tensor before = network.parameters().flat_values().clone();
      Profiler profiler;
      PhaseSlot slot;
      profiler.set_slot(&slot);
      TrainStep::Options options = many_buckets();
      options.profiler = &profiler;
      TrainStep step(network, *solo, options);
      INFO(entries.size() << " back ends; at " << planned.parameter);
      const std::string text = error_of<std::runtime_error>([&] {
        step.run(parity_images(0), parity_labels(0), kEntries, 1e-3);
      });
      CHECK(text.find("failed on purpose at ") == 0);
      CHECK(fault.failures == 1);
      CHECK(!network.ticks());
      const auto shown = [&] { return static_cast<Phase>(slot.phase.load()); };
      CHECK(shown() ==
            (planned.parameter.empty() ? Phase::kForward : Phase::kBackward));
      CHECK(at::equal(network.parameters().flat_values(), before));
      CHECK(step.optimizer().steps().all == 0);

      fault = {};
      step.run(parity_images(1), parity_labels(1), kEntries, 1e-3);
      CHECK(shown() == Phase::kOther);  // no span is open
      CHECK(at::equal(network.parameters().flat_values(),
                      expected.parameters().flat_values()));
      CHECK(at::equal(network.parameters().flat_running(),
                      expected.parameters().flat_running()));
    }
  }
}

TEST_CASE(
    "a step that fails on two ranks leaves no bucket of it to the next one") {
  const BackendEntry engine = default_backends().front();
  const auto train = [&](bool with_failure) {
    std::vector<at::Tensor> values(2);
    std::vector<std::string> texts(2);
    ThreadWorld(2).run([&](Communicator& comm) {
      Fault fault;
      Network network(network_spec("densenet121"), 14, {},
                      failing(engine, fault));
      network.parameters().initialize(1);
      TrainStep step(network, comm, many_buckets());
      const auto run = [&](int batch) {
        step.run(parity_images(2 * batch + comm.rank()),
                 parity_labels(2 * batch + comm.rank()), 2 * kEntries, 1e-3);
      };
      if (with_failure) {
        fault.parameter = "features.denseblock3.denselayer7.conv2.weight";
        texts[static_cast<size_t>(comm.rank())] =
            error_of<std::runtime_error>([&] { run(0); });
        fault = {};
      }
      run(1);
      values[static_cast<size_t>(comm.rank())] =
          network.parameters().flat_values().clone();
    });
    for (const auto& text : texts) CHECK(text.empty() != with_failure);
    return values;
  };
  const auto expected = train(false), found = train(true);
  CHECK(at::equal(expected[0], expected[1]));
  CHECK(at::equal(found[0], expected[0]));
  CHECK(at::equal(found[1], expected[0]));
}
