#pragma once

#include <string>
#include <vector>

#include "chexnet/data/image_index.hpp"

namespace chexnet {

// As find_images(). `damage`, where it is given, gets what is wrong with each
// container ([container], "" for nothing), and the parts before the damage are
// found; without it damage is a DataError.
std::vector<FoundImage> find_undamaged_images(
    const std::vector<std::string>& sources, Stores& stores,
    std::vector<Container>& containers, const Tick& tick,
    std::vector<std::string>* damage);

}  // namespace chexnet
