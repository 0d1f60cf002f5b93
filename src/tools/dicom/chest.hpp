// Whether a file says that it is a chest X-ray: by its Modality (PS3.3 section
// C.7.3.1.1.1), and by the part of the body, as a word or a code.
#pragma once

#include <gdcmDataSet.h>

#include <string>

namespace chexnet {

// What the file says. One of the first two is not empty: it is no chest X-ray.
struct WhatIsShown {
  std::string other_modality;   // "Modality is CT"
  std::string other_body_part;  // "BodyPartExamined is ABDOMEN"
  // What a reader should know of one that is taken: "secondary capture".
  std::string note;
};
WhatIsShown what_is_shown(const gdcm::DataSet& set);

}  // namespace chexnet
