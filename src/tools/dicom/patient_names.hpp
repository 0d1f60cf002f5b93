// What patients are called in the converted set, and with it their pictures.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "worker.hpp"

namespace chexnet {

// One name per patient: a pseudonym keyed by `key`, or with an empty key the id
// itself, made fit for file names. Two ids share a name only where one is spelt
// as the other's checksum.
class PatientNames {
 public:
  explicit PatientNames(std::string key) : key_(std::move(key)) {}
  // Without patient id a study is a patient, and a picture without one too.
  std::string of(const Converted& file);

 private:
  std::string key_;
  std::map<std::string, int> seen_;  // pictures without any id, by checksum
};

// Letters, digits, '-', '_' and '.', at most 73 of them. A text that had to be
// changed or cut for that ends with a checksum of it, so that "A/1" and "A 1"
// differ.
std::string file_safe(const std::string& text);

}  // namespace chexnet
