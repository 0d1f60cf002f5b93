// Faults of the fake NCCL in tests, and what a rank and the others' watch say
// of them.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "chexnet/comm/watch/failure_detector.hpp"
#include "chexnet/core/error.hpp"
#include "fakes/fake_nccl/fake_nccl.hpp"

namespace chexnet {

inline constexpr double kShort_s = 1;  // launch.timeout_s of what hangs

// For the time of one test.
struct WithFaults {
  explicit WithFaults(const fake_nccl::Faults& faults) {
    fake_nccl::set_faults(faults);
  }
  ~WithFaults() { fake_nccl::set_faults({}); }
};

// Whether it comes true in the next seconds.
template <class Condition>
bool eventually(const Condition& condition) {
  for (int i = 0; i < 5000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return condition();
}

// A separate thread aborts.
inline bool all_communicators_are_gone() {
  return eventually([] { return fake_nccl::communicators() == 0; });
}

// How a rank's step ended: "fine", or the exit code and the text.
template <class Body>
std::string outcome(const Body& body) {
  try {
    body();
    return "fine";
  } catch (const Error& e) {
    return std::to_string(static_cast<int>(e.code())) + " " + e.what();
  }
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline RankView view_of(int rank, const PhaseSlot& slot) {
  RankView view;
  view.rank = rank;
  view.host = "node";
  view.gpu = "Fake GPU";
  view.phase = static_cast<Phase>(slot.phase.load());
  view.sequence = slot.sequence;
  view.phase_age_s = 1;
  return view;
}

// What a watch whose patience is over would say of two ranks.
inline std::string verdict(const std::vector<const PhaseSlot*>& slots) {
  std::vector<RankView> views;
  for (size_t r = 0; r < slots.size(); ++r)
    views.push_back(view_of(static_cast<int>(r), *slots[r]));
  const auto failure = detect_failure(views, {0.5, 60});
  if (!failure) return "nobody";
  std::string text = cause_name(failure->cause);
  for (const int rank : failure->ranks) text += " " + std::to_string(rank);
  return text;
}

inline void wait_for(const PhaseSlot& slot, Phase phase) {
  eventually([&] { return slot.phase == static_cast<uint32_t>(phase); });
}

}  // namespace chexnet
