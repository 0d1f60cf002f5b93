// A back end around another, for tests that change one thing of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chexnet/model/backend.hpp"

namespace chexnet {

// All is passed on to `inner`.
class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(std::unique_ptr<Backend> inner)
      : inner_(std::move(inner)) {}
  at::Tensor forward(const at::Tensor& images, Mode mode,
                     const MicroBatch& micro_batch) override {
    return inner_->forward(images, mode, micro_batch);
  }
  void backward(const at::Tensor& dlogits,
                const MicroBatch& micro_batch) override {
    inner_->backward(dlogits, micro_batch);
  }
  FeatureForward forward_features(const at::Tensor& images) override {
    return inner_->forward_features(images);
  }
  at::Tensor feature_gradient(const at::Tensor& dlogits) override {
    return inner_->feature_gradient(dlogits);
  }
  std::optional<size_t> planned_bytes(int64_t batch, int64_t size) override {
    return inner_->planned_bytes(batch, size);
  }
  std::string description(int64_t batch, int64_t size) override {
    return inner_->description(batch, size);
  }
  bool depends_on_threads() const override {
    return inner_->depends_on_threads();
  }
  void attach(const Attachments& attachments) override {
    inner_->attach(attachments);
  }

 private:
  std::unique_ptr<Backend> inner_;
};

// The only back end of a network; refuses nothing.
inline std::vector<BackendEntry> only_backend(
    std::function<std::unique_ptr<Backend>(const BackendContext&)> make) {
  return {
      {[](const BackendContext&, int64_t, int64_t) { return std::string(); },
       std::move(make)}};
}

}  // namespace chexnet
