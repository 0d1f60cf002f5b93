#pragma once

#include <string>
#include <vector>

#include "chexnet/data/image_index.hpp"

namespace chexnet {

// As find_images(). `damage`, where it is given, gets each container's damage
// ([container], "" for none), and the parts before it are found; without it
// damage is a DataError.
std::vector<FoundImage> find_undamaged_images(
    const std::vector<std::string>& sources, Stores& stores,
    std::vector<Container>& containers, const Tick& tick,
    std::vector<std::string>* damage);

}  // namespace chexnet
