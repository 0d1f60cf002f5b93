#include "chexnet/report/overlap_figure.hpp"

#include <regex>
#include <vector>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

struct DrawnBox {
  double x, y, width;
};

// The boxes of a row, "c0" loading and "c1" training, as they are drawn.
std::vector<DrawnBox> boxes(const std::string& svg, const std::string& row) {
  const std::regex form("<g class=\"" + row +
                        "\"[^>]*><rect x=\"([0-9.]+)\" y=\"([0-9.]+)\" "
                        "width=\"([0-9.]+)\"");
  std::vector<DrawnBox> found;
  for (std::sregex_iterator it(svg.begin(), svg.end(), form), end; it != end;
       ++it)
    found.push_back(
        {std::stod((*it)[1]), std::stod((*it)[2]), std::stod((*it)[3])});
  return found;
}

// Those of the upper half, or of the lower one.
std::vector<DrawnBox> of_half(const std::vector<DrawnBox>& all, bool lower) {
  std::vector<DrawnBox> found;
  for (const auto& box : all)
    if ((box.y > 92) == lower) found.push_back(box);
  return found;
}

}  // namespace

TEST_CASE("loading and training in turn, and at once, are drawn to one scale") {
  const std::string svg =
      svg_overlap({.loading = 30, .computing = 120, .step = 125});
  CHECK(svg.find("Without pipelining, computed: 150 ms a step") !=
        std::string::npos);
  CHECK(svg.find("As measured: 125 ms a step") != std::string::npos);
  CHECK(svg.find("600 ms") != std::string::npos);
  const double ms = 410.0 / 600;  // of the picture's width
  const auto loading = boxes(svg, "c0"), training = boxes(svg, "c1");
  const auto in_turn = of_half(training, false),
             at_once = of_half(training, true);
  REQUIRE(in_turn.size() == 4);
  REQUIRE(at_once.size() == 5);
  for (size_t k = 0; k < 4; ++k) {
    CHECK(in_turn[k].x == Approx(62 + ms * (30 + 150.0 * k)).margin(0.06));
    CHECK(in_turn[k].width == Approx(ms * 120).margin(0.11));
    CHECK(at_once[k].x == Approx(62 + ms * (30 + 125.0 * k)).margin(0.06));
    // In turn nothing is loaded while something is trained on.
    const DrawnBox load = of_half(loading, false)[k];
    CHECK(load.width == Approx(ms * 30).margin(0.11));
    CHECK(load.x + load.width == Approx(in_turn[k].x).margin(0.11));
    if (k > 0) CHECK(load.x >= in_turn[k - 1].x + in_turn[k - 1].width - 0.11);
  }
  const DrawnBox next = of_half(loading, true)[1];
  CHECK(next.x < at_once[0].x + at_once[0].width);
  CHECK(at_once[4].x + at_once[4].width <= 472.05);
}

TEST_CASE(
    "a loader that is too slow leaves gaps, and never loads twice at once") {
  const std::string svg =
      svg_overlap({.loading = 200, .computing = 20, .step = 190});
  const auto loading = of_half(boxes(svg, "c0"), true);
  REQUIRE(loading.size() >= 3);
  for (size_t k = 1; k < loading.size(); ++k)
    CHECK(loading[k].x >= loading[k - 1].x + loading[k - 1].width - 0.11);
}
