// The plan of one phantom, drawn before any pixel. Coordinates: u to the right,
// v down, both in
// [-1, 1]. The patient's left side is on the right of the picture, as
// radiographs are read; a side is -1 = left of the picture or +1 = right.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "chexnet/core/philox.hpp"
#include "chexnet/data/phantom.hpp"

namespace chexnet {

// Columns of the table, in its order.
enum PhantomFinding {
  kAtelectasis,
  kCardiomegaly,
  kEffusion,
  kInfiltration,
  kMass,
  kNodule,
  kPneumonia,
  kPneumothorax,
  kConsolidation,
  kEdema,
  kEmphysema,
  kFibrosis,
  kPleuralThickening,
  kHernia,
  kPhantomFindings
};

// Smooth noise in [0, 1]: random lattice values, blended with a cosine.
class Noise {
 public:
  explicit Noise(Random& random);
  double at(double x, double y) const;

 private:
  static constexpr size_t kSide = 32;
  std::array<double, kSide * kSide> lattice_{};
};

// A point in one lung.
struct Spot {
  int side = 1;
  double u = 0, v = 0, radius = 0;
  double distance2(double x, double y) const;  // in radii, squared
};

struct Anatomy {
  double lung_u, lung_width, lung_top, lung_bottom;
  double heart_width, heart_v;
  double spine_u;
  double rib_pitch, rib_phase, rib_slope;
  double shoulder;
};

struct PhantomPlan {
  std::vector<bool> findings;  // [kPhantomFindings]
  int age = 0;                 // years
  char sex = 'F';
  // Lying, from the front: a larger heart, shoulder blades over the lungs.
  bool ap = false;
  Anatomy anatomy{};

  Spot mass, nodule, pneumonia, consolidation, infiltration;
  int effusion_side = 1, collapse_side = 1, band_side = 1, pleura_side = 1;
  double effusion_level = 0;  // v
  double collapse = 0;        // fraction of the lung's width that is left
  double band_v = 0;

  double exposure = 1, gamma = 1, grain = 0;
  bool marker_left = false;

  bool has(PhantomFinding finding) const { return findings[finding]; }
};

inline double square(double x) { return x * x; }

// Borders within a lung, which boxes and drawing share. lx: 0 in the middle of
// the lung, > 0 outwards; height: 0 apex, 1 base.
double half_width(const Anatomy& a, double height);  // of the lung
// v at which the lung ends below: a dome, flat in emphysema, higher on the
// picture's left (the liver).
double diaphragm(const PhantomPlan& plan, int side, double lx);
double pleural_line(const PhantomPlan& plan, double height);  // lx
double fluid_level(const PhantomPlan& plan, double lx);       // v

// `person`: what stays the same between a patient's pictures; `picture`: what
// does not. The noise of the tissue is drawn in the middle, as its position in
// the sequence is part of the format.
struct PlannedPhantom {
  PhantomPlan plan;
  Noise noise;
};
PlannedPhantom draw_plan(Random& person, Random& picture);

// Boxes of the findings that are local, in pixels of a picture of `size`.
std::vector<PhantomBox> boxes_of(const PhantomPlan& plan, int size);

// The drawing before it comes on film, [size, size], without grain; 1 is white.
std::vector<double> brightness_of(const PhantomPlan& plan, const Noise& noise,
                                  int size);

}  // namespace chexnet
