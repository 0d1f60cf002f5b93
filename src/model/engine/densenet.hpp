// DenseNet: stem, four dense blocks with transitions between them, classifier
// head.
#pragma once

#include <optional>
#include <vector>

#include "chexnet/model/engine/engine.hpp"
#include "classifier_head.hpp"
#include "dense_block.hpp"
#include "stem.hpp"

namespace chexnet {

template <class S>
class DenseNet {
 public:
  using A = Accumulator<S>;
  // `head`: the classifier head's name
  DenseNet(Build<S>& build, const DenseNetSpec& spec, const std::string& head,
           const Engine::Options& options);
  void forward(const Pass<S>& run, const uint8_t* images, A* logits) const;
  void backward(const Pass<S>& run, const uint8_t* images,
                const A* dlogits) const;
  // The head's input, after forward.
  FeatureMap<S> features(const Pass<S>& run) const;
  const ClassifierHead<S>& head() const { return *head_; }

 private:
  Pass<S> run_of(const Pass<S>& run, int part) const;
  Stem<S> stem_;
  std::vector<DenseBlock<S>> blocks_;
  std::vector<Transition<S>> transitions_;
  std::optional<Norm<S>> last_norm_;
  std::optional<ClassifierHead<S>> head_;
  size_t constants_;
  int frozen_parts_;
};

}  // namespace chexnet
