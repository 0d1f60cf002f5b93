#include "chexnet/train/ensemble_file.hpp"

#include <deque>
#include <nlohmann/json.hpp>
#include <utility>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/safetensors.hpp"
#include "metadata_json.hpp"

namespace chexnet {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

void check_member(const json& first, const json& other,
                  const fs::path& first_path, const fs::path& path) {
  if (other.contains(kMembers))
    throw CheckpointError(
        "[ensemble] {}: is an ensemble. Hint: name its members", path.string());
  for (const auto& [key, what] : {std::pair("arch", "network"),
                                  {"findings", "list of findings"},
                                  {"preprocessing", "input"}})
    if (field(first, key) != field(other, key))
      throw CheckpointError(
          "[ensemble] {}: its {} is {}, that of {} is {}. Hint: members are "
          "trained with one model.arch, data.findings and preprocessing",
          path.string(), what, json_text(field(other, key)),
          first_path.string(), json_text(field(first, key)));
}

// The ensemble has only what all members have: splits of folds differ.
void keep_common(json& description, const json& other) {
  for (const char* key : {"manifest_sha256", "finding_names_sha256"})
    if (field(description, key) != field(other, key)) description.erase(key);
  const json splits = field(other, "splits");
  json common = json::object();
  const json own = field(description, "splits");
  for (const auto& [name, split] : own.items())
    if (splits.contains(name) && splits[name] == split) common[name] = split;
  description["splits"] = common;
}

}  // namespace

std::string member_prefix(size_t member) {
  return std::to_string(member) + "/";
}

std::vector<std::string> write_ensemble(const std::vector<fs::path>& members,
                                        bool out_of_fold,
                                        std::optional<DecisionRules> rules,
                                        const fs::path& into) {
  std::deque<SafetensorsFile> files;
  std::vector<NamedArray> arrays;
  std::vector<std::string> sums;
  json description;
  for (size_t m = 0; m < members.size(); ++m) {
    const SafetensorsFile& file = files.emplace_back(members[m]);
    const json own = description_of(file, members[m]);
    if (m == 0) description = own;
    check_member(description, own, members.front(), members[m]);
    keep_common(description, own);
    for (NamedArray array : file.arrays()) {
      array.name.insert(0, member_prefix(m));
      arrays.push_back(std::move(array));
    }
    sums.push_back(sha256_file(members[m].string()));
  }
  description[kMembers] = sums;
  description[kOutOfFold] = out_of_fold;
  Metadata metadata = {{"format", "pt"}, {"chexnet", json_text(description)}};
  if (rules) {
    rules->manifest_sha256 = description.value("manifest_sha256", "");
    add_rules(std::move(*rules), arrays, description, metadata);
  }
  write_safetensors(into, arrays, metadata);
  return sums;
}

}  // namespace chexnet
