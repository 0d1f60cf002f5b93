// The smaller tables: NIH's list of boxes, and other names of findings.
#include <cmath>

#include "chexnet/data/boxes.hpp"
#include "data/finding_names.hpp"
#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  static MemoryFile file;
  const std::string path = file.holding(bytes);
  accepted<DataError>([&] {
    for (const auto& box : read_boxes(path)) {
      require(box.width > 0 && box.height > 0, "a box has an area");
      require(std::isfinite(box.x) && std::isfinite(box.y), "and a place");
      require(!box.image.empty() && !box.finding.empty(), "of something");
    }
  });
  accepted<DataError>([&] {
    FindingNames names(path, {});
    Manifest table;
    table.findings = {"Mass", "Edema", "Pleural Effusion"};
    table.images = {"a", "b"};
    table.labels = {1, 0, -1, NAN, 0, 1};
    names.apply(table);
    require(table.labels.size() == 2 * table.findings.size(),
            "each row has its labels");
  });
}

std::vector<std::string> seeds() {
  return {
      "Image Index,Finding Label,Bbox [x,y,w,h],,,\n"
      "00013118_008.png,Atelectasis,225.08,547.02,86.78,79.19,,,\n",
      "name,finding\nPleural Effusion,Edema\nMass,Lump\n"};
}

const Registered kTarget{{"finding_tables", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
