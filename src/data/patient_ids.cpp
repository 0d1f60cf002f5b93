#include "chexnet/data/patient_ids.hpp"

#include <algorithm>
#include <cassert>

#include "chexnet/core/error.hpp"
#include "chexnet/core/private_key.hpp"
#include "chexnet/core/user_cache.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

constexpr size_t kKeyDigits = 4, kDigits = 16;
constexpr std::string_view kHex = "0123456789abcdef";

const KeyUse& key_use() {
  static const KeyUse kUse{"privacy", "privacy.key"};
  return kUse;
}

fs::path key_path(const PrivacyConfig& config) {
  if (!config.key.empty()) return config.key;
  if (const auto own = user_config_folder()) return *own / "patients.key";
  throw ConfigError(
      "[privacy] no place for the key of pseudonyms: neither XDG_CONFIG_HOME "
      "nor HOME is set. Hint: name a file by privacy.key");
}

// The publishers of the public sets invented their ids. Other sets are given to
// those who sign that they pass nothing on.
bool is_public(const ManifestFormats& formats) {
  return std::ranges::all_of(formats, [](ManifestFormat format) {
    return format == ManifestFormat::kNih ||
           format == ManifestFormat::kChexpert;
  });
}

}  // namespace

PatientIds::PatientIds(const std::string& key)
    : key_(key),
      prefix_("p" + keyed_digits(key, "which key").substr(0, kKeyDigits) +
              "-") {
  assert(!key.empty());
}

std::string PatientIds::in_files(const std::string& id) const {
  return key_.empty() ? id : prefix_ + keyed_digits(key_, id);
}

bool PatientIds::is_own(const std::string& id) const {
  return is_pseudonym(id) && !key_.empty() && id.starts_with(prefix_);
}

bool is_pseudonym(const std::string& id) {
  const auto hex = [&](size_t from, size_t count) {
    return id.find_first_not_of(kHex, from) >= from + count;
  };
  return id.size() == 2 + kKeyDigits + kDigits && id[0] == 'p' &&
         hex(1, kKeyDigits) && id[1 + kKeyDigits] == '-' &&
         hex(2 + kKeyDigits, kDigits);
}

bool writes_pseudonyms(const Config& config) {
  const PatientIdForm form = config.privacy.ids.value_or(
      is_public(config.data.manifest.format) ? PatientIdForm::kPlain
                                             : PatientIdForm::kPseudonym);
  return form == PatientIdForm::kPseudonym;
}

PatientIds patient_ids(const Config& config) {
  if (!writes_pseudonyms(config)) return {};
  const fs::path path = key_path(config.privacy);
  if (config.privacy.key.empty()) fs::create_directories(path.parent_path());
  return PatientIds(read_or_make_key(path, key_use()));
}

std::optional<PatientIds> ids_as_written(
    const PrivacyConfig& config, const std::vector<std::string>& written) {
  if (written.empty() || !std::ranges::all_of(written, is_pseudonym))
    return PatientIds();
  const fs::path path = key_path(config);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  PatientIds ids(read_key(path, key_use()));
  if (!ids.is_own(written.front())) return std::nullopt;
  return ids;
}

}  // namespace chexnet
