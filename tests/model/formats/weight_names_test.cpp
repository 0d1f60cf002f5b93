#include "model/formats/weight_names.hpp"

#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("names of other libraries become torchvision's") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      // arnoweng's reproduction of CheXNet: DataParallel, old torchvision
      {"module.densenet121.features.denseblock1.denselayer1.norm.1.weight",
       "features.denseblock1.denselayer1.norm1.weight"},
      {"module.densenet121.features.denseblock4.denselayer16.conv.2.weight",
       "features.denseblock4.denselayer16.conv2.weight"},
      {"module.densenet121.features.transition1.conv.weight",
       "features.transition1.conv.weight"},
      {"module.densenet121.classifier.0.weight", "classifier.weight"},
      {"densenet121.classifier.0.bias", "classifier.bias"},
      // torchvision's own files, old and new; timm's; torchxrayvision's
      {"features.denseblock2.denselayer3.norm.2.running_var",
       "features.denseblock2.denselayer3.norm2.running_var"},
      {"features.denseblock2.denselayer3.norm2.running_var",
       "features.denseblock2.denselayer3.norm2.running_var"},
      {"layer1.0.downsample.1.running_mean",
       "layer1.0.downsample.1.running_mean"},
      {"layer4.2.conv3.weight", "layer4.2.conv3.weight"},
      {"classifier.weight", "classifier.weight"},
      {"model.layer1.0.bn1.weight", "layer1.0.bn1.weight"},
      {"model.fc.bias", "fc.bias"},
      // wrappers: torch.compile in Lightning, one in the other
      {"model._orig_mod.backbone.features.norm5.bias", "features.norm5.bias"},
      {"resnet50.fc.0.weight", "fc.weight"},
      // of no known network
      {"encoder.blocks.0.attn.weight", "encoder.blocks.0.attn.weight"},
      {"remodel.fc.bias", "remodel.fc.bias"},
      {"op_threshs", "op_threshs"},
  };
  for (const auto& [theirs, ours] : cases) {
    CAPTURE(theirs);
    CHECK(torchvision_name(theirs) == ours);
  }
}

TEST_CASE("a name of a million repetitions stays as it is") {
  std::string name;
  for (int i = 0; i < 200'000; ++i) name += "model.";
  CHECK(torchvision_name(name + "x") == name + "x");
}
