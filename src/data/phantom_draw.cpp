// The drawing of one phantom, pixel by pixel from back to front: body, lungs
// with what lies in them, ribs, what lies in the middle, collar bones, the
// technician's marker, film. Brightness is as on film: air dark, tissue gray,
// bone and fluid bright.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

#include "chexnet/core/philox.hpp"
#include "chexnet/data/phantom.hpp"
#include "phantom_plan.hpp"

namespace chexnet {
namespace {

double smoothstep(double edge, double softness, double x) {
  return 1 / (1 + std::exp(-(x - edge) / softness));
}
double bump(double d2) { return std::exp(-d2); }

// One lung at one pixel.
struct LungPoint {
  int side;
  double u, v;
  double lx;      // 0 in the middle of this lung, > 0 outwards
  double height;  // 0 apex, 1 base
  double width;   // of the lung at this height, half
};

// Something bright in front: brightness moves towards `target` by `amount`.
void cover(double& brightness, double amount, double target) {
  brightness += amount * std::max(0.0, target - brightness);
}

class Painter {
 public:
  Painter(const PhantomPlan& plan, const Noise& noise)
      : plan_(plan), noise_(noise), a_(plan.anatomy) {}

  // Without the film's grain.
  double brightness(double u, double v) const {
    const double x = u - a_.spine_u;
    double brightness = body(x, v);
    double ribs = 0;
    for (const int side : {-1, 1}) add_lung(side, u, v, x, brightness, ribs);
    brightness += ribs;
    add_middle(x, v, brightness);
    if (plan_.has(kHernia)) add_hernia(x, v, brightness);
    for (const int side : {-1, 1}) brightness += collar_bone(side, x, v);
    if (plan_.ap) brightness += shoulder_blades(x, v);
    return marked(u, v, brightness);
  }

 private:
  // Shoulders above, chest wall beside.
  double body(double x, double v) const {
    const double half_body =
        0.8 + 0.14 * smoothstep(-0.5, 0.08, -v) -
        0.55 * smoothstep(a_.shoulder, 0.03, -v + 2 * a_.shoulder);
    return 0.03 + 0.5 * smoothstep(0, 0.02, half_body - std::abs(x));
  }

  void add_lung(int side, double u, double v, double x, double& brightness,
                double& ribs) const {
    LungPoint p{};
    p.side = side;
    p.u = u;
    p.v = v;
    p.lx = side * x - a_.lung_u;
    p.height = (v - a_.lung_top) / (a_.lung_bottom - a_.lung_top);
    p.width = half_width(a_, p.height);
    const double lung = smoothstep(0, 0.012, p.width - std::abs(p.lx)) *
                        smoothstep(0, 0.02, v - a_.lung_top) *
                        smoothstep(0, 0.015, diaphragm(plan_, side, p.lx) - v);
    if (lung < 1e-3) return;

    const double air = plan_.has(kEmphysema) ? 0.42 : 0.32;
    double markings = 0.10 * bump(square((p.lx + 0.16) / 0.14) +
                                  square((p.height - 0.45) / 0.22)) +
                      0.05 * (noise_.at(u * 9 + 40, v * 9) - 0.5);
    double opacity = 0;
    add_pleura(p, markings, opacity);
    add_spots(p, opacity);
    add_patterns(p, opacity);
    brightness += lung * (-air + markings + opacity);

    // Ribs: arcs that fall outwards.
    const double arc =
        (v + a_.rib_slope * square(p.lx + 0.3) * 0.6) / a_.rib_pitch +
        a_.rib_phase;
    ribs = std::max(ribs,
                    lung * 0.09 * bump(square((arc - std::round(arc)) / 0.16)));
  }

  // Air and fluid around the lung.
  void add_pleura(const LungPoint& p, double& markings, double& opacity) const {
    if (plan_.has(kPneumothorax) && p.side == plan_.collapse_side) {
      // The pleural line, with no markings outside of it.
      const double edge = pleural_line(plan_, p.height);
      const double outside = smoothstep(edge, 0.006, p.lx);
      markings *= 1 - outside;
      opacity -= 0.17 * outside;
      opacity += 0.3 * bump(square((p.lx - edge) / 0.013));
    }
    if (plan_.has(kEffusion) && p.side == plan_.effusion_side) {
      const double meniscus = fluid_level(plan_, p.lx);
      opacity += 0.42 * smoothstep(meniscus, 0.02, p.v);
    }
  }

  // Findings that are local.
  void add_spots(const LungPoint& p, double& opacity) const {
    const double u = p.u, v = p.v;
    if (plan_.has(kPneumonia) && p.side == plan_.pneumonia.side)
      opacity += 0.3 * bump(square(plan_.pneumonia.distance2(u, v))) *
                 (0.7 + 0.6 * noise_.at(u * 12, v * 12 + 7));
    if (plan_.has(kConsolidation) && p.side == plan_.consolidation.side)
      opacity +=
          0.36 * smoothstep(0, 0.06, 1 - plan_.consolidation.distance2(u, v));
    if (plan_.has(kInfiltration) && p.side == plan_.infiltration.side)
      opacity += 0.34 * bump(plan_.infiltration.distance2(u, v)) *
                 smoothstep(0.52, 0.05, noise_.at(u * 16 + 3, v * 16));
    if (plan_.has(kMass) && p.side == plan_.mass.side)
      opacity += 0.42 * smoothstep(0, 0.1, 1 - plan_.mass.distance2(u, v));
    if (plan_.has(kNodule) && p.side == plan_.nodule.side)
      opacity += 0.5 * smoothstep(0, 0.15, 1 - plan_.nodule.distance2(u, v));
  }

