#include "chexnet/data/findings.hpp"

#include <algorithm>
#include <unordered_map>

#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"

namespace chexnet {
namespace {

// "Pleural_Thickening" -> "pleural thickening"
std::string plain(const std::string& name) {
  std::string text = lowered(name);
  for (char& c : text)
    if (c == '_' || c == '-') c = ' ';
  return text;
}

// Names of one finding in different data sets. ChestX-ray14's list of boxes
// writes "Infiltrate", its table "Infiltration". CheXpert and MIMIC-CXR write
// "Pleural Effusion" (Irvin et al., AAAI 2019), ChestX-ray14 "Effusion" (Wang
// et al., CVPR 2017), which its authors define as pleural; TorchXRayVision
// (Cohen et al., MIDL 2022) joins the two in the same way. Names that only
// overlap (Lung Lesion and Mass, Lung Opacity and Infiltration) do not belong
// here.
std::string canonical(const std::string& name) {
  const std::string text = plain(name);
  if (text == "pleural effusion") return "effusion";
  return text == "infiltrate" ? "infiltration" : text;
}

}  // namespace

bool same_finding(const std::string& a, const std::string& b) {
  return canonical(a) == canonical(b);
}

std::optional<size_t> find_finding(const std::vector<std::string>& names,
                                   const std::string& wanted) {
  auto found = std::ranges::find(names, wanted);
  if (found == names.end())
    found = std::ranges::find_if(
        names, [&](const auto& n) { return same_finding(n, wanted); });
  if (found == names.end()) return std::nullopt;
  return static_cast<size_t>(found - names.begin());
}

std::string doubled_finding(const std::vector<std::string>& names) {
  std::unordered_map<std::string, const std::string*> seen;
  for (const auto& name : names) {
    const auto [first, is_new] = seen.emplace(canonical(name), &name);
    if (is_new) continue;
    const std::string& before = *first->second;
    const std::string other =
        before == name ? "" : ", also as '" + before + "'";
    return "'" + name + "' appears twice" + other;
  }
  return "";
}

bool is_no_finding(const std::string& name) {
  return plain(name) == "no finding";
}

bool is_disease(const std::string& name) {
  return !is_no_finding(name) && plain(name) != "support devices";
}

std::string listed(const std::vector<std::string>& names, size_t shown) {
  std::string text;
  const size_t count = std::min(shown, names.size());
  for (size_t i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + names[i];
  if (count < names.size())
    text += " and " + std::to_string(names.size() - count) + " more";
  return text;
}

void refuse_doubled(const std::vector<std::string>& names,
                    const std::string& key) {
  if (const auto doubled = doubled_finding(names); !doubled.empty())
    throw ConfigError("[config] {}: {}. Hint: remove one", key, doubled);
}

}  // namespace chexnet
