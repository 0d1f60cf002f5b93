// GPUs as the driver's management library (NVML, libnvidia-ml.so.1) sees them:
// identities, load, health and the processes on them. Opened at run time; needs
// no CUDA and takes no GPU memory. Prototypes: NVML API Reference, NVIDIA, R535
// and later.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace chexnet {

// One physical GPU now. A figure the GPU does not tell is -1.
struct GpuState {
  int index = 0;
  std::string name, uuid, bus_id;      // bus_id "0000:18:00.0"
  std::vector<std::string> mig_uuids;  // of its MIG devices
  bool mig = false;
  double memory_used_bytes = -1, memory_bytes = -1;
  double utilization_percent = -1, power_w = -1, sm_clock_mhz = -1,
         temperature_c = -1;
  double energy_j = -1;          // since the driver was loaded
  int64_t uncorrected_ecc = -1;  // errors since the driver was loaded
  uint64_t throttle_reasons = 0;
  int persistence = -1;   // 1 on
  int compute_mode = -1;  // 0 shared, 2 prohibited, 3 exclusive process
  struct Process {
    unsigned pid = 0;  // the host's numbers; a container may have others
    double bytes = -1;
  };
  std::vector<Process> processes;
  bool has_id(const std::string& id) const;  // its own, or a MIG device's
};

// Whether two ids name one GPU or one MIG device. CUDA and NVML put different
// words before the same number: "GPU-…" and "MIG-…".
bool same_gpu(const std::string& a, const std::string& b);

// Removes `own` from the processes of all GPUs. NVML has the host's process
// numbers; in a container with other numbers it finds none of `own`, and then
// nothing is known of any.
void keep_strangers(std::vector<GpuState>& gpus,
                    const std::vector<unsigned>& own);

// Causes of low clocks worth reporting, of a throttle_reasons mask: "power cap,
// hardware thermal";
// "" when there are none.
std::string throttle_text(uint64_t reasons);

class Nvml {
 public:
  // Null where there is no driver. The object may be used by one thread at a
  // time.
  static std::unique_ptr<Nvml> open();
  // The same over a library whose functions `lookup` finds by name; null: it
  // lacks that one. A function that is absent or fails leaves its figure
  // unknown.
  using Lookup = std::function<void*(const char* name)>;
  static std::unique_ptr<Nvml> open_library(Lookup lookup);
  ~Nvml();
  std::string driver_version() const;
  std::vector<GpuState> gpus() const;

  // From now on watches one GPU, or the GPU that holds the MIG device with this
  // id. False where there is none with it.
  bool watch(const std::string& uuid);
  // Load, clock and memory of the watched GPU, and nothing else: cheap enough
  // for every second.
  GpuState watched() const;
  // Critical Xid errors of the watched GPU since watch(): "GPU-… Xid 79".
  std::vector<std::string> new_xids();

 private:
  struct Calls;
  explicit Nvml(std::unique_ptr<Calls> calls);
  std::unique_ptr<Calls> calls_;
};

}  // namespace chexnet
