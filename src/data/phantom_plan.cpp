// Draws follow each other in a fixed order, and each is made whether it is used
// or not: the seed means the same picture for ever.
#include "phantom_plan.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace chexnet {
namespace {

// Of each finding, independent; high enough to learn from a few hundred images.
constexpr double kPrevalence = 0.16;
// How often a finding is as in the patient's other pictures.
constexpr double kChronic = 0.8;

int random_side(Random& random) { return random.chance(0.5) ? 1 : -1; }

struct Bounds {
  double low, high;
};

Spot draw_spot(Random& random, const Anatomy& a, Bounds v, Bounds radius) {
  Spot spot;
  spot.side = random_side(random);
  spot.radius = random.uniform(radius.low, radius.high);
  spot.u = a.spine_u + spot.side * (a.lung_u + random.uniform(-0.08, 0.1));
  spot.v = random.uniform(v.low, v.high);
  return spot;
}

void draw_person(Random& person, Random& picture, PhantomPlan& plan) {
  plan.age = 18 + static_cast<int>(person.below(72));
  plan.sex = person.chance(0.5) ? 'M' : 'F';
  plan.findings.resize(kPhantomFindings);
  for (size_t k = 0; k < kPhantomFindings; ++k) {
    const bool chronic = person.chance(kPrevalence);
    plan.findings[k] =
        picture.chance(kChronic) ? chronic : picture.chance(kPrevalence);
  }
}

// Emphysema: long, wide lungs over a small heart.
void draw_anatomy(Random& person, Random& picture, PhantomPlan& plan) {
  const bool emphysema = plan.has(kEmphysema),
             large_heart = plan.has(kCardiomegaly);
  Anatomy& a = plan.anatomy;
  a.lung_u = person.uniform(0.36, 0.42);
  a.lung_width = person.uniform(0.25, 0.3) * (emphysema ? 1.12 : 1);
  a.lung_top = person.uniform(-0.78, -0.68);
  a.lung_bottom = person.uniform(0.42, 0.52) - (plan.ap ? 0.08 : 0) +
                  (emphysema ? 0.22 : 0);
  a.heart_width = person.uniform(0.27, 0.32) * (plan.ap ? 1.08 : 1) *
                  (large_heart ? 1.5 : 1) *
                  (emphysema && !large_heart ? 0.8 : 1);
  a.heart_v = a.lung_bottom - 0.2;
  a.spine_u = picture.uniform(-0.04, 0.04);
  a.rib_pitch = person.uniform(0.17, 0.2);
  a.rib_phase = person.uniform();
  a.rib_slope = person.uniform(0.5, 0.8);
  a.shoulder = person.uniform(-0.86, -0.78);
}

void draw_places(Random& picture, PhantomPlan& plan) {
  const Anatomy& a = plan.anatomy;
  plan.mass = draw_spot(picture, a, {-0.45, 0.2}, {0.13, 0.17});
  plan.nodule = draw_spot(picture, a, {-0.5, 0.25}, {0.055, 0.075});
  plan.pneumonia = draw_spot(picture, a, {0.0, 0.3}, {0.2, 0.27});
  plan.consolidation = draw_spot(picture, a, {-0.5, -0.2}, {0.17, 0.23});
  plan.infiltration = draw_spot(picture, a, {-0.2, 0.15}, {0.26, 0.34});
  plan.effusion_side = random_side(picture);
  plan.collapse_side = random_side(picture);
  plan.band_side = random_side(picture);
  plan.pleura_side = random_side(picture);
  plan.effusion_level = a.lung_bottom - picture.uniform(0.18, 0.34);
  plan.collapse = picture.uniform(0.6, 0.72);
  plan.band_v = a.lung_bottom - picture.uniform(0.12, 0.24);
}

void draw_exposure(Random& picture, PhantomPlan& plan) {
  plan.exposure = picture.uniform(0.9, 1.1);
  plan.gamma = picture.uniform(0.85, 1.2);
  plan.grain = picture.uniform(0.008, 0.025) * (plan.ap ? 1.3 : 1);
  plan.marker_left = picture.chance(0.5);
}

// Collects boxes in pixels, cut at the border of the picture.
class Boxes {
 public:
  Boxes(const PhantomPlan& plan, int size) : plan_(plan), half_(size / 2.0) {}

  void add(PhantomFinding finding, double u0, double v0, double u1, double v1) {
    if (!plan_.has(finding)) return;
    const double x = (clip(u0) + 1) * half_, y = (clip(v0) + 1) * half_;
    const double width = (clip(u1) - clip(u0)) * half_,
                 height = (clip(v1) - clip(v0)) * half_;
    boxes.push_back({finding, x, y, width, height});
  }
  void add_spot(PhantomFinding finding, const Spot& s, double reach) {
    const double r = reach * s.radius;
    add(finding, s.u - r, s.v - r, s.u + r, s.v + r);
  }
  void add_lung(PhantomFinding finding, int side, double v0, double v1) {
    const Anatomy& a = plan_.anatomy;
    const double inner = a.spine_u + side * (a.lung_u - a.lung_width);
    const double outer = a.spine_u + side * (a.lung_u + a.lung_width);
    add(finding, std::min(inner, outer), v0, std::max(inner, outer), v1);
  }

