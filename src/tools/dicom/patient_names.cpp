#include "patient_names.hpp"

#include <cctype>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/private_key.hpp"

namespace chexnet {
namespace {

constexpr size_t kLongest = 64;  // what DICOM allows an id (PS3.5, VR LO)

}  // namespace

// Ids that differ only in what is replaced or cut stay different: the hash is
// of the whole id.
std::string file_safe(const std::string& text) {
  std::string safe = text.substr(0, kLongest);
  for (char& c : safe)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' &&
        c != '.')
      c = '_';
  if (safe.empty() || safe[0] == '.') safe.insert(0, "_");
  return safe == text
             ? safe
             : safe.substr(0, kLongest) + "-" + sha256_hex(text).substr(0, 8);
}

// Pictures of one study are of one patient. One that names nothing at all gets
// a name from its pixels, and equal ones are counted, so that none overwrites
// another.
std::string PatientNames::of(const Converted& file) {
  const Radiograph& picture = file.picture;
  std::string id = picture.patient;
  if (id.empty()) id = picture.study;
  if (id.empty()) id = picture.instance;
  if (id.empty()) {
    const std::string_view png(reinterpret_cast<const char*>(file.png.data()),
                               file.png.size());
    const std::string sum = sha256_hex(png).substr(0, 16);
    id = "picture-" + sum + "-" + std::to_string(++seen_[sum]);
  }
  return key_.empty() ? file_safe(id) : "p" + keyed_digits(key_, id);
}

}  // namespace chexnet
