// An Enhanced SR (PS3.3 A.35.2), because numbers need it: a container with the
// notice, algorithm and picture, then a number for each finding, which has its
// threshold and the answer as properties. No standard code says "probability
// given by a network", so concepts of our own are of scheme 99CHEXNET.
#include "results.hpp"

#include <spng.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "data_set.hpp"
#include "worker.hpp"

namespace chexnet {
namespace {

using gdcm::DataSet;
using gdcm::VR;

constexpr const char* kOwnScheme = "99CHEXNET";
constexpr const char* kEnhancedSr = "1.2.840.10008.5.1.4.1.1.88.22";
constexpr const char* kSecondaryCapture = "1.2.840.10008.5.1.4.1.1.7";
// Of a child's answer: the first character.
constexpr char kGood = '+', kOfThisFile = '1', kOfAll = '*';
constexpr WorkerLimits kLimits{.max_pixels = 64'000'000, .seconds = 60};
constexpr const char* kNotice =
    "Research use only. Not a medical device: not to be used for diagnosis.";

// UIDs follow from the request, so that processes of their own agree on the
// series of a study: one for all of its reports, and one for all captures.
struct Uids {
  std::string request;  // what no other request has
  std::string series(const char* kind, const Source& source) const {
    return uid_of(request + kind + source.study);
  }
  std::string instance(const std::string& file) const {
    return uid_of(request + "instance" + file);
  }
};

// Paths are bytes, and JSON is UTF-8: they come as hexadecimal digits.
std::string path_of(const Json& digits) {
  const std::string text = digits.get<std::string>();
  const auto value = [](char c) {
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  std::string path;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    path += static_cast<char>(value(text[i]) * 16 + value(text[i + 1]));
  return path;
}

DataSet reference(const Source& source) {
  DataSet item;
  put_text(item, 0x0008, 0x1150, VR::UI, source.sop_class);
  put_text(item, 0x0008, 0x1155, VR::UI, source.instance);
  return item;
}

// The attributes of any file of ours: patient, study, series, equipment.
struct FileKind {
  const char *sop_class, *modality;
  std::string series;
  int series_number;
};
DataSet begin_file(const Source& source, const FileKind& kind,
                   const std::string& instance, int number,
                   const std::string& version) {
  DataSet set = source.shared;
  const Moment now = moment_now();
  put_text(set, 0x0008, 0x0012, VR::DA, now.date);
  put_text(set, 0x0008, 0x0013, VR::TM, now.time);
  put_text(set, 0x0008, 0x0016, VR::UI, kind.sop_class);
  put_text(set, 0x0008, 0x0018, VR::UI, instance);
  put_text(set, 0x0008, 0x0023, VR::DA, now.date);
  put_text(set, 0x0008, 0x0033, VR::TM, now.time);
  put_text(set, 0x0008, 0x0060, VR::CS, kind.modality);
  put_text(set, 0x0008, 0x0070, VR::LO, "chexnet-train");
  put_text(set, 0x0008, 0x1090, VR::LO, "chexnet-train");
  put_text(set, 0x0018, 0x1020, VR::LO, version);
  put_text(set, 0x0020, 0x000e, VR::UI, kind.series);
  put_text(set, 0x0020, 0x0011, VR::IS, std::to_string(kind.series_number));
  put_text(set, 0x0020, 0x0013, VR::IS, std::to_string(number));
  return set;
}

// --- content items (PS3.3 C.17.3)
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

void write_report(const Source& source, const Json& image, const Json& model,
                  const Uids& uids, int number) {
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
      text_item("CONTAINS", {"121106", "DCM", "Comment"}, kNotice),
      text_item("CONTAINS", {"111001", "DCM", "Algorithm Name"},
                "chexnet-train " + model.at("network").get<std::string>()),
      text_item("CONTAINS", {"111003", "DCM", "Algorithm Version"},
                version + ", weights SHA-256 " +
                    model.at("sha256").get<std::string>()),
      picture_item(source)};
  if (const std::string rule = model.at("rule"); !rule.empty())
    content.push_back(text_item(
        "CONTAINS", {"RULE", kOwnScheme, "Thresholds and calibration"}, rule));
  size_t k = 0;
  for (const auto& finding : image.at("findings"))
    content.push_back(finding_item(source, finding, ++k));
  put_items(set, 0x0040, 0xa730, content);
  write_data_set(set, path);
}

// --- secondary capture
struct Picture {
  uint16_t width = 0, height = 0;
  std::vector<std::byte> rgb;  // [height][width][3]
};

Picture read_picture(const std::string& path) {
  const std::string png = read_text(path);
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> ctx(spng_ctx_new(0),
                                                           spng_ctx_free);
  spng_ihdr header{};
  size_t size = 0;
  Picture picture;
  bool good = spng_set_png_buffer(ctx.get(), png.data(), png.size()) == 0 &&
              spng_get_ihdr(ctx.get(), &header) == 0 &&
              header.width <= UINT16_MAX && header.height <= UINT16_MAX &&
              spng_decoded_image_size(ctx.get(), SPNG_FMT_RGB8, &size) == 0;
  if (good) {
    picture.width = static_cast<uint16_t>(header.width);
    picture.height = static_cast<uint16_t>(header.height);
    picture.rgb.resize(size);
    good = spng_decode_image(ctx.get(), picture.rgb.data(), size, SPNG_FMT_RGB8,
                             0) == 0;
  }
  if (!good)
    throw DataError("[dicom] " + path +
                    ": is no heat map that can be read. Hint: is the disk of "
                    "TMPDIR full?");
  return picture;
}

void write_capture(const Source& source, const Json& capture,
                   const std::string& version, const Uids& uids, int number) {
  const Picture picture = read_picture(path_of(capture.at("picture")));
  const std::string path = path_of(capture.at("sc"));
  DataSet set = begin_file(
      source, {kSecondaryCapture, "OT", uids.series("captures", source), 9102},
      uids.instance(path), number, version);
  const std::string finding = source.shown(capture.at("finding"), 200);
  put_text(set, 0x0008, 0x0008, VR::CS, "DERIVED\\SECONDARY");
  put_text(set, 0x0008, 0x0064, VR::CS, "WSD");
  put_text(set, 0x0008, 0x103e, VR::LO, "Heat maps of a network, research use");
  put_text(set, 0x0008, 0x2111, VR::ST,
           "Heat map of " + finding + " over the picture, by chexnet-train");
  put_items(set, 0x0008, 0x2112, {reference(source)});
  put_text(set, 0x0020, 0x0020, VR::CS, "");  // orientation: not known
  put_text(set, 0x0020, 0x0060, VR::CS, "");  // nor laterality
  put_text(set, 0x0020, 0x4000, VR::LT,
           finding + " " + fixed(capture.at("probability").get<double>(), 3) +
               ". " + kNotice);
  put_short(set, 0x0028, 0x0002, 3);
  put_text(set, 0x0028, 0x0004, VR::CS, "RGB");
  put_short(set, 0x0028, 0x0006, 0);
  put_short(set, 0x0028, 0x0010, picture.height);
  put_short(set, 0x0028, 0x0011, picture.width);
  put_short(set, 0x0028, 0x0100, 8);
  put_short(set, 0x0028, 0x0101, 8);
  put_short(set, 0x0028, 0x0102, 7);
  put_short(set, 0x0028, 0x0103, 0);
  put_bytes(set, 0x7fe0, 0x0010, VR::OB, picture.rgb);
  write_data_set(set, path);
}

// The file may have been exchanged since it was scored.
Source read_scored(const Json& image) {
  const std::string path = path_of(image.at("file"));
  Source source = read_source(path);
  if (source.instance != image.at("instance"))
    throw DataError("[dicom] " + path +
                    ": is another picture than the one that was scored. Hint: "
                    "run predict again");
  return source;
}

struct Written {
  int reports = 0, captures = 0, failed = 0;
};

// In a process of its own, which GDCM may end.
void write_image(const Json& asked, const Json& image, const Uids& uids,
                 Written& written) {
  const int first = written.captures;
  const ChildMessage answer = in_child(kLimits, [&]() -> std::string {
    try {
      const Source source = read_scored(image);
      if (image.at("sr").is_string())
        write_report(source, image, asked.at("model"), uids,
                     written.reports + 1);
      int number = first;
      for (const auto& capture : image.at("captures"))
        write_capture(source, capture, asked.at("model").at("version"), uids,
                      ++number);
      return {kGood};
    } catch (const DataError& e) {
      return kOfThisFile + std::string(e.what());
    } catch (const Error& e) {
      return kOfAll + std::string(e.what());
    }
  });
  const char kind = answer.text.empty() ? kOfThisFile : answer.text[0];
  if (kind == kGood) {
    written.reports += image.at("sr").is_string() ? 1 : 0;
    written.captures += static_cast<int>(image.at("captures").size());
    return;
  }
  if (kind == kOfAll) throw CheckpointError(answer.text.substr(1));
  ++written.failed;
  log_warning(answer.text.empty()
                  ? "[dicom] " + path_of(image.at("file")) + ": " +
                        answer.death(kLimits) + ". Hint: is it damaged?"
                  : answer.text.substr(1));
}

}  // namespace

void write_results(const std::string& request) {
  Written written;
  try {
    const Json asked = Json::parse(read_text(request));
    const Uids uids{asked.at("request")};
    for (const auto& image : asked.at("images"))
      write_image(asked, image, uids, written);
  } catch (const nlohmann::json::exception& e) {
    throw DataError("[dicom] " + request + ": is no list of results (" +
                    e.what() + "). Hint: predict writes it");
  }
  std::cout << json_text(Json{{"reports", written.reports},
                              {"captures", written.captures},
                              {"failed", written.failed}})
            << std::endl;
}

}  // namespace chexnet
