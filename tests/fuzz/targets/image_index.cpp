// The image index as rank 0 sends it to the other ranks.
#include "chexnet/data/image_index.hpp"

#include "fuzz/index_sum.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  const std::string text = text_of(bytes);
  // A claimed number of rows is memory, as it comes from this run's rank 0.
  if (text.find_first_not_of("0123456789") > 5) return;
  ImageIndex index;
  if (!accepted<DataError>([&] { index = ImageIndex::from_text(text); }))
    return;
  require(ImageIndex::from_text(index.to_text()) == index,
          "an index that is written reads back equal");
}

void mend(std::vector<std::byte>& bytes) {
  mend_index_sum(bytes, "chexnet-index");
}

std::vector<std::string> seeds() {
  std::vector<Container> containers = {
      {ContainerKind::kFile, "/data/1.png", 300, "v", "i"},
      {ContainerKind::kTarGz, "s3://b/x.tar.gz", 9000, "etag"}};
  std::vector<FoundImage> found = {{"/data/1.png", {0, 0, {.length = 300}}},
                                   {"2.png",
                                    {1,
                                     0,
                                     {.offset = 40,
                                      .length = 900,
                                      .stored = 800,
                                      .skip = 7,
                                      .bit = 3,
                                      .crc32c = 5,
                                      .window = {{1, 2}}}}}};
  return {ImageIndex::of_found(found, containers).to_text(),
          ImageIndex::of_found({}, {}).to_text()};
}

const Registered kTarget{{"image_index", run, mend, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
