#include "row_writer.hpp"

#include <algorithm>
#include <iostream>
#include <utility>

#include "chexnet/core/log.hpp"
#include "chexnet/core/plain_text.hpp"

namespace chexnet {

size_t widest_name(const std::vector<InputImage>& images) {
  size_t width = 0;
  for (const auto& image : images)
    width = std::max(width, printable(image.name).size());
  return width;
}

RowWriter::RowWriter(const InputSet& set, ImageScoreRows rows,
                     const RowPlaces& places)
    : set_(set),
      rows_(std::move(rows)),
      json_(places.json),
      text_(!places.json && places.csv.empty()) {
  summary_.left_out = set.left_out;
  if (!places.csv.empty()) csv_.emplace(places.csv);
  if (csv_) csv_->write(rows_.csv_heading());
  if (text_) std::cout << rows_.text_heading();
  for (const auto& sentence : rows_.limits_of_thresholds()) {
    if (text_)
      std::cout << sentence << "\n";
    else
      log_info(sentence);
  }
}

// Scores come in the order of the images that could be opened. The rows of
// those that could not go in between, so the output has the input's order.
void RowWriter::take(ImageScore score) {
  write_absent();
  score.image = set_.images[next_++].name;
  write(score);
  std::cout << std::flush;
}

// The CSV appears under its name only here: a run that was stopped leaves none.
ImageScoresSummary RowWriter::finish(double seconds) {
  write_absent();
  summary_.seconds = seconds;
  if (csv_) csv_->commit();
  if (json_) std::cout << summary_json(summary_, rows_);
  std::cout << std::flush;
  return summary_;
}

void RowWriter::write_absent() {
  for (; next_ < set_.images.size() && !set_.images[next_].problem.empty();
       ++next_)
    write({set_.images[next_].name, set_.images[next_].problem, {}, {}});
}

void RowWriter::write(const ImageScore& image) {
  ++summary_.images;
  summary_.scored += image.error.empty() ? 1 : 0;
  summary_.noted += image.note.empty() ? 0 : 1;
  if (csv_) csv_->write(rows_.csv(image));
  if (json_) std::cout << rows_.json(image);
  if (text_) std::cout << rows_.text(image);
}

}  // namespace chexnet
