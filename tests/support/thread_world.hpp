// A world of ranks as threads of one process, for tests of collectives without
// MPI.
//
// A rank may fail: from the moment its body throws, collectives of the others
// end with an error (a HangError, as a deadline would give) instead of waiting
// for ever. The same holds when a rank has returned and the others still wait
// for it.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/comm/half.hpp"
#include "chexnet/core/error.hpp"

namespace chexnet {

class ThreadWorld {
 public:
  explicit ThreadWorld(int size)
      : size_(size), pieces_(static_cast<size_t>(size)) {}

  // Runs `body` on each rank; rethrows what the first rank to fail has thrown.
  void run(const std::function<void(Communicator&)>& body) {
    arrived_ = 0;
    left_.clear();
    failure_ = nullptr;
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < size_; ++rank)
        threads.emplace_back([&, rank] {
          Rank communicator(*this, rank);
          try {
            body(communicator);
            leave(rank, nullptr);
          } catch (...) {
            leave(rank, std::current_exception());
          }
        });
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  // Every rank's bytes, on every rank.
  std::vector<std::vector<std::byte>> exchange(
      int rank, std::span<const std::byte> bytes) {
    {
      const std::lock_guard lock(mutex_);
      pieces_[static_cast<size_t>(rank)].assign(bytes.begin(), bytes.end());
    }
    meet();
    auto all = pieces_;  // nobody writes before the second meeting
    meet();
    return all;
  }

  // All ranks arrive, or an error on those that did.
  void meet() {
    std::unique_lock lock(mutex_);
    const int meeting = meetings_;
    if (left_.empty() && ++arrived_ == size_) {
      arrived_ = 0;
      ++meetings_;
      changed_.notify_all();
      return;
    }
    changed_.wait(lock, [&] { return meetings_ != meeting || !left_.empty(); });
    if (meetings_ == meeting)
      throw HangError("[threads] a collective without rank " +
                      std::to_string(left_.front()));
  }

  void leave(int rank, std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    left_.push_back(rank);
    if (!failure_) failure_ = std::move(failure);
    changed_.notify_all();
  }

  class Rank final : public Communicator {
   public:
    Rank(ThreadWorld& shared, int rank)
        : shared_(shared), world_{rank, shared.size_, rank, shared.size_} {}
    const World& world() const override { return world_; }
    void start(const GradientBuffer& buffer) override {
      pending_.push_back(buffer);
    }
    void poll() override {}
    void finish() override {
      for (const auto& buffer : pending_) {
        if (in_fp16_ && !buffer.exact && buffer.type == ElementType::kF32)
          round(static_cast<float*>(buffer.data), buffer.count);
        if (buffer.type == ElementType::kF64)
          mean(static_cast<double*>(buffer.data), buffer.count);
        else
          mean(static_cast<float*>(buffer.data), buffer.count);
      }
      pending_.clear();
    }
    // Rounds as a 16-bit journey does. bf16 has the range of fp32.
    void set_compression(GradientCompression compression) override {
      in_fp16_ = compression == GradientCompression::kFp16;
    }
    void all_reduce(std::span<double> values, ReduceOp op) override {
      const auto all = shared_.exchange(world_.rank, std::as_bytes(values));
      for (size_t i = 0; i < values.size(); ++i) {
        for (size_t r = 0; r < all.size(); ++r) {
          double value = 0;
          std::memcpy(&value, all[r].data() + i * sizeof value, sizeof value);
          if (r == 0)
            values[i] = value;
          else
            values[i] = op == ReduceOp::kSum ? values[i] + value
                                             : std::max(values[i], value);
        }
      }
    }
    void broadcast(std::span<std::byte> bytes, int root) override {
      const auto all = shared_.exchange(world_.rank, bytes);
      std::ranges::copy(all[static_cast<size_t>(root)], bytes.begin());
    }
    std::vector<std::vector<std::byte>> all_gather(
        std::span<const std::byte> bytes) override {
      return shared_.exchange(world_.rank, bytes);
    }
    void barrier() override { shared_.exchange(world_.rank, {}); }
    std::string description() const override { return "threads"; }

   private:
    void round(float* values, size_t count) const {
      const auto ranks = static_cast<float>(world_.size);
      for (size_t i = 0; i < count; ++i)
        values[i] = from_fp16(to_fp16(values[i] / ranks)) * ranks;
    }
    template <class T>
    void mean(T* values, size_t count) {
      const auto all = shared_.exchange(
          world_.rank, std::as_bytes(std::span(values, count)));
      for (size_t i = 0; i < count; ++i) {
        T sum = 0;
        for (const auto& piece : all) {
          T value = 0;
          std::memcpy(&value, piece.data() + i * sizeof value, sizeof value);
          sum += value;
        }
        values[i] = sum / static_cast<T>(all.size());
      }
    }
    ThreadWorld& shared_;
    World world_;
    std::vector<GradientBuffer> pending_;
    bool in_fp16_ = false;
  };

  int size_;
  // Guards what follows; pieces_ are read between two meetings without it.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<std::byte>> pieces_;  // [rank]
  int arrived_ = 0, meetings_ = 0;
  std::vector<int> left_;  // ranks whose body has ended, in that order
  std::exception_ptr failure_;
};

}  // namespace chexnet
