#include "result_files.hpp"

#include <nlohmann/json.hpp>

#include "chexnet/core/checksum.hpp"

namespace chexnet {

using gdcm::DataSet;
using gdcm::VR;

std::string path_of(const Json& digits) {
  return bytes_of_hex(digits.get<std::string>());
}

DataSet reference(const Source& source) {
  DataSet item;
  put_text(item, 0x0008, 0x1150, VR::UI, source.sop_class);
  put_text(item, 0x0008, 0x1155, VR::UI, source.instance);
  return item;
}

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

}  // namespace chexnet
