// The drawing of one phantom. Coordinates: u to the right, v down, both in [-1, 1]; brightness as
// on film: air dark, tissue gray, bone and fluid bright. The patient's left side is on the right of
// the picture, as radiographs are read.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "chexnet/core/philox.hpp"
#include "chexnet/data/phantom.hpp"

namespace chexnet {
namespace {

enum Finding {
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
  kCount
};

constexpr double kPrevalence =
    0.16;  // of each finding, independent; high enough to learn from a few hundred images

double smoothstep(double edge, double softness, double x) {
  return 1 / (1 + std::exp(-(x - edge) / softness));
}
double bump(double d2) { return std::exp(-d2); }
double square(double x) { return x * x; }

// Smooth noise in [0, 1]: random lattice values, blended with a cosine.
class Noise {
 public:
  explicit Noise(Random& random) {
    for (auto& value : lattice_) value = random.uniform();
  }
  double at(double x, double y) const {
    const double fx = std::floor(x), fy = std::floor(y);
    const auto ease = [](double t) { return t * t * (3 - 2 * t); };
    const double tx = ease(x - fx), ty = ease(y - fy);
    const auto value = [&](double i, double j) {
      const auto a = static_cast<unsigned>(static_cast<int>(i)),
                 b = static_cast<unsigned>(static_cast<int>(j));
      return lattice_[(a % kSide) * kSide + b % kSide];
    };
    const double top = value(fx, fy) * (1 - tx) + value(fx + 1, fy) * tx;
    const double bottom = value(fx, fy + 1) * (1 - tx) + value(fx + 1, fy + 1) * tx;
    return top * (1 - ty) + bottom * ty;
  }

