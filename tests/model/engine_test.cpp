#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "chexnet/model/loss.hpp"
#include "chexnet/model/network.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/parity_run.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;

namespace {

struct Outcome {
  at::Tensor logits, gradients;  // and batch statistics
};

Outcome run(Network& network, const at::Tensor& images,
            const at::Tensor& labels) {
  const BatchLoss loss(equal_weights(),
                       network.parameters().flat_values().options());
  const at::Tensor logits = network.forward(images, Mode::kTraining);
  network.backward(loss(logits, labels.to(logits.scalar_type()), 1.0,
                        static_cast<double>(labels.numel()))
                       .dlogits);
  // In row-major order, whatever the layout of the network's weights.
  const Parameters& p = network.parameters();
  at::Tensor gradients = p.flat_gradients_and_statistics().to(at::kDouble);
  for (const auto& q : p.list())
    gradients.narrow(0, q.begin, q.end - q.begin)
        .view(q.shape)
        .copy_(p.part(p.flat_gradients(), q));
  return {logits.to(at::kDouble), gradients};
}

// Of the norms. Gradients that cancel to nothing (of a scale before another
// BatchNorm) are measured against `least`.
double relative(const at::Tensor& a, const at::Tensor& b, double least = 0) {
  return at::linalg_vector_norm(a - b).item<double>() /
         std::max(least, at::linalg_vector_norm(b).item<double>());
}

at::Tensor noise_batch(int64_t n, int64_t size) {
  at::manual_seed(7);
  return at::randint(0, 256, {n, 1, size, size}, at::kByte);
}

}  // namespace

TEST_CASE("the engine's gradients in fp64 are those of ATen's operators",
          "[arithmetic]") {
  struct Case {
    const char* arch;
    int64_t batch, size;
  };
  for (const auto& c : std::vector<Case>{{"densenet121", 3, 64},
                                         {"densenet121", 2, 75},
                                         {"resnet50", 3, 64},
                                         {"resnet50", 2, 75}}) {
    const at::Tensor images = noise_batch(c.batch, c.size),
                     labels = parity_labels(0, static_cast<int>(c.batch));
    Network reference(network_spec(c.arch), 14,
                      {.precision = Precision::kFp64, .own_engine = false});
    reference.parameters().initialize(3);
    const Outcome expected = run(reference, images, labels);
    for (const bool winograd : {false, true}) {
      Network network(network_spec(c.arch), 14,
                      {.precision = Precision::kFp64, .winograd = winograd});
      network.parameters().initialize(3);
      const Outcome found = run(network, images, labels);
      INFO(c.arch << " " << c.size << " winograd " << winograd);
      CHECK(relative(found.logits, expected.logits) < 1e-10);
      for (const auto& p : network.parameters().list()) {
        const auto part = [&](const at::Tensor& t) {
          return t.narrow(0, p.begin, p.end - p.begin);
        };
        INFO(p.name);
        CHECK(relative(part(found.gradients), part(expected.gradients), 1e-4) <
              1e-10);
      }
      const int64_t size = network.parameters().size();
      CHECK(relative(
                found.gradients.narrow(0, size, found.gradients.numel() - size),
                expected.gradients.narrow(
                    0, size, found.gradients.numel() - size)) < 1e-10);
    }
  }
}

TEST_CASE(
    "the engine's rounding errors are no larger than those of PyTorch's "
    "operators",
    "[arithmetic]") {
  const at::Tensor images = noise_batch(8, 64), labels = parity_labels(0, 8);
  for (const char* arch : {"densenet121", "resnet50"}) {
    const auto outcome = [&](Precision precision, bool own_engine) {
      Network network(network_spec(arch), 14,
                      {.precision = precision, .own_engine = own_engine});
      network.parameters().initialize(3);
      Outcome o = run(network, images, labels);
      o.gradients = o.gradients.narrow(0, 0, network.parameters().size());
      return o;
    };
    const Outcome exact = outcome(Precision::kFp64, false);
    for (const auto precision : {Precision::kFp32, Precision::kBf16}) {
      const Outcome theirs = outcome(precision, false),
                    ours = outcome(precision, true);
      const double their_error = relative(theirs.gradients, exact.gradients),
                   our_error = relative(ours.gradients, exact.gradients);
      INFO(arch << " " << choice_name(precision) << ": ours " << our_error
                << ", ATen's " << their_error);
      CHECK(our_error > 0);
      CHECK(our_error <= 1.2 * their_error);
      CHECK(relative(ours.logits, exact.logits) <=
            1.2 * relative(theirs.logits, exact.logits));
    }
  }
}

