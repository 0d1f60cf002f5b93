// DICOM files among images to score: chexnet-dicom, a separate process, writes
// them as PNG into a private folder, and these replace them under the names of
// the DICOM files.
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

// Which files to take: those that may be a chest X-ray by Modality and body
// part, or all.
enum class TakenDicom { kChestXrays, kAny };

// Files that chexnet-dicom cannot convert, or skips, become problems. Null
// where there is no DICOM, or no chexnet-dicom beside this program; else the
// pictures are there as long as the folder. Calls `tick` every few files.
// CheckpointError: no room for the folder. Parts of archives and objects of
// s3:// stay as they are.
std::unique_ptr<TemporaryFolder> convert_dicom(InputImages& input,
                                               TakenDicom taken,
                                               const Tick& tick);

}  // namespace chexnet
