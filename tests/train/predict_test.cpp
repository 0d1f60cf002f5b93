#include "chexnet/train/predict.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/data/image_reader.hpp"
#include "chexnet/model/engine/network_spec.hpp"
#include "chexnet/train/score_images.hpp"
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
  Network network(network_spec("densenet121"), static_cast<int64_t>(findings),
                  {});
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
  for (size_t i = 0; i < p.labels.size(); ++i) {
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
  const size_t images = alone->predictions.images.size();
  // Ranks, batch: there is padding.
  REQUIRE((images % 3 != 0 && images % 4 != 0));
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
  run.config.data.corrupt.skip = true;
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
      const size_t k = p.findings.size();
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

namespace {

// The mean probabilities of a picture's crops, by the definition: each crop by
// itself through the network.
std::vector<double> mean_over_crops(const RunContext& run,
                                    const std::vector<at::Tensor>& crops) {
  std::vector<double> sums(run.dataset.manifest.finding_count(), 0);
  for (const at::Tensor& crop : crops) {
    // A batch of one shape, as evaluation has it.
    const at::Tensor batch = crop.expand({4, 1, 32, 32}).contiguous();
    const at::Tensor logits =
        run.network.forward(batch, Mode::kInference).to(at::kDouble);
    for (size_t k = 0; k < sums.size(); ++k)
      sums[k] += 1 / (1 + std::exp(-logits.const_data_ptr<double>()[k]));
  }
  for (double& sum : sums) sum /= static_cast<double>(crops.size());
  return sums;
}

// [1, 1, 36, 36]
at::Tensor whole_picture(const RunContext& run, uint32_t row) {
  Preprocessing whole = evaluation_preprocessing(run.config.data);
  whole.crop = whole.resize;
  const ImageReader reader(*run.dataset.images, whole, Augmentation::none(), 0);
  at::Tensor picture = at::empty({1, 1, 36, 36}, at::kByte);
  ImageReader::Scratch scratch;
  reader.read({.row = row}, picture.mutable_data_ptr<uint8_t>(), scratch);
  return picture;
}

}  // namespace

TEST_CASE("two and ten crops are averaged as probabilities") {
  PhantomRun run;
  const auto solo = solo_communicator();
  const Device device;
  const Dataset dataset = load_dataset(run.config, *solo);
  const auto findings = dataset.manifest.finding_count();
  Network network(network_spec("densenet121"), static_cast<int64_t>(findings),
                  {});
  network.parameters().initialize(3);
  const LossWeights weights{std::vector<double>(findings, 1.0),
                            std::vector<double>(findings, 1.0)};
  const RunContext context{run.config, *solo,   device,
                           dataset,    network, weights};
  const Split& split = dataset.splits.test;
  for (const auto& [asked, begins] :
       std::vector<std::pair<EvalCrops, std::vector<std::array<int, 2>>>>{
           {EvalCrops::kTwo, {{2, 2}}},
           {EvalCrops::kTen, {{0, 0}, {0, 4}, {4, 0}, {4, 4}, {2, 2}}}}) {
    run.config.eval.crops = asked;
    const auto result = predict_split(context, split, [] { return false; });
    REQUIRE(result);
    for (size_t i = 0; i < 2; ++i) {
      const at::Tensor picture = whole_picture(context, split.rows[i]);
      std::vector<at::Tensor> crops;
      for (const auto& [y, x] : begins) {
        crops.push_back(picture.narrow(2, y, 32).narrow(3, x, 32));
        crops.push_back(crops.back().flip({3}));
      }
      const auto expected = mean_over_crops(context, crops);
      for (size_t k = 0; k < findings; ++k)
        CHECK(result->predictions.probabilities[i * findings + k] ==
              Approx(expected[k]).epsilon(1e-6));
    }
  }
}

TEST_CASE("scores over ten crops are the same bits on one rank and on three") {
  PhantomRun run(20);
  run.config.eval.crops = EvalCrops::kTen;
  const auto solo = solo_communicator();
  const auto alone = predict(run, *solo);
  run.config.eval.crops = EvalCrops::kOne;
  const auto one_crop = predict(run, *solo);
  REQUIRE((alone && one_crop));
  CHECK(alone->predictions.probabilities !=
        one_crop->predictions.probabilities);
  run.config.eval.crops = EvalCrops::kTen;
  run.config.data.workers = 3;
  for (const auto& together :
       rank_results(3, [&](auto& comm) { return predict(run, comm); })) {
    REQUIRE(together);
    CHECK(together->predictions.probabilities ==
          alone->predictions.probabilities);
    CHECK(together->loss == alone->loss);
  }
}

// A link to itself: what is gone altogether may come back with its mount, and
// is waited for.
TEST_CASE("images come in order as they are scored; one unreadable is one") {
  PhantomRun run(20);
  run.config.data.corrupt.skip = true;
  struct Seen {
    std::vector<size_t> order, unreadable;
    std::string error;
  };
  for (const int ranks : {1, 3}) {
    const auto results = rank_results(ranks, [&](Communicator& comm) {
      const Device device;
      const Dataset dataset = load_dataset(run.config, comm);
      const auto findings = dataset.manifest.finding_count();
      Network network(network_spec("densenet121"),
                      static_cast<int64_t>(findings), {});
      network.parameters().initialize(3);
      const LossWeights weights{std::vector<double>(findings, 1.0),
                                std::vector<double>(findings, 1.0)};
      const RunContext context{run.config, comm,    device,
                               dataset,    network, weights};
      const Split& split = dataset.splits.test;
      const auto path =
          run.folder / ("set/images/" + dataset.manifest.images[split.rows[2]]);
      comm.barrier();
      if (comm.rank() == 0) {
        std::filesystem::rename(path, path.string() + "~");
        std::filesystem::create_symlink(path.filename(), path);
      }
      comm.barrier();
      Seen seen;
      const auto take = [&](const ImageLogits& image) {
        seen.order.push_back(image.index);
        if (!image.logits.empty()) return;
        seen.unreadable.push_back(image.index);
        seen.error = image.error;
      };
      const bool whole = score_images(context, split,
                                      {.stop = [] { return false; },
                                       .take = take,
                                       .absent_is_damage = true});
      comm.barrier();
      if (comm.rank() == 0) std::filesystem::rename(path.string() + "~", path);
      comm.barrier();
      return whole ? seen : Seen{};
    });
    for (const Seen& seen : results) {
      CHECK(seen.unreadable == std::vector<size_t>{2});
      for (size_t i = 0; i < seen.order.size(); ++i) CHECK(seen.order[i] == i);
      CHECK(seen.order.size() > 4);
      CHECK(seen.error.find("symbolic links") != std::string::npos);
      CHECK(seen.error.find("Hint") == std::string::npos);
    }
  }
}
