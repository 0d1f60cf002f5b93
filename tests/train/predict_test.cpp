#include "chexnet/train/predict.hpp"

#include <ATen/ATen.h>

#include <cmath>

#include "chexnet/core/error.hpp"
#include "chexnet/engine/network_spec.hpp"
#include "support/catch.hpp"
#include "support/phantom_run.hpp"
#include "support/rank_results.hpp"

using namespace chexnet;

namespace {

using Change = std::function<void(Network&)>;

std::optional<SplitPrediction> predict(
    const PhantomRun& run, Communicator& comm,
    const std::function<bool()>& stop = [] { return false; },
    const Change& change = [](Network&) {}) {
  const Device device;
  const Dataset dataset = load_dataset(run.config, comm);
  const auto findings = dataset.manifest.finding_count();
  Network network(network_spec("densenet121"),
                  static_cast<std::int64_t>(findings), {});
  network.parameters().initialize(3);
  change(network);
  const LossWeights weights{std::vector<double>(findings, 2.0),
                            std::vector<double>(findings, 0.5)};
  const RunContext context{run.config, comm, device, dataset, network, weights};
  return predict_split(context, dataset.splits.test, stop);
}

// -w+ y log p - w- (1-y) log(1-p), mean over what is labeled and scored.
double loss_by_probabilities(const Predictions& p) {
  double loss = 0, entries = 0;
  for (std::size_t i = 0; i < p.labels.size(); ++i) {
    if (std::isnan(p.labels[i]) || std::isnan(p.probabilities[i])) continue;
    const bool positive = p.labels[i] > 0.5f;
    loss -= positive ? 2 * std::log(p.probabilities[i])
                     : 0.5 * std::log1p(-p.probabilities[i]);
    ++entries;
  }
  return loss / entries;
}

}  // namespace

TEST_CASE(
    "a split's scores and loss are the same bits on one rank and on three") {
  const PhantomRun run(20);
  const auto solo = solo_communicator();
  const auto alone = predict(run, *solo);
  REQUIRE(alone);
  const std::size_t images = alone->predictions.images.size();
  REQUIRE(
      (images % 3 != 0 && images % 4 != 0));  // ranks, batch: there is padding
  for (const auto& together :
       rank_results(3, [&](auto& comm) { return predict(run, comm); })) {
    REQUIRE(together);
    CHECK(together->predictions.images == alone->predictions.images);
    CHECK(together->predictions.labels == alone->predictions.labels);
    CHECK(together->predictions.probabilities ==
          alone->predictions.probabilities);
    CHECK(together->loss == alone->loss);
  }
}

TEST_CASE("a split's loss is the weighted cross-entropy of its probabilities") {
  const PhantomRun run;
  const auto solo = solo_communicator();
  const auto result = predict(run, *solo);
  REQUIRE(result);
  for (const double p : result->predictions.probabilities)
    CHECK((p > 0 && p < 1));
  CHECK(result->loss ==
        Approx(loss_by_probabilities(result->predictions)).epsilon(1e-9));
}

TEST_CASE(
    "a damaged image is not scored, keeps its labels and its reason, and "
    "counts nowhere") {
  PhantomRun run;
  run.config.data.corrupt = OnDamage::kSkip;
  const auto solo = solo_communicator();
  const auto whole = predict(run, *solo);
  REQUIRE(whole);
  run.damage(whole->predictions.images[1]);
  for (const int ranks : {1, 2}) {
    INFO(ranks);
    for (const auto& result :
         rank_results(ranks, [&](auto& comm) { return predict(run, comm); })) {
      REQUIRE(result);
      const Predictions& p = result->predictions;
      const std::size_t k = p.findings.size();
      CHECK(std::isnan(p.probabilities[k]));
      CHECK(p.probabilities[0] == whole->predictions.probabilities[0]);
      CHECK(p.probabilities[2 * k] == whole->predictions.probabilities[2 * k]);
      CHECK(p.labels == whole->predictions.labels);
      CHECK(p.reasons[0].empty());
      CHECK_FALSE(p.reasons[1].empty());
      CHECK(p.reasons[1].find("Hint") == std::string::npos);
      CHECK(result->loss == Approx(loss_by_probabilities(p)).epsilon(1e-9));
    }
  }
}

TEST_CASE("where any rank is asked to stop, no rank has a result") {
  const PhantomRun run;
  const auto results = rank_results(2, [&](auto& comm) {
    return predict(run, comm, [&] { return comm.rank() == 1; });
  });
  for (const auto& result : results) CHECK_FALSE(result);
}

TEST_CASE("logits that are not finite are an error on every rank") {
  const PhantomRun run;
  const auto diverge = [](Network& network) {
    at::Tensor values = network.parameters().flat_values();
    values.fill_(NAN);
    network.parameters().refresh_compute_copies();
  };
  const auto texts = rank_results(2, [&](Communicator& comm) {
    return error_of<NumericError>([&] {
      predict(
          run, comm, [] { return false; }, diverge);
    });
  });
  for (const auto& text : texts)
    CHECK(text.find("logits are not finite") != std::string::npos);
}
