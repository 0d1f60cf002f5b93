#include "chexnet/eval/prevalence.hpp"

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("a prevalence that is far from training's is told") {
  // Hernia as often as nih352's 836 training images have it.
  const std::vector<LabeledImages> usual = {{"Hernia", 10, 826},
                                            {"Mass", 100, 900}};
  const auto text = [&](const std::vector<LabeledImages>& scored) {
    return unlike_prevalence(usual, "training", scored);
  };
  CHECK(text({{"Hernia", 52, 378}, {"Mass", 50, 380}, {"Fracture", 9, 400}}) ==
        "Hernia 12.1 % (1.2 % of training)");
  CHECK(text({{"Mass", 0, 430}}) == "Mass 0.0 % (10.0 % of training)");
  // Less than three times; by chance; of too few images.
  CHECK(text({{"Hernia", 15, 485}}).empty());
  CHECK(text({{"Hernia", 1, 24}}).empty());
  CHECK(text({{"Hernia", 10, 9}}).empty());
}
