#include "chexnet/config/choices.hpp"

#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

using NetworkKind = NetworkChoice::Kind;
constexpr auto kNetworks =
    std::to_array<NamedChoice<NetworkKind>>({{NetworkKind::kAuto, "auto"},
                                             {NetworkKind::kInfiniBand, "ib"},
                                             {NetworkKind::kOmniPath, "opa"},
                                             {NetworkKind::kTcp, "tcp"},
                                             {NetworkKind::kUcx, "ucx"}});

// The others leave the choice of an adapter to their library.
bool takes_device(NetworkKind kind) {
  return kind == NetworkKind::kInfiniBand || kind == NetworkKind::kTcp;
}

}  // namespace

// A bare word is no folder: it may be a misspelled "auto".
std::optional<StageChoice> StageChoice::parse(const std::string& text) {
  if (text == "off") return StageChoice{Kind::kOff, ""};
  if (text == "auto") return StageChoice{Kind::kAuto, ""};
  if (text.find('/') == std::string::npos) return std::nullopt;
  return StageChoice{Kind::kFolder, text};
}

const char* StageChoice::known() {
  return "off, auto or a folder, as in /local/scratch or ./staged";
}

std::string StageChoice::text() const {
  if (kind == Kind::kOff) return "off";
  if (kind == Kind::kAuto) return "auto";
  return folder;
}

std::optional<UncertainChoice> UncertainChoice::parse(
    const std::vector<std::string>& list) {
  UncertainChoice choice;
  bool for_all = false;
  for (const auto& item : list) {
    const auto equals = item.rfind('=');
    const bool of_all = equals == std::string::npos;
    const auto policy =
        find_choice<TrainingPolicy>(of_all ? item : item.substr(equals + 1));
    if (!policy || (of_all && for_all)) return std::nullopt;
    if (of_all)
      choice.policy = *policy;
    else
      choice.of_findings.push_back({item.substr(0, equals), *policy});
    for_all = for_all || of_all;
  }
  return choice;
}

const char* UncertainChoice::known() {
  return "ignore, zero, one or smooth, and finding=one (or another) for a "
         "single finding";
}

std::vector<std::string> UncertainChoice::list() const {
  std::vector<std::string> items = {choice_name(policy)};
  for (const auto& [finding, other] : of_findings)
    items.push_back(finding + "=" + choice_name(other));
  return items;
}

std::optional<CorruptChoice> CorruptChoice::parse(const std::string& text) {
  if (text == "fail") return CorruptChoice{};
  if (text == "skip") return CorruptChoice{.skip = true};
  const auto limit = parsed_number<double>(text);
  if (!limit || !(*limit >= 0 && *limit <= 1)) return std::nullopt;
  return CorruptChoice{.skip = true, .limit = *limit};
}

const char* CorruptChoice::known() {
  return "fail, skip, or the largest fraction that is skipped, 0 to 1";
}

std::string CorruptChoice::text() const {
  if (!skip) return "fail";
  return limit == CorruptChoice{}.limit ? "skip" : number_text(limit);
}

// One fold would leave nothing to train on.
std::optional<FoldChoice> FoldChoice::parse(const std::string& text) {
  if (text == "off") return FoldChoice{};
  const auto slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const auto number = parsed_number<int>(text.substr(0, slash));
  const auto folds = parsed_number<int>(text.substr(slash + 1));
  constexpr int kMost = 1000;
  if (!number || !folds || *folds < 2 || *folds > kMost || *number < 1 ||
      *number > *folds)
    return std::nullopt;
  return FoldChoice{*number, *folds};
}

const char* FoldChoice::known() {
  return "off, or which of how many folds validates: 1/5 to 5/5";
}

std::string FoldChoice::text() const {
  return on() ? std::to_string(number) + "/" + std::to_string(folds) : "off";
}

std::optional<NetworkChoice> NetworkChoice::parse(const std::string& text) {
  const auto colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const std::string device =
      colon == std::string::npos ? "" : text.substr(colon + 1);

  for (const auto& network : kNetworks) {
    if (network.name != name) continue;
    if (!device.empty() && !takes_device(network.value)) return std::nullopt;
    return NetworkChoice{network.value, device};
  }
  return std::nullopt;
}

const char* NetworkChoice::known() {
  return "auto, ib, ib:mlx5_0, opa, ucx, tcp, tcp:eth0 or tcp:10.1.0.0/16";
}

std::string NetworkChoice::text() const {
  for (const auto& network : kNetworks)
    if (network.value == kind)
      return network.name + (device.empty() ? "" : ":" + device);
  assert(false && "a network without a name");
  return "";
}

}  // namespace chexnet
