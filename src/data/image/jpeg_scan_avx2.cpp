#include "jpeg_scan_loop.hpp"

namespace chexnet {

bool decode_jpeg_scan_avx2(const JpegTables& tables, const JpegScan& scan,
                           GrayImage& into) {
  return decode_jpeg_scan(tables, scan, into);
}

}  // namespace chexnet
