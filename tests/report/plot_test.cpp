#include "chexnet/report/plot.hpp"

#include "support/catch.hpp"

using namespace chexnet;

namespace {

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1))
    ++count;
  return count;
}

Plot plot_of(std::vector<std::pair<double, double>> points) {
  Plot plot{.title = "Loss", .x_label = "step", .y_label = "", .curves = {}};
  plot.curves.push_back({"training", std::move(points), {}});
  return plot;
}

}  // namespace

TEST_CASE("text in a plot cannot become markup") {
  CHECK(xml_escaped(R"(a<b> & "c")") == "a&lt;b&gt; &amp; &quot;c&quot;");
  Plot plot = plot_of({{0, 1}, {1, 2}});
  plot.title = "</svg><script>";
  plot.x_label = "\"x\" & <y>";
  plot.curves[0].name = "<i>";
  const std::string svg = svg_plot(plot);
  CHECK(count_of(svg, "<script") == 0);
  CHECK(count_of(svg, "<i>") == 0);
  CHECK(count_of(svg, "</svg>") == 1);
  CHECK(count_of(svg, "&lt;i&gt;") == 1);
}

TEST_CASE("a plot without points is no plot") {
  CHECK(svg_plot(plot_of({})).empty());
  CHECK(svg_plot({}).empty());
}

TEST_CASE("axes go from one round number to another") {
  const std::string svg = svg_plot(plot_of({{10, 0.195}, {392, 1.022}}));
  for (const char* tick : {">0<", ">100<", ">400<"})
    CHECK(count_of(svg, tick) == 1);
  CHECK(count_of(svg, "text-anchor=\"middle\"") == 6);  // and the axis's name
  for (const char* tick : {">0.0<", ">0.2<", ">1.2<"})
    CHECK(count_of(svg, tick) == 1);
  // 52 to 470 across, and the larger value above the smaller.
  const std::string corners = svg_plot(plot_of({{10, 1}, {20, 3}}));
  CHECK(count_of(corners, "points=\"52.0,204.0 470.0,28.0 \"") == 1);
  CHECK(count_of(corners, ">10<") == 1);
  CHECK(count_of(corners, ">1.0<") == 1);
  CHECK(count_of(corners, ">3.0<") == 1);
}

TEST_CASE("a tick is the number that it says") {
  for (const double scale : {1e-5, 0.017, 0.3, 1.8, 7.0, 1e3, 4.2e7}) {
    INFO(scale);
    const std::string svg = svg_plot(plot_of({{1, 0.1 * scale}, {9, scale}}));
    std::vector<double> ticks;
    const std::string begin = "text-anchor=\"end\">";
    for (auto at = svg.find(begin); at != std::string::npos;
         at = svg.find(begin, at + 1))
      if (const auto text = svg.substr(at + begin.size(), 12); text[0] != '<')
        ticks.push_back(std::stod(text));
    REQUIRE(ticks.size() >= 2);
    REQUIRE(ticks.size() <= 7);
    for (size_t i = 1; i < ticks.size(); ++i)
      CHECK(ticks[i] - ticks[i - 1] ==
            Approx(ticks[1] - ticks[0]).epsilon(1e-6));
    CHECK(ticks.front() <= 0.1 * scale);
    CHECK(ticks.back() >= scale * (1 - 1e-9));
  }
}

TEST_CASE("a single point and equal values have a plot of finite numbers") {
  for (const auto& svg :
       {svg_plot(plot_of({{5, 2}})), svg_plot(plot_of({{5, 2}, {6, 2}}))}) {
    CHECK_FALSE(svg.empty());
    CHECK(count_of(svg, "nan") + count_of(svg, "inf") == 0);
  }
}

TEST_CASE("few points are drawn one by one, many as a line") {
  CHECK(count_of(svg_plot(plot_of({{1, 1}, {2, 2}, {4, 3}})), "r=\"2.5\"") ==
        3);
  std::vector<std::pair<double, double>> points;
  for (int i = 0; i < 13; ++i) points.emplace_back(i, i);
  const std::string svg = svg_plot(plot_of(points));
  CHECK(count_of(svg, "r=\"2.5\"") == 0);
}

TEST_CASE("an axis from zero begins there, and a marked point has a ring") {
  Plot plot = plot_of({{1, 4}, {2, 8}});
  plot.from_zero = true;
  plot.curves[0].marked = {1};
  const std::string svg = svg_plot(plot);
  plot.x_from_zero = true;
  CHECK(count_of(svg, ">0<") == 1);
  CHECK(count_of(svg_plot(plot), ">0<") == 2);
  CHECK(count_of(svg, "r=\"6\"") == 1);
  CHECK(count_of(svg, "cx=\"470.0\" cy=\"28.0\" r=\"6\"") == 1);
}

TEST_CASE("neighboring curves have different colors") {
  Plot plot = plot_of({{0, 1}, {1, 2}});
  plot.curves.resize(12, plot.curves[0]);
  const std::string svg = svg_plot(plot);
  for (const int i : {0, 1, 2, 3, 4, 5})
    CHECK(count_of(svg, "<g class=\"c" + std::to_string(i) + "\"") == 2);
  CHECK(count_of(svg, "color=\"#1f6fb2\"") == 2);
}
