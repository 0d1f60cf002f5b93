#include "chexnet/app/image_scores.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/json_text.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/table.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

constexpr std::size_t kHighest = 3;

// "Effusion 0.812  Mass 0.301  Nodule 0.204"; of equal ones the first finding.
std::string highest(const ImageScore& image,
                    const std::vector<std::string>& findings) {
  std::vector<std::size_t> order(findings.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t k) {
    return image.probabilities[k];
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(kHighest, order.size()); ++i)
    text += (i > 0 ? "  " : "") + findings[order[i]] + " " +
            fixed(image.probabilities[order[i]], 3);
  return text;
}

nlohmann::ordered_json image_json(const ImageScore& image,
                                  const std::vector<std::string>& findings) {
  nlohmann::ordered_json json = {{"image", image.image}};
  if (!image.error.empty()) {
    json["error"] = image.error;
    return json;
  }
  for (std::size_t k = 0; k < findings.size(); ++k)
    json["probabilities"][findings[k]] = image.probabilities[k];
  for (const auto& [finding, heat_map] : image.heat_maps)
    json["heat_maps"][finding] = heat_map;
  return json;
}

}  // namespace

std::size_t ImageScores::scored() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      images, [](const ImageScore& i) { return i.error.empty(); }));
}

double ImageScores::images_per_s() const {
  return seconds > 0 ? static_cast<double>(scored()) / seconds : 0;
}

std::string image_scores_text(const ImageScores& scores) {
  Rows rows;
  for (const auto& image : scores.images)
    rows.emplace_back(printable(image.image),
                      image.error.empty() ? highest(image, scores.findings)
                                          : "error: " + printable(image.error));
  return "The highest probabilities, of " +
         counted(std::ssize(scores.findings), "finding") +
         " (research use, not a medical device)\n" + aligned(rows) + "\n";
}

std::string image_scores_csv(const ImageScores& scores) {
  std::string text = "image";
  for (const auto& finding : scores.findings)
    text += "," + csv_field("prob:" + finding);
  text += ",error\n";
  for (const auto& image : scores.images) {
    text += csv_field(image.image);
    for (std::size_t k = 0; k < scores.findings.size(); ++k)
      text += "," + (image.error.empty() ? csv_number(image.probabilities[k])
                                         : std::string());
    text += "," + csv_field(image.error) + "\n";
  }
  return text;
}

std::string image_scores_json_lines(const ImageScores& scores) {
  std::string text;
  for (const auto& image : scores.images)
    text += json_text(image_json(image, scores.findings)) + "\n";
  const nlohmann::ordered_json summary = {
      {"images", scores.images.size()},
      {"scored", scores.scored()},
      {"errors", scores.images.size() - scores.scored()},
      {"left_out", scores.left_out},
      {"images_per_s", scores.images_per_s()}};
  return text + json_text(summary) + "\n";
}

std::string image_scores_summary(const ImageScores& scores) {
  const std::size_t all = scores.images.size(), scored = scores.scored();
  std::string text = counted(static_cast<std::int64_t>(all), "image") + ", " +
                     std::to_string(scored) + " scored";
  if (scored < all)
    text += ", " + counted(static_cast<std::int64_t>(all - scored), "error");
  if (scores.left_out > 0)
    text += "; " + counted(static_cast<std::int64_t>(scores.left_out), "file") +
            " of other kinds left out";
  return text + "; " + fixed(scores.images_per_s(), 1) + " images/s";
}

}  // namespace chexnet
