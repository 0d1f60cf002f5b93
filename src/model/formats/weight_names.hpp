// Other libraries' names of these networks' tensors. Ours are torchvision's
// names, and timm's are the same.
#pragma once

#include <string>

namespace chexnet {

// torchvision's name for one of torchvision (its old files too), timm,
// TorchXRayVision, a reproduction of CheXNet, or a wrapper around one of them;
// any other name as it is.
std::string torchvision_name(const std::string& name);

}  // namespace chexnet