TEST_CASE("the engine's results do not depend on the number of threads",
          "[arithmetic]") {
  const int before = at::get_num_threads();
  for (const auto& [arch, precision] :
       std::vector<std::pair<const char*, Precision>>{
           {"densenet121", Precision::kFp32},
           {"densenet121", Precision::kBf16},
           {"resnet50", Precision::kFp32},
           {"resnet50", Precision::kBf16}}) {
    Outcome first;
    for (const int threads : {1, 2, 3}) {
      at::set_num_threads(threads);
      Network network(network_spec(arch), 14, {.precision = precision});
      network.parameters().initialize(3);
      const Outcome o = run(network, noise_batch(8, 64), parity_labels(0, 8));
      INFO(arch << " " << choice_name(precision) << " " << threads
                << " threads");
      if (threads == 1) first = o;
      CHECK(at::equal(o.logits, first.logits));
      CHECK(at::equal(o.gradients, first.gradients));
    }
  }
  at::set_num_threads(before);
}

TEST_CASE(
    "inference by the engine gives ATen's logits, whatever the batch and the "
    "place in it",
    "[arithmetic]") {
  const at::Tensor images = noise_batch(6, 64);
  for (const char* arch : {"densenet121", "resnet50"}) {
    std::vector<at::Tensor> logits;
    for (const bool own_engine : {false, true}) {
      Network network(
          network_spec(arch), 14,
          {.precision = Precision::kFp64, .own_engine = own_engine});
      network.parameters().initialize(3);
      run(network, images, parity_labels(0, 6));
      network.parameters().update_running(at::zeros({}));
      logits.push_back(network.forward(images, Mode::kInference));
      if (!own_engine) continue;
      CHECK(at::equal(network.forward(images.narrow(0, 2, 3), Mode::kInference),
                      logits.back().narrow(0, 2, 3)));
    }
    INFO(arch);
    CHECK(relative(logits[1], logits[0]) < 1e-10);
  }
}

namespace {

// Logits of scoring, with the running statistics of one training step.
at::Tensor scores_of(Network& network, const at::Tensor& images) {
  return network.forward(images, Mode::kInference).to(at::kDouble);
}
void give_statistics(Network& network, int64_t size) {
  network.parameters().initialize(3);
  run(network, noise_batch(4, size), parity_labels(0, 4));
  network.parameters().update_running(at::zeros({}));
}

}  // namespace

TEST_CASE(
    "an image's scores depend neither on threads nor on the images beside it",
    "[arithmetic]") {
  const int before = at::get_num_threads();
  // Of the larger maps one image a thread is computed at a time.
  for (const int64_t size : {75, 224})
    for (const char* arch : {"densenet121", "resnet50"})
      for (const auto precision : {Precision::kFp32, Precision::kBf16}) {
        const at::Tensor images = noise_batch(5, size);
        at::Tensor first;
        for (const int threads : {1, 2, 3}) {
          at::set_num_threads(threads);
          Network network(network_spec(arch), 14, {.precision = precision});
          network.parameters().initialize(3);
          const at::Tensor all = scores_of(network, images);
          INFO(arch << " " << choice_name(precision) << " " << size << " px, "
                    << threads << " threads");
          if (threads == 1) first = all;
          CHECK(at::equal(all, first));
          CHECK(at::equal(scores_of(network, images.narrow(0, 3, 2)),
                          first.narrow(0, 3, 2)));
        }
      }
  at::set_num_threads(before);
}

