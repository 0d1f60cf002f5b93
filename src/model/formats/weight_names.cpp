#include "weight_names.hpp"

#include <array>
#include <regex>

namespace chexnet {
namespace {

struct Pattern {
  std::regex from;
  const char* to;
};

const auto& patterns() {
  static const std::array<Pattern, 4> kPatterns = {{
      // DataParallel, torch.compile, Lightning, TorchXRayVision's ResNet
      {std::regex(R"(^((module|_orig_mod|model|net|network|backbone)\.)+)"),
       ""},
      // CheXNet reproductions hold torchvision's network as a member.
      {std::regex(R"(^(densenet|resnet)\d+\.)"), ""},
      // torchvision's DenseNets before 0.3, whose files are still downloaded
      {std::regex(R"((\.denselayer\d+\.(norm|conv))\.([12])\.)"), "$1$3."},
      // a linear layer followed by a sigmoid
      {std::regex(R"(^(classifier|fc)\.0\.)"), "$1."},
  }};
  return kPatterns;
}

}  // namespace

// std::regex calls itself for each repetition: a name of megabytes would
// overflow the stack.
constexpr size_t kLongestName = 1000;

std::string torchvision_name(const std::string& name) {
  if (name.size() > kLongestName) return name;
  std::string result = name;
  for (const auto& pattern : patterns())
    result = std::regex_replace(result, pattern.from, pattern.to);
  return result;
}

}  // namespace chexnet
