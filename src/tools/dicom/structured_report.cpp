// An Enhanced SR (PS3.3 A.35.2), because numbers need it: a container with the
// notice, algorithm and picture, then a number for each finding, which has its
// threshold and the answer as properties. No standard code says "probability
// given by a network", so our concepts are of scheme 99CHEXNET.
#include <nlohmann/json.hpp>
#include <vector>

#include "chexnet/core/text_format.hpp"
#include "result_files.hpp"

namespace chexnet {
namespace {

using gdcm::DataSet;
using gdcm::VR;

constexpr const char* kOwnScheme = "99CHEXNET";
constexpr const char* kEnhancedSr = "1.2.840.10008.5.1.4.1.1.88.22";

// Content items (PS3.3 C.17.3).
DataSet item_of(const char* relation, const char* type, const Concept& name) {
  DataSet item;
  put_text(item, 0x0040, 0xa010, VR::CS, relation);
  put_text(item, 0x0040, 0xa040, VR::CS, type);
  put_concept(item, 0x0040, 0xa043, name);
  return item;
}

DataSet text_item(const char* relation, const Concept& name,
                  const std::string& text) {
  DataSet item = item_of(relation, "TEXT", name);
  put_text(item, 0x0040, 0xa160, VR::UT, text);
  return item;
}

// A decimal string has at most 16 characters.
DataSet number_item(const char* relation, const Concept& name, double value) {
  DataSet measured;
  put_text(measured, 0x0040, 0xa30a, VR::DS, fixed(value, 6));
  put_concept(measured, 0x0040, 0x08ea, {"1", "UCUM", "no units"});
  DataSet item = item_of(relation, "NUM", name);
  put_items(item, 0x0040, 0xa300, {measured});
  return item;
}

// Codes count the findings: names may be alike, or in another script.
DataSet finding_item(const Source& source, const Json& finding, size_t number) {
  DataSet item = number_item("CONTAINS",
                             {"FINDING" + std::to_string(number), kOwnScheme,
                              source.shown(finding.at("name"), 64)},
                             finding.at("probability"));
  std::vector<DataSet> properties;
  if (finding.at("calibrated").is_number())
    properties.push_back(number_item(
        "HAS PROPERTIES", {"CALIBRATED", kOwnScheme, "Calibrated probability"},
        finding.at("calibrated")));
  if (finding.at("threshold").is_number()) {
    properties.push_back(number_item(
        "HAS PROPERTIES",
        {"THRESHOLD", kOwnScheme, "Threshold of the uncalibrated probability"},
        finding.at("threshold")));
    properties.push_back(
        text_item("HAS PROPERTIES",
                  {"CALLEDPOSITIVE", kOwnScheme, "At or above the threshold"},
                  finding.at("positive").get<bool>() ? "yes" : "no"));
  }
  if (!properties.empty()) put_items(item, 0x0040, 0xa730, properties);
  return item;
}

DataSet picture_item(const Source& source) {
  DataSet item =
      item_of("CONTAINS", "IMAGE", {"121112", "DCM", "Source of Measurement"});
  put_items(item, 0x0008, 0x1199, {reference(source)});
  return item;
}

// Where the picture is that the report refers to: study, series, instance.
DataSet evidence(const Source& source) {
  DataSet series, study;
  put_text(series, 0x0020, 0x000e, VR::UI, source.series);
  put_items(series, 0x0008, 0x1199, {reference(source)});
  put_text(study, 0x0020, 0x000d, VR::UI, source.study);
  put_items(study, 0x0008, 0x1115, {series});
  return study;
}

}  // namespace

std::string report_file(const Source& source, const Json& image,
                        const Json& model, const Uids& uids, int number) {
  const std::string version = model.at("version"), path = path_of(image["sr"]);
  DataSet set = begin_file(
      source, {kEnhancedSr, "SR", uids.series("reports", source), 9101},
      uids.instance(path), number, version);
  put_text(set, 0x0008, 0x103e, VR::LO, "Findings of a network, research use");
  put_items(set, 0x0008, 0x1111, {});  // no performed procedure step
  put_items(set, 0x0040, 0xa372, {});  // nor its codes
  put_items(set, 0x0040, 0xa375, {evidence(source)});
  put_text(set, 0x0040, 0xa040, VR::CS, "CONTAINER");
  put_concept(set, 0x0040, 0xa043,
              {"REPORT", kOwnScheme, "Findings of a network in a chest X-ray"});
  put_text(set, 0x0040, 0xa050, VR::CS, "SEPARATE");
  put_text(set, 0x0040, 0xa491, VR::CS, "COMPLETE");
  put_text(set, 0x0040, 0xa493, VR::CS, "UNVERIFIED");
  std::vector<DataSet> content = {
      text_item("CONTAINS", {"121106", "DCM", "Comment"}, kResearchNotice),
      text_item("CONTAINS", {"111001", "DCM", "Algorithm Name"},
                "chexnet-train " + model.at("network").get<std::string>()),
      text_item("CONTAINS", {"111003", "DCM", "Algorithm Version"},
                version + ", weights SHA-256 " +
                    model.at("sha256").get<std::string>()),
      picture_item(source)};
  if (const std::string rule = model.at("rule"); !rule.empty())
    content.push_back(text_item(
        "CONTAINS", {"RULE", kOwnScheme, "Thresholds and calibration"}, rule));
  if (const std::string note = image.value("note", ""); !note.empty())
    content.push_back(text_item(
        "CONTAINS", {"NOTE", kOwnScheme, "May be no chest X-ray"}, note));
  size_t k = 0;
  for (const auto& finding : image.at("findings"))
    content.push_back(finding_item(source, finding, ++k));
  put_items(set, 0x0040, 0xa730, content);
  return file_of(set);
}

}  // namespace chexnet
