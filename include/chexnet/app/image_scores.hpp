// Probabilities of single images, for a terminal, for tables and for scripts.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace chexnet {

struct ImageScore {
  std::string image;
  std::string error;                  // why it has no probabilities; else empty
  std::vector<double> probabilities;  // [K]; empty with an error
  // Finding and file of its heat maps, where some were written.
  std::vector<std::pair<std::string, std::string>> heat_maps;
};

struct ImageScores {
  std::vector<std::string> findings;  // [K]
  std::vector<ImageScore> images;     // in the order of naming
  std::size_t left_out = 0;           // files of other kinds
  double seconds = 0;                 // of reading and scoring
  std::size_t scored() const;
  double images_per_s() const;  // 0 where none was scored
};

// A line per image: the three highest findings, or what is wrong. Control
// characters of names are shown as \xHH.
std::string image_scores_text(const ImageScores& scores);
// image,prob:<finding>…,error; shortest numbers that read back equal.
std::string image_scores_csv(const ImageScores& scores);
// The JSON lines of `predict` in docs/json.md, each with its line end.
std::string image_scores_json_lines(const ImageScores& scores);
// "12 images, 11 scored, 1 not: see error; 80.1 images/s"
std::string image_scores_summary(const ImageScores& scores);

}  // namespace chexnet
