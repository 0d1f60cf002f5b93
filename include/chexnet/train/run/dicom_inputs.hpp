// DICOM files among images that are to be scored: chexnet-dicom, a process of
// its own, writes them as PNG into a private folder, and these take their
// place under the names of the DICOM files.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "chexnet/core/temporary_folder.hpp"
#include "chexnet/data/input_images.hpp"

namespace chexnet {

// Whether a local file is DICOM: by the ending .dcm or .dicom, or, where it has
// none of PNG and JPEG either, by its first bytes (PS3.10 section 7.1).
bool is_dicom_file(const std::string& path);

// What is taken: what may be a chest X-ray by its Modality and body part, or
// all.
enum class TakenDicom { kChestXrays, kAny };

// Files that chexnet-dicom cannot convert, or skips, become problems. Null
// where there is no DICOM, or no chexnet-dicom beside this program; else the
// pictures are there as long as the folder. `tick` hears of every few files.
// CheckpointError: no room for the folder. Parts of archives and objects of
// s3:// stay as they are.
std::unique_ptr<TemporaryFolder> convert_dicom(InputImages& input,
                                               TakenDicom taken,
                                               const Tick& tick);

}  // namespace chexnet
