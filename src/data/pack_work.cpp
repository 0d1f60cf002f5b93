#include "pack_work.hpp"

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace fs = std::filesystem;

uint64_t items_of_rank(uint64_t all, const Communicator& comm) {
  const auto ranks = static_cast<uint64_t>(comm.size());
  const auto rank = static_cast<uint64_t>(comm.rank());
  return (all + ranks - 1 - rank) / ranks;
}

// Damage is collected, as one bad file must not end hours of packing; whether
// it is too much is judged at the end (total). Other errors are thrown.
bool read_image(const ImageReader& reader, uint32_t row, PackCounts& counts,
                PackScratch& scratch) {
  const auto side = static_cast<size_t>(reader.crop());
  scratch.pixels.resize(side * side);
  try {
    reader.read({.row = row}, scratch.pixels.data(), scratch.reader);
    return true;
  } catch (const DataError& e) {
    const std::lock_guard lock(counts.mutex);
    counts.damaged.emplace_back(e.what());
    return false;
  }
}

PackResult total(const PackJob& job, Communicator& comm,
                 const PackCounts& counts) {
  const auto damaged =
      count(accept_damage(job.damage, counts.damaged, job.rows.size(), "pack",
                          "; the rest is done and kept", comm));
  double sums[] = {static_cast<double>(counts.written.load()),
                   static_cast<double>(counts.kept.load())};
  comm.all_reduce(sums, ReduceOp::kSum);

  PackResult result;
  result.written = static_cast<uint64_t>(sums[0]);
  result.kept = static_cast<uint64_t>(sums[1]);
  result.damaged = damaged;
  return result;
}

void on_rank_0(Communicator& comm, const PackJob& job, const char* what,
               const std::function<void(WorkProgress&)>& action) {
  const bool acts = comm.rank() == 0;
  share_work(comm, {what, job.timeout_s},
             acts ? action : std::function<void(WorkProgress&)>());
}

FileLock lock_output(const fs::path& hidden, const std::string& out) {
  if (const auto folder = hidden.parent_path(); !folder.empty())
    fs::create_directories(folder);
  auto lock = FileLock::try_take(hidden);
  if (!lock)
    throw CheckpointError(
        "[pack] {}: another pack writes there now. Hint: wait for it, or "
        "choose another --out",
        out);
  return std::move(*lock);
}

}  // namespace chexnet
