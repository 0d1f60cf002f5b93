// Synthetic chest X-rays in the layout of ChestX-ray14: for trying the program,
// for tests and for tutorials. They are drawings, not patients, and say so in
// the README beside them. A finding is drawn as a visible change (a wider
// heart, a fluid level, a nodule …), with a box where it is local.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace chexnet {

struct PhantomBox {
  size_t finding;                              // index into nih_findings()
  double x = 0, y = 0, width = 0, height = 0;  // pixels
};

// One drawing. A pure function of (seed, patient, follow_up, size).
struct PhantomImage {
  int size = 0;
  std::vector<uint8_t> pixels;  // [size, size]
  std::vector<bool> findings;   // [14], order of nih_findings()
  std::vector<PhantomBox> boxes;
  int age = 0;
  char sex = 'F';
  std::string view;  // "PA" or "AP"
};
PhantomImage draw_phantom(uint64_t seed, uint32_t patient, uint32_t follow_up,
                          int size);

struct PhantomOptions {
  std::filesystem::path out;
  int images = 1000, size = 256, threads = 1;
  double test_fraction = 0.25;
  uint64_t seed = 1;
};
// Writes images/, Data_Entry_2017.csv, train_val_list.txt, test_list.txt,
// BBox_List_2017.csv and README.txt; the table comes last. `progress` gets the
// number of images done. CheckpointError when the folder is not empty or not
// writable. Rethrows what `progress` throws. Removes a set that it could not
// finish.
void write_phantom_set(const PhantomOptions& options,
                       const std::function<void(int)>& progress);

}  // namespace chexnet