TEST_CASE(
    "probabilities in fp32 are within 1e-5 of those in fp64, with errors of "
    "the size of ATen's",
    "[arithmetic]") {
  const at::Tensor images = noise_batch(2, 224);
  for (const char* arch : {"densenet121", "resnet50"}) {
    Network exact(network_spec(arch), 14,
                  {.precision = Precision::kFp64, .own_engine = false});
    give_statistics(exact, 64);
    const at::Tensor expected = scores_of(exact, images);
    const auto error = [&](bool own_engine, Precision precision) {
      Network network(network_spec(arch), 14,
                      {.precision = precision, .own_engine = own_engine});
      // The same parameters and statistics, rounded.
      const Parameters &to = network.parameters(), &from = exact.parameters();
      for (size_t i = 0; i < to.list().size(); ++i)
        to.part(to.flat_values(), to.list()[i])
            .copy_(from.part(from.flat_values(), from.list()[i]));
      network.parameters().flat_running().copy_(
          exact.parameters().flat_running());
      const at::Tensor logits = scores_of(network, images);
      const auto probability =
          (logits.sigmoid() - expected.sigmoid()).abs().max().item<double>();
      return std::pair(relative(logits, expected), probability);
    };
    const auto ours = error(true, Precision::kFp32),
               theirs = error(false, Precision::kFp32);
    INFO(arch << ": logits, relative: ours " << ours.first << ", ATen's "
              << theirs.first << "; probabilities: " << ours.second << ", "
              << theirs.second);
    CHECK(ours.second > 0);
    CHECK(ours.second < 1e-5);
    CHECK(ours.first < 10 * theirs.first);
  }
}

TEST_CASE("weights that are promised to stay are used as they are now",
          "[arithmetic]") {
  const at::Tensor images = noise_batch(4, 64);
  const auto with = [&](Network& network, const at::Tensor& batch) {
    return network.forward(batch, Mode::kInference).clone();
  };
  for (const char* arch : {"densenet121", "resnet50"})
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      INFO(arch << " " << choice_name(precision));
      Network network(network_spec(arch), 14, {.precision = precision});
      network.parameters().initialize(3);
      const at::Tensor expected = with(network, images);
      {
        const Network::FixedWeights fixed(network);
        CHECK(at::equal(with(network, images), expected));
        CHECK(at::equal(with(network, images), expected));
        // Another shape is another engine.
        CHECK(at::equal(with(network, images.narrow(0, 1, 2)),
                        expected.narrow(0, 1, 2)));
        CHECK(at::equal(with(network, images), expected));
      }
      network.parameters().initialize(4);
      const at::Tensor changed = with(network, images);
      CHECK_FALSE(at::equal(changed, expected));
      {
        const Network::FixedWeights fixed(network);
        CHECK(at::equal(with(network, images), changed));
      }
      // A step in between overwrites the memory that they share.
      run(network, images, parity_labels(0, 4));
      const Network::FixedWeights fixed(network);
      CHECK(at::equal(with(network, images), changed));
      CHECK(at::equal(with(network, images), changed));
    }
}

TEST_CASE(
    "the engine's synchronized BatchNorm in fp32 stays near one rank with the "
    "whole batch") {
  const at::Tensor images = noise_batch(8, 64), labels = parity_labels(3, 8);
  Network whole(network_spec("densenet121"), 14, {});
  whole.parameters().initialize(4);
  const Outcome expected = run(whole, images, labels);
  std::vector<at::Tensor> logits(2);
  ThreadWorld(2).run([&](Communicator& comm) {
    Network half(network_spec("densenet121"), 14, {.sync_batchnorm = &comm});
    half.parameters().initialize(4);
    logits[static_cast<size_t>(comm.rank())] =
        run(half, images.narrow(0, comm.rank() * 4, 4),
            labels.narrow(0, comm.rank() * 4, 4))
            .logits;
  });
  CHECK(relative(at::cat({logits[0], logits[1]}), expected.logits) < 1e-4);
}
