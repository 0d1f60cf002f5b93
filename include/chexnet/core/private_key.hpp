// Keys that lead from pseudonyms back to patients. Only their owner can read
// them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace chexnet {

// Words for errors: "dicom", "--key-file".
struct KeyUse {
  std::string origin, option;
};

// The key's bytes. CheckpointError where others can read it, or somebody else
// made it; DataError where it is shorter than 16 bytes.
std::string read_key(const std::filesystem::path& path, const KeyUse& use);
// Makes a missing key, mode 0600; a second process uses the first one's.
std::string read_or_make_key(const std::filesystem::path& path,
                             const KeyUse& use);

// 16 hexadecimal digits. HMAC and not a plain hash: ids are few enough to be
// tried one by one, but not without the key. Of 10^6 patients two share 64 bits
// with a probability of 3e-8.
std::string keyed_digits(const std::string& key, const std::string& id);

}  // namespace chexnet
