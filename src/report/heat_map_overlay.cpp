// OpenCV draws: its color maps, its letters. Colors are blue-green-red until
// the last step.
#include "chexnet/report/heat_map_overlay.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "chexnet/data/image/encode.hpp"

namespace chexnet {
namespace {

constexpr double kMostCover = 0.65;  // of the picture, by the map's maximum
constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;
constexpr double kLeastScale = 0.25;  // letters of 5 pixels
const cv::Scalar kInk(225, 225, 225);

// Of the picture where it is `width` wide.
int shown_height(const GrayImage& picture, int width) {
  const double factor = static_cast<double>(width) / picture.width();
  return std::max(1, static_cast<int>(std::lround(factor * picture.height())));
}

cv::Mat shown_picture(const GrayImage& picture, int most_width) {
  const cv::Mat gray(picture.height(), picture.width(), CV_8UC1,
                     const_cast<uint8_t*>(picture.row(0)), picture.stride());
  if (most_width == 0 || picture.width() <= most_width) return gray.clone();
  cv::Mat smaller;
  cv::resize(gray, smaller, {most_width, shown_height(picture, most_width)}, 0,
             0, cv::INTER_AREA);
  return smaller;
}

// The map's area in whole pixels of the shown picture.
cv::Rect place_in(const Box& place, const cv::Size& size) {
  const int left = static_cast<int>(std::lround(place.left * size.width)),
            top = static_cast<int>(std::lround(place.top * size.height)),
            right = static_cast<int>(std::lround(place.right * size.width)),
            bottom = static_cast<int>(std::lround(place.bottom * size.height));
  return cv::Rect(left, top, std::max(1, right - left),
                  std::max(1, bottom - top)) &
         cv::Rect({0, 0}, size);
}

std::array<cv::Vec3b, 256> palette() {
  cv::Mat levels(1, 256, CV_8UC1), colors;
  for (int i = 0; i < 256; ++i)
    levels.at<uint8_t>(0, i) = static_cast<uint8_t>(i);
  cv::applyColorMap(levels, colors, cv::COLORMAP_VIRIDIS);
  std::array<cv::Vec3b, 256> result;
  for (int i = 0; i < 256; ++i)
    result[static_cast<size_t>(i)] = colors.at<cv::Vec3b>(0, i);
  return result;
}

void cover(cv::Mat shown, const HeatMap& map, float highest) {
  const auto colors = palette();
  const std::vector<float> values = resized(map, shown.cols, shown.rows);
  const float* value = values.data();
  for (int y = 0; y < shown.rows; ++y)
    for (int x = 0; x < shown.cols; ++x, ++value) {
      const double heat = std::clamp(*value / highest, 0.0f, 1.0f);
      const auto& color = colors[static_cast<size_t>(std::lround(255 * heat))];
      auto& pixel = shown.at<cv::Vec3b>(y, x);
      const double amount = kMostCover * heat;
      for (int c = 0; c < 3; ++c)
        pixel[c] = static_cast<uint8_t>(
            std::lround((1 - amount) * pixel[c] + amount * color[c]));
    }
}

struct Text {
  std::string text;
  double scale;
  cv::Size size() const {
    return cv::getTextSize(text, kFont, scale, 1, nullptr);
  }
  void put(cv::Mat& on, int x, int baseline) const {
    cv::putText(on, text, {x, baseline}, kFont, scale, kInk, 1, cv::LINE_AA);
  }
};

// The largest letters up to `wanted` with which it is no wider than `width`.
Text fitted(const std::string& text, double wanted, int width) {
  Text result{text, wanted};
  const int needed = result.size().width;
  if (needed > width) result.scale *= static_cast<double>(width) / needed;
  return result;
}

// The letters that Hershey's fonts have.
std::string ascii(std::string text) {
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

// "+5.1", "+0.037"
std::string number_text_of(float highest) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%+.2g",
                static_cast<double>(highest));
  return text.data();
}

// Of a legend below a picture so wide: three lines and an edge.
struct LegendSize {
  double letters;  // of the caption; 1: 21 pixels
  int line, edge;  // pixels
  explicit LegendSize(int width)
      : letters(std::clamp(width / 640.0, 0.4, 4.0)),
        line(static_cast<int>(std::lround(34 * letters))),
        edge(line / 4) {}
  int height() const { return 3 * line + edge; }
};

// A strip as wide as the picture: caption, "0 [scale] +3.1 logit", "research
// use". Letters too small to read are left out.
cv::Mat legend(const OverlayOptions& options, float highest, int width) {
  const LegendSize size(width);
  const double wanted = size.letters;
  const int line = size.line, edge = size.edge;
  const int room = std::max(1, width - 2 * edge);
  cv::Mat strip(size.height(), width, CV_8UC3, cv::Scalar(0, 0, 0));
  const auto put = [&](const std::string& text, double scale, int number) {
    const Text fits = fitted(text, scale, room);
    if (fits.scale >= kLeastScale)
      fits.put(strip, edge, number * line - edge / 2);
  };
  put(ascii(options.caption), wanted, 1);
  put("research use, not for diagnosis", 0.7 * wanted, 3);

  const std::string most = highest > 0
                               ? number_text_of(highest) + " " + options.unit
                               : options.nothing;
  const Text low = fitted("0", 0.8 * wanted, room / 3),
             high = fitted(most, 0.8 * wanted, room / 2);
  const bool readable = high.scale >= kLeastScale;
  const int from = edge + (readable ? low.size().width + edge : 0);
  const int to = width - edge - (readable ? high.size().width + edge : 0);
  if (readable) {
    low.put(strip, edge, 2 * line - edge / 2);
    high.put(strip, to + edge, 2 * line - edge / 2);
  }
  const auto colors = palette();
  for (int x = from; x < to; ++x) {
    const auto& color = colors[static_cast<size_t>(255 * (x - from) /
                                                   std::max(1, to - from - 1))];
    cv::line(strip, {x, line + edge}, {x, 2 * line - edge / 2},
             cv::Scalar(color[0], color[1], color[2]));
  }
  return strip;
}

}  // namespace

int width_within(int most, const GrayImage& picture) {
  if (most == 0) return 0;
  assert(most >= kLeastOverlaySide);
  int width = std::min(most, picture.width());
  const auto height = [&] {
    return shown_height(picture, width) + LegendSize(width).height();
  };
  while (width > 1 && height() > most) --width;
  return width;
}

std::vector<std::byte> overlay_png(const GrayImage& picture, const HeatMap& map,
                                   const OverlayOptions& options) {
  assert(picture.width() > 0 && picture.height() > 0 && !map.values.empty());
  const cv::Mat gray = shown_picture(picture, options.most_width);
  cv::Mat shown;
  cv::cvtColor(gray, shown, cv::COLOR_GRAY2BGR);
  const cv::Rect place = place_in(map.place, shown.size());
  const float highest = *std::ranges::max_element(map.values);
  if (highest > 0) cover(shown(place), map, highest);
  if (place != cv::Rect({0, 0}, shown.size()))
    cv::rectangle(shown, place, cv::Scalar(128, 128, 128));

  cv::Mat page;
  cv::vconcat(shown, legend(options, highest, shown.cols), page);
  cv::cvtColor(page, page, cv::COLOR_BGR2RGB);
  return encode_rgb_png(page.ptr(), page.cols, page.rows);
}

}  // namespace chexnet