 private:
  static constexpr unsigned kSide = 32;
  std::array<double, kSide * kSide> lattice_{};
};

// A place in one lung. side: -1 = left of the picture, +1 = right.
struct Spot {
  int side = 1;
  double u = 0, v = 0, radius = 0;
  double distance2(double x, double y) const {
    return (square(x - u) + square(y - v)) / square(radius);
  }
};

struct Anatomy {
  double lung_u, lung_width, lung_top, lung_bottom, heart_width, heart_v, spine_u, rib_pitch,
      rib_phase, rib_slope, shoulder;
};

Spot spot(Random& random, const Anatomy& a, double v_low, double v_high, double r_low,
          double r_high) {
  Spot s;
  s.side = random.chance(0.5) ? 1 : -1;
  s.radius = random.uniform(r_low, r_high);
  s.u = a.spine_u + s.side * (a.lung_u + random.uniform(-0.08, 0.1));
  s.v = random.uniform(v_low, v_high);
  return s;
}

}  // namespace

PhantomImage draw_phantom(std::uint64_t seed, std::uint32_t patient, std::uint32_t follow_up,
                          int size) {
  Random person(seed, Purpose::kPhantom, patient);  // what stays the same between follow-ups
  Random random(seed, Purpose::kPhantom,
                (std::uint64_t{patient} << 12) + follow_up + (std::uint64_t{1} << 40));
  PhantomImage image;
  image.size = size;
  image.age = 18 + static_cast<int>(person.below(72));
  image.sex = person.chance(0.5) ? 'M' : 'F';
  image.findings.resize(kCount);
  for (int k = 0; k < kCount; ++k) {
    const bool chronic = person.chance(kPrevalence);
    image.findings[static_cast<std::size_t>(k)] =
        random.chance(0.8) ? chronic : random.chance(kPrevalence);
  }
  const auto has = [&](Finding f) { return static_cast<bool>(image.findings[f]); };
  const bool ap = random.chance(0.4);
  image.view = ap ? "AP" : "PA";

  Anatomy a{};
  a.lung_u = person.uniform(0.36, 0.42);
  a.lung_width = person.uniform(0.25, 0.3) * (has(kEmphysema) ? 1.12 : 1);
  a.lung_top = person.uniform(-0.78, -0.68);
  a.lung_bottom = person.uniform(0.42, 0.52) - (ap ? 0.08 : 0) + (has(kEmphysema) ? 0.22 : 0);
  a.heart_width = person.uniform(0.27, 0.32) * (ap ? 1.08 : 1) * (has(kCardiomegaly) ? 1.5 : 1) *
                  (has(kEmphysema) && !has(kCardiomegaly) ? 0.8 : 1);
  a.heart_v = a.lung_bottom - 0.2;
  a.spine_u = random.uniform(-0.04, 0.04);
  a.rib_pitch = person.uniform(0.17, 0.2);
  a.rib_phase = person.uniform();
  a.rib_slope = person.uniform(0.5, 0.8);
  a.shoulder = person.uniform(-0.86, -0.78);

  const Spot mass = spot(random, a, -0.45, 0.2, 0.13, 0.17);
  const Spot nodule = spot(random, a, -0.5, 0.25, 0.055, 0.075);
  const Spot pneumonia = spot(random, a, 0.0, 0.3, 0.2, 0.27);
  const Spot consolidation = spot(random, a, -0.5, -0.2, 0.17, 0.23);
  const Spot infiltration = spot(random, a, -0.2, 0.15, 0.26, 0.34);
  const int effusion_side = random.chance(0.5) ? 1 : -1,
            collapse_side = random.chance(0.5) ? 1 : -1, band_side = random.chance(0.5) ? 1 : -1,
            pleura_side = random.chance(0.5) ? 1 : -1;
  const double effusion_level = a.lung_bottom - random.uniform(0.18, 0.34);
  const double collapse = random.uniform(0.6, 0.72);
  const double band_v = a.lung_bottom - random.uniform(0.12, 0.24);
  const Noise noise(random);
  const double exposure = random.uniform(0.9, 1.1), gamma = random.uniform(0.85, 1.2),
               grain = random.uniform(0.008, 0.025) * (ap ? 1.3 : 1);
  const bool marker_left = random.chance(0.5);

  image.pixels.resize(static_cast<std::size_t>(size) * static_cast<std::size_t>(size));
  for (int row = 0; row < size; ++row) {
    const double v = 2 * (row + 0.5) / size - 1;
    for (int col = 0; col < size; ++col) {
      const double u = 2 * (col + 0.5) / size - 1;
      const double x = u - a.spine_u;
      // Body: shoulders above, chest wall beside.
      const double half_body = 0.8 + 0.14 * smoothstep(-0.5, 0.08, -v) -
                               0.55 * smoothstep(a.shoulder, 0.03, -v + 2 * a.shoulder);
      double brightness = 0.03 + 0.5 * smoothstep(0, 0.02, half_body - std::abs(x));
      double bright = 0;  // what is on top of it
      for (const int side : {-1, 1}) {
        const double lx = side * x - a.lung_u;  // 0 in the middle of this lung, > 0 outwards
        const double height = (v - a.lung_top) / (a.lung_bottom - a.lung_top);  // 0 apex, 1 base
        const double width =
            a.lung_width *
            std::sqrt(std::clamp(1.15 - square(std::max(0.0, 0.62 - height) / 0.62), 0.0, 1.15));
        // Diaphragm: a dome, flat in emphysema, higher on the picture's left (the liver).
        const double base =
            a.lung_bottom - (side < 0 ? 0.05 : 0) +
            (has(kEmphysema) ? 0.05 : 0.32) * square(lx + 0.05) / 0.3 +
            (has(kEmphysema) ? 0 : 0.22 * std::max(0.0, lx) * std::max(0.0, lx) / 0.06);
        double lung = smoothstep(0, 0.012, width - std::abs(lx)) *
                      smoothstep(0, 0.02, v - a.lung_top) * smoothstep(0, 0.015, base - v);
        if (lung < 1e-3) continue;
        const double air = has(kEmphysema) ? 0.42 : 0.32;
        double markings = 0.10 * bump(square((lx + 0.16) / 0.14) + square((height - 0.45) / 0.22)) +
                          0.05 * (noise.at(u * 9 + 40, v * 9) - 0.5);
        double opacity = 0;
        if (has(kPneumothorax) && side == collapse_side) {
          const double edge = width * collapse - 0.1 * std::max(0.0, height - 0.6);  // pleural line
          const double outside = smoothstep(edge, 0.006, lx);
          markings *= 1 - outside;
          opacity -= 0.17 * outside;
          opacity += 0.3 * bump(square((lx - edge) / 0.013));
        }
        if (has(kEffusion) && side == effusion_side) {
          const double meniscus = effusion_level - 0.25 * square(lx / 0.28) * (lx > 0 ? 1.0 : 0.4);
          opacity += 0.42 * smoothstep(meniscus, 0.02, v);
        }
        if (has(kPneumonia) && side == pneumonia.side)
          opacity += 0.3 * bump(square(pneumonia.distance2(u, v))) *
                     (0.7 + 0.6 * noise.at(u * 12, v * 12 + 7));
        if (has(kConsolidation) && side == consolidation.side)
          opacity += 0.36 * smoothstep(0, 0.06, 1 - consolidation.distance2(u, v));
        if (has(kInfiltration) && side == infiltration.side)
          opacity += 0.34 * bump(infiltration.distance2(u, v)) *
                     smoothstep(0.52, 0.05, noise.at(u * 16 + 3, v * 16));
        if (has(kMass) && side == mass.side)
          opacity += 0.42 * smoothstep(0, 0.1, 1 - mass.distance2(u, v));
        if (has(kNodule) && side == nodule.side)
          opacity += 0.5 * smoothstep(0, 0.15, 1 - nodule.distance2(u, v));
        if (has(kEdema))
          opacity += 0.26 * bump(square((lx + 0.08) / 0.2) + square((height - 0.5) / 0.3)) *
                     (0.8 + 0.4 * noise.at(u * 7 + 11, v * 7));
        if (has(kAtelectasis) && side == band_side)
          opacity += 0.4 * bump(square((v - band_v - 0.25 * lx) / 0.028));
        if (has(kFibrosis)) {
          const double lines =
              std::abs(std::sin(38 * (u + 0.5 * v) + 5 * noise.at(u * 5, v * 5))) *
              std::abs(std::sin(38 * (v - 0.5 * u) + 5 * noise.at(u * 5 + 9, v * 5)));
          opacity += 0.34 * (1 - smoothstep(0.3, 0.06, lines)) * smoothstep(0.45, 0.08, height);
        }
        if (has(kPleuralThickening) && side == pleura_side)
          opacity += 0.38 * smoothstep(width - 0.075, 0.012, lx) * smoothstep(0.1, 0.05, height);
        brightness += lung * (-air + markings + opacity);
        // Ribs: arcs that fall outwards.
        const double arc = (v + a.rib_slope * square(lx + 0.3) * 0.6) / a.rib_pitch + a.rib_phase;
        bright = std::max(bright, lung * 0.09 * bump(square((arc - std::round(arc)) / 0.16)));
      }
      brightness += bright;
      // Spine, upper mediastinum with the aortic option, heart, collar bones.
      brightness += 0.12 * bump(square(x / 0.09)) +
                    0.03 * bump(square(x / 0.07)) * std::cos(2 * std::numbers::pi * v / 0.13);
      const auto cover = [&](double amount, double target) {
        brightness += amount * std::max(0.0, target - brightness);
      };
      cover(smoothstep(0, 0.015, 0.13 + 0.02 * v - std::abs(x)), 0.62);
      cover(smoothstep(0, 0.15, 1 - square((x - 0.12) / 0.08) - square((v + 0.36) / 0.08)), 0.62);
      const double heart =
          square((x - 0.13 * a.heart_width / 0.3) / a.heart_width) +
          square((v - a.heart_v - 0.3 * (x - 0.1)) / (0.27 + 0.2 * (a.heart_width - 0.3)));
      cover(smoothstep(0, 0.07, 1 - heart), 0.66);
      if (has(kHernia)) {
        const double sac = square((x + 0.02) / 0.13) + square((v - a.lung_bottom + 0.14) / 0.13);
        if (sac < 1.3) {
          brightness += 0.25 * bump(square((sac - 1) / 0.12));
          if (v < a.lung_bottom - 0.14) brightness -= 0.34 * smoothstep(0, 0.05, 0.95 - sac);
        }
      }
      for (const int side : {-1, 1})
        brightness += 0.13 *
                      bump(square((v - a.lung_top - 0.1 + 0.22 * (side * x - 0.3)) / 0.022)) *
                      smoothstep(0.1, 0.02, side * x) * smoothstep(0, 0.02, 0.66 - side * x);
      if (ap)
        brightness +=
            0.05 * smoothstep(0.5, 0.03, std::abs(x)) * smoothstep(0.25, 0.05, -v);  // scapulae
      // The technician's marker.
      const double mx = marker_left ? u + 0.88 : u - 0.88;
      if (std::abs(mx) < 0.035 && std::abs(v + 0.88) < 0.05)
        brightness = std::abs(mx) < 0.012 || v + 0.88 > 0.03 ? 0.95 : brightness;
      brightness =
          std::pow(std::clamp(brightness * exposure, 0.0, 1.0), gamma) + grain * random.normal();
      image.pixels[static_cast<std::size_t>(row) * static_cast<std::size_t>(size) +
                   static_cast<std::size_t>(col)] =
          static_cast<std::uint8_t>(std::clamp(std::lround(255 * brightness), 0L, 255L));
    }
  }

  const auto box = [&](Finding f, double u0, double v0, double u1, double v1) {
    if (!has(f)) return;
    const double half = size / 2.0;
    const auto clip = [](double w) { return std::clamp(w, -1.0, 1.0); };
    image.boxes.push_back({f, (clip(u0) + 1) * half, (clip(v0) + 1) * half,
                           (clip(u1) - clip(u0)) * half, (clip(v1) - clip(v0)) * half});
  };
  const auto spot_box = [&](Finding f, const Spot& s, double reach) {
    box(f, s.u - reach * s.radius, s.v - reach * s.radius, s.u + reach * s.radius,
        s.v + reach * s.radius);
  };
  const auto lung_box = [&](Finding f, int side, double v0, double v1) {
    const double inner = a.spine_u + side * (a.lung_u - a.lung_width),
                 outer = a.spine_u + side * (a.lung_u + a.lung_width);
    box(f, std::min(inner, outer), v0, std::max(inner, outer), v1);
  };
  lung_box(kAtelectasis, band_side, band_v - 0.1, band_v + 0.1);
  box(kCardiomegaly, a.spine_u + 0.13 * a.heart_width / 0.3 - a.heart_width, a.heart_v - 0.3,
      a.spine_u + 0.13 * a.heart_width / 0.3 + a.heart_width, a.heart_v + 0.3);
  lung_box(kEffusion, effusion_side, effusion_level - 0.2, a.lung_bottom + 0.1);
  spot_box(kInfiltration, infiltration, 1.2);
  spot_box(kMass, mass, 1.05);
  spot_box(kNodule, nodule, 1.1);
  spot_box(kPneumonia, pneumonia, 1.1);
  lung_box(kPneumothorax, collapse_side, a.lung_top, a.lung_bottom);
  spot_box(kConsolidation, consolidation, 1.05);
  return image;
}

}  // namespace chexnet
