#include "published_figures.hpp"

namespace chexnet {
namespace {

// test_list.txt of the data set.
constexpr double kOfficialImages = 25596, kOfficialPatients = 2797;

}  // namespace

const std::vector<PublishedFigures>& figures_of_same_list(
    const Json& results, const std::string& split) {
  static const std::vector<PublishedFigures> kNone;
  static const std::vector<PublishedFigures> kOfficial = {
      {"Wang et al. 2017 (ResNet-50)",
       {{"Atelectasis", 0.700},
        {"Cardiomegaly", 0.810},
        {"Effusion", 0.759},
        {"Infiltration", 0.661},
        {"Mass", 0.693},
        {"Nodule", 0.669},
        {"Pneumonia", 0.658},
        {"Pneumothorax", 0.799},
        {"Consolidation", 0.703},
        {"Edema", 0.805},
        {"Emphysema", 0.833},
        {"Fibrosis", 0.786},
        {"Pleural_Thickening", 0.684},
        {"Hernia", 0.872}},
       0.745},
      {"Guendel et al. 2018 (DenseNet-121)",
       {{"Atelectasis", 0.767},
        {"Cardiomegaly", 0.883},
        {"Effusion", 0.828},
        {"Infiltration", 0.709},
        {"Mass", 0.821},
        {"Nodule", 0.758},
        {"Pneumonia", 0.731},
        {"Pneumothorax", 0.846},
        {"Consolidation", 0.745},
        {"Edema", 0.835},
        {"Emphysema", 0.895},
        {"Fibrosis", 0.818},
        {"Pleural_Thickening", 0.761},
        {"Hernia", 0.896}},
       0.807}};
  const Json& facts = member(member(member(results, "data"), "splits"), split);
  const Json& evaluation = member(member(results, "evaluations"), split);
  const bool same =
      find_choice<ScoredBy>(text(evaluation, "by")) == ScoredBy::kImage &&
      number(facts, "images") == kOfficialImages &&
      number(facts, "patients") == kOfficialPatients;
  return same ? kOfficial : kNone;
}

const char* const kPublishedElsewhere =
    "Published means for ChestX-ray14 are of other images and no measure for "
    "these: 0.841 (CheXNet, Rajpurkar et al. 2017) on a random cut by patient "
    "that was not published, 0.745 (Wang et al. 2017) and 0.807 (Guendel et "
    "al. 2018) on NIH's official test list of 25,596 images.";

}  // namespace chexnet
