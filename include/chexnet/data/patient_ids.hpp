// How patients are called in what a run writes: as their table does, or by
// pseudonyms that only the key's owner can make.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/config/config.hpp"

namespace chexnet {

class PatientIds {
 public:
  PatientIds() = default;  // plain
  explicit PatientIds(const std::string& key);

  // "pKKKK-0123456789abcdef", where KKKK tells keys apart; plain: `id` itself.
  std::string in_files(const std::string& id) const;
  // Whether this is a pseudonym of this key.
  bool is_own(const std::string& id) const;

 private:
  std::string key_, prefix_;  // empty: plain
};

bool is_pseudonym(const std::string& id);

// Whether a run writes pseudonyms, which takes a key.
bool writes_pseudonyms(const Config& config);

// As the config says. A key that is needed and absent is made: for the one rank
// that writes. CheckpointError, DataError: see core/private_key.hpp.
PatientIds patient_ids(const Config& config);
// For ids that somebody wrote; nothing where all of them are pseudonyms of a
// key that is not at hand.
std::optional<PatientIds> ids_as_written(
    const PrivacyConfig& config, const std::vector<std::string>& written);

}  // namespace chexnet
