#include "picture_note.hpp"

#include "chexnet/core/text_parts.hpp"
#include "chexnet/data/image/picture_facts.hpp"

namespace chexnet {
namespace {

// Detectors and films of the chest are at most 1.3 : 1, crops of them little
// more.
constexpr int kStrip = 2;
// Of a picture that is enlarged more than this, most of the input is
// interpolated.
constexpr int kMostEnlarged = 2;

std::string note_of_size(const PictureFacts& facts, int side) {
  const std::string size = std::to_string(facts.width) + " x " +
                           std::to_string(facts.height) + " pixels";
  const auto [less, more] = std::minmax(facts.width, facts.height);
  if (more / kStrip > less) return "a strip of " + size;
  if (less < side / kMostEnlarged) return size + ", enlarged more than twice";
  return "";
}

}  // namespace

std::string picture_note(const FetchedImage& fetched,
                         std::span<const uint8_t> input, int side) {
  GrayRange range;
  range.add(input);
  std::string note = range.one_gray() ? "of one gray" : "";
  if (fetched.holds_pixels()) return note;
  const PictureFacts facts = picture_facts(fetched.bytes, fetched.origin);
  if (facts.in_color) note = joined_notes(note, "in color");
  return joined_notes(note, note_of_size(facts, side));
}

}  // namespace chexnet
