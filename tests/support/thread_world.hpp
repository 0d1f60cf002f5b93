// A world of ranks as threads of one process, for tests of collectives without MPI.
#pragma once

#include <algorithm>
#include <barrier>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "chexnet/comm/communicator.hpp"

namespace chexnet {

class ThreadWorld {
 public:
  explicit ThreadWorld(int size)
      : size_(size), gate_(size), pieces_(static_cast<std::size_t>(size)) {}

  // Runs `body` on each rank; rethrows the first failure. A rank that throws leaves the others
  // waiting, so bodies must throw alike or not at all.
  void run(const std::function<void(Communicator&)>& body) {
    std::exception_ptr failure;
    std::mutex mutex;
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < size_; ++rank) {
        threads.emplace_back([&, rank] {
          try {
            Rank communicator(*this, rank);
            body(communicator);
          } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
          }
        });
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

 private:
  // Every rank's bytes, on every rank.
  std::vector<std::vector<std::byte>> exchange(int rank, std::span<const std::byte> bytes) {
    pieces_[static_cast<std::size_t>(rank)].assign(bytes.begin(), bytes.end());
    gate_.arrive_and_wait();
    auto all = pieces_;
    gate_.arrive_and_wait();
    return all;
  }

  class Rank final : public Communicator {
   public:
    Rank(ThreadWorld& shared, int rank)
        : shared_(shared), world_{rank, shared.size_, rank, shared.size_} {}
    const World& world() const override { return world_; }
    void start(const GradientBuffer& buffer) override { pending_.push_back(buffer); }
    void poll() override {}
    void finish() override {
      for (const auto& buffer : pending_) {
        if (buffer.type == ElementType::kF64)
          mean(static_cast<double*>(buffer.data), buffer.count);
        else
          mean(static_cast<float*>(buffer.data), buffer.count);
      }
      pending_.clear();
    }
    void set_compression(GradientCompression) override {}
    void all_reduce(std::span<double> values, ReduceOp op) override {
      const auto all = shared_.exchange(world_.rank, std::as_bytes(values));
      for (std::size_t i = 0; i < values.size(); ++i) {
        for (std::size_t r = 0; r < all.size(); ++r) {
          double value = 0;
          std::memcpy(&value, all[r].data() + i * sizeof value, sizeof value);
          if (r == 0)
            values[i] = value;
          else
            values[i] = op == ReduceOp::kSum ? values[i] + value : std::max(values[i], value);
        }
      }
    }
    void broadcast(std::span<std::byte> bytes, int root) override {
      const auto all = shared_.exchange(world_.rank, bytes);
      std::ranges::copy(all[static_cast<std::size_t>(root)], bytes.begin());
    }
    std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> bytes) override {
      return shared_.exchange(world_.rank, bytes);
    }
    void barrier() override { shared_.exchange(world_.rank, {}); }
    std::string description() const override { return "threads"; }

   private:
    template <class T>
    void mean(T* values, std::size_t count) {
      const auto all = shared_.exchange(world_.rank, std::as_bytes(std::span(values, count)));
      for (std::size_t i = 0; i < count; ++i) {
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
  };

  int size_;
  std::barrier<> gate_;
  std::vector<std::vector<std::byte>> pieces_;
};

}  // namespace chexnet
