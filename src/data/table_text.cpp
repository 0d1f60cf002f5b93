#include "chexnet/data/table_text.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/temporary_folder.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/data/image_source.hpp"
#include "chexnet/data/storage/stores.hpp"

namespace chexnet {

std::string table_text(const std::string& path, const S3Config& s3) {
  if (!is_s3(path)) return read_text(path);
  std::vector<std::byte> bytes;
  Stores(s3_options(s3)).of(path).read_whole(path, bytes);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!path.ends_with(".gz")) return text;
  const TemporaryFolder folder("files", "chexnet-table");
  const auto copy = folder.path() / "table.gz";
  write_atomically(copy, text);
  return read_text(copy);
}

}  // namespace chexnet