  // Shading that follows the lung: haze around the root, a band, nets at the
  // base, a thick border.
  void add_patterns(const LungPoint& p, double& opacity) const {
    const double u = p.u, v = p.v;
    if (plan_.has(kEdema))
      opacity +=
          0.26 *
          bump(square((p.lx + 0.08) / 0.2) + square((p.height - 0.5) / 0.3)) *
          (0.8 + 0.4 * noise_.at(u * 7 + 11, v * 7));
    if (plan_.has(kAtelectasis) && p.side == plan_.band_side)
      opacity += 0.4 * bump(square((v - plan_.band_v - 0.25 * p.lx) / 0.028));
    if (plan_.has(kFibrosis)) {
      const double falling =
          std::sin(38 * (u + 0.5 * v) + 5 * noise_.at(u * 5, v * 5));
      const double rising =
          std::sin(38 * (v - 0.5 * u) + 5 * noise_.at(u * 5 + 9, v * 5));
      const double lines = std::abs(falling) * std::abs(rising);
      opacity += 0.34 * (1 - smoothstep(0.3, 0.06, lines)) *
                 smoothstep(0.45, 0.08, p.height);
    }
    if (plan_.has(kPleuralThickening) && p.side == plan_.pleura_side)
      opacity += 0.38 * smoothstep(p.width - 0.075, 0.012, p.lx) *
                 smoothstep(0.1, 0.05, p.height);
  }

  // Spine, upper mediastinum with the aortic knob, heart.
  void add_middle(double x, double v, double& brightness) const {
    brightness += 0.12 * bump(square(x / 0.09)) +
                  0.03 * bump(square(x / 0.07)) *
                      std::cos(2 * std::numbers::pi * v / 0.13);
    cover(brightness, smoothstep(0, 0.015, 0.13 + 0.02 * v - std::abs(x)),
          0.62);
    const double knob =
        1 - square((x - 0.12) / 0.08) - square((v + 0.36) / 0.08);
    cover(brightness, smoothstep(0, 0.15, knob), 0.62);
    const double heart =
        square((x - 0.13 * a_.heart_width / 0.3) / a_.heart_width) +
        square((v - a_.heart_v - 0.3 * (x - 0.1)) /
               (0.27 + 0.2 * (a_.heart_width - 0.3)));
    cover(brightness, smoothstep(0, 0.07, 1 - heart), 0.66);
  }

  // A sac behind the heart, with air above its fluid.
  void add_hernia(double x, double v, double& brightness) const {
    const double sac =
        square((x + 0.02) / 0.13) + square((v - a_.lung_bottom + 0.14) / 0.13);
    if (sac >= 1.3) return;
    brightness += 0.25 * bump(square((sac - 1) / 0.12));
    if (v < a_.lung_bottom - 0.14)
      brightness -= 0.34 * smoothstep(0, 0.05, 0.95 - sac);
  }

  double collar_bone(int side, double x, double v) const {
    const double across =
        (v - a_.lung_top - 0.1 + 0.22 * (side * x - 0.3)) / 0.022;
    return 0.13 * bump(square(across)) * smoothstep(0.1, 0.02, side * x) *
           smoothstep(0, 0.02, 0.66 - side * x);
  }

  static double shoulder_blades(double x, double v) {
    return 0.05 * smoothstep(0.5, 0.03, std::abs(x)) *
           smoothstep(0.25, 0.05, -v);
  }

  // The technician's marker, a letter L in an upper corner.
  double marked(double u, double v, double brightness) const {
    const double x = plan_.marker_left ? u + 0.88 : u - 0.88;
    const double y = v + 0.88;
    const bool inside = std::abs(x) < 0.035 && std::abs(y) < 0.05;
    const bool stroke = std::abs(x) < 0.012 || y > 0.03;
    return inside && stroke ? 0.95 : brightness;
  }

  const PhantomPlan& plan_;
  const Noise& noise_;
  const Anatomy& a_;
};

double on_film(const PhantomPlan& plan, double brightness, double grain) {
  const double exposed = std::clamp(brightness * plan.exposure, 0.0, 1.0);
  return std::pow(exposed, plan.gamma) + plan.grain * grain;
}

}  // namespace

std::vector<double> brightness_of(const PhantomPlan& plan, const Noise& noise,
                                  int size) {
  assert(size > 0);
  const Painter painter(plan, noise);
  std::vector<double> brightness;
  brightness.reserve(static_cast<size_t>(size) * static_cast<size_t>(size));
  for (int row = 0; row < size; ++row) {
    const double v = 2 * (row + 0.5) / size - 1;
    for (int col = 0; col < size; ++col) {
      const double u = 2 * (col + 0.5) / size - 1;
      brightness.push_back(painter.brightness(u, v));
    }
  }
  return brightness;
}

PhantomImage draw_phantom(uint64_t seed, uint32_t patient, uint32_t follow_up,
                          int size) {
  assert(size > 0);
  constexpr uint64_t kPictures = uint64_t{1}
                                 << 40;  // positions after the persons'
  Random person(seed, Purpose::kPhantom, patient);
  Random random(seed, Purpose::kPhantom,
                (uint64_t{patient} << 12) + follow_up + kPictures);
  const auto [plan, noise] = draw_plan(person, random);

  PhantomImage image;
  image.size = size;
  image.age = plan.age;
  image.sex = plan.sex;
  image.view = plan.ap ? "AP" : "PA";
  image.findings = plan.findings;
  image.boxes = boxes_of(plan, size);

  const std::vector<double> brightness = brightness_of(plan, noise, size);
  image.pixels.reserve(brightness.size());
  for (const double value : brightness) {
    const double gray = on_film(plan, value, random.normal());
    const long level = std::clamp(std::lround(255 * gray), 0L, 255L);
    image.pixels.push_back(static_cast<uint8_t>(level));
  }
  return image;
}

}  // namespace chexnet
