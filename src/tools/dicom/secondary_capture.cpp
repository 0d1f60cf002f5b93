// A picture in RGB without compression, which every viewer shows.
#include <spng.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_format.hpp"
#include "result_files.hpp"

namespace chexnet {
namespace {

using gdcm::DataSet;
using gdcm::VR;

constexpr const char* kSecondaryCapture = "1.2.840.10008.5.1.4.1.1.7";

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
    throw DataError(
        "[dicom] {}: is no heat map that can be read. Hint: is the disk of "
        "TMPDIR full?",
        path);
  return picture;
}

}  // namespace

std::string capture_file(const Source& source, const Json& capture,
                         const std::string& note, const std::string& version,
                         const Uids& uids, int number) {
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
               ". " + (note.empty() ? "" : "Note: " + note + ". ") +
               kResearchNotice);
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
  return file_of(set);
}

}  // namespace chexnet
