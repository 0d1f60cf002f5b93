// What a network found, as DICOM for the archive that the pictures came from: a
// structured report and secondary captures of heat maps, each in the study of
// its picture.
#pragma once

#include <string>

namespace chexnet {

// `request`: the JSON that predict writes (run/dicom_results.hpp). One picture
// that cannot be reported is a warning and no error. Prints {"reports",
// "captures", "failed"}: how many. DataError: no such JSON.
// CheckpointError: files cannot be written.
void write_results(const std::string& request);

}  // namespace chexnet