  // Of a lung from `lx` outwards.
  void add_outer(PhantomFinding finding, int side, double lx, double v0,
                 double v1) {
    const Anatomy& a = plan_.anatomy;
    const double inner = a.spine_u + side * (a.lung_u + lx);
    const double outer = a.spine_u + side * (a.lung_u + half_width(a, 1));
    add(finding, std::min(inner, outer), v0, std::max(inner, outer), v1);
  }

  std::vector<PhantomBox> boxes;

 private:
  static double clip(double w) { return std::clamp(w, -1.0, 1.0); }

  const PhantomPlan& plan_;
  double half_;
};

}  // namespace

double half_width(const Anatomy& a, double height) {
  return a.lung_width *
         std::sqrt(std::clamp(
             1.15 - square(std::max(0.0, 0.62 - height) / 0.62), 0.0, 1.15));
}

double diaphragm(const PhantomPlan& plan, int side, double lx) {
  const bool flat = plan.has(kEmphysema);
  return plan.anatomy.lung_bottom - (side < 0 ? 0.05 : 0) +
         (flat ? 0.05 : 0.32) * square(lx + 0.05) / 0.3 +
         (flat ? 0 : 0.22 * std::max(0.0, lx) * std::max(0.0, lx) / 0.06);
}

double pleural_line(const PhantomPlan& plan, double height) {
  return half_width(plan.anatomy, height) * plan.collapse -
         0.1 * std::max(0.0, height - 0.6);
}

double fluid_level(const PhantomPlan& plan, double lx) {
  return plan.effusion_level - 0.25 * square(lx / 0.28) * (lx > 0 ? 1.0 : 0.4);
}

Noise::Noise(Random& random) {
  for (auto& value : lattice_) value = random.uniform();
}

double Noise::at(double x, double y) const {
  const double fx = std::floor(x), fy = std::floor(y);
  const auto ease = [](double t) { return t * t * (3 - 2 * t); };
  const double tx = ease(x - fx), ty = ease(y - fy);
  const auto value = [&](double i, double j) {
    const auto a = static_cast<unsigned>(static_cast<int>(i));
    const auto b = static_cast<unsigned>(static_cast<int>(j));
    return lattice_[(a % kSide) * kSide + b % kSide];
  };
  const double top = value(fx, fy) * (1 - tx) + value(fx + 1, fy) * tx;
  const double bottom =
      value(fx, fy + 1) * (1 - tx) + value(fx + 1, fy + 1) * tx;
  return top * (1 - ty) + bottom * ty;
}

double Spot::distance2(double x, double y) const {
  return (square(x - u) + square(y - v)) / square(radius);
}

PlannedPhantom draw_plan(Random& person, Random& picture) {
  PhantomPlan plan;
  draw_person(person, picture, plan);
  plan.ap = picture.chance(0.4);
  draw_anatomy(person, picture, plan);
  draw_places(picture, plan);
  const Noise noise(picture);
  draw_exposure(picture, plan);
  return {plan, noise};
}

std::vector<PhantomBox> boxes_of(const PhantomPlan& plan, int size) {
  assert(size > 0);
  const Anatomy& a = plan.anatomy;
  const double heart_u = a.spine_u + 0.13 * a.heart_width / 0.3;
  Boxes b(plan, size);
  b.add_lung(kAtelectasis, plan.band_side, plan.band_v - 0.1,
             plan.band_v + 0.1);
  b.add(kCardiomegaly, heart_u - a.heart_width, a.heart_v - 0.3,
        heart_u + a.heart_width, a.heart_v + 0.3);
  // Fluid climbs at the outer wall and fills the corner below.
  const double wall = half_width(a, 1);
  b.add_outer(kEffusion, plan.effusion_side, -a.lung_width,
              fluid_level(plan, wall),
              diaphragm(plan, plan.effusion_side, wall));
  b.add_spot(kInfiltration, plan.infiltration, 1.2);
  b.add_spot(kMass, plan.mass, 1.05);
  b.add_spot(kNodule, plan.nodule, 1.1);
  b.add_spot(kPneumonia, plan.pneumonia, 1.1);
  // The air outside of the pleural line, which is furthest in at the apex.
  b.add_outer(kPneumothorax, plan.collapse_side, pleural_line(plan, 0),
              a.lung_top, diaphragm(plan, plan.collapse_side, wall));
  b.add_spot(kConsolidation, plan.consolidation, 1.05);
  return std::move(b.boxes);
}

}  // namespace chexnet
