// What every file of results has in common: patient and study of its picture, a
// new series and instance.
#pragma once

#include <string>

#include "chexnet/core/json.hpp"
#include "data_set.hpp"

namespace chexnet {

inline constexpr const char* kResearchNotice =
    "Research use only. Not a medical device: not to be used for diagnosis.";

// UIDs follow from the request, so that separate processes agree on the series
// of a study: one for all of its reports, and one for all captures.
struct Uids {
  std::string request;  // what no other request has
  std::string series(const char* kind, const Source& source) const {
    return uid_of(request + kind + source.study);
  }
  std::string instance(const std::string& file) const {
    return uid_of(request + "instance" + file);
  }
};

// A path of the request: paths are bytes, and JSON is UTF-8, so they come as
// hexadecimal digits.
std::string path_of(const Json& digits);

// Of the picture, for sequences that refer to it.
gdcm::DataSet reference(const Source& source);

struct FileKind {
  const char *sop_class, *modality;
  std::string series;
  int series_number;
};
// The attributes of any file of ours: patient, study, series, equipment.
gdcm::DataSet begin_file(const Source& source, const FileKind& kind,
                         const std::string& instance, int number,
                         const std::string& version);

// The bytes of a file. `image` and `capture` are of the request
// (src/app/dicom_results.cpp), `model` too; `number` counts files of a series.
std::string report_file(const Source& source, const Json& image,
                        const Json& model, const Uids& uids, int number);
// `note`: what says that the picture is no chest X-ray; may be empty.
std::string capture_file(const Source& source, const Json& capture,
                         const std::string& note, const std::string& version,
                         const Uids& uids, int number);

}  // namespace chexnet
