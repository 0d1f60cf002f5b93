// The layers in the order of the two families' forward passes
// (model/aten/densenet.cpp, resnet.cpp), each a few nodes of a graph. An
// operator's fields are those of ONNX's Operators.md.
#include "chexnet/model/formats/onnx_network.hpp"

#include <cassert>

#include "chexnet/core/error.hpp"
#include "onnx_graph.hpp"

namespace chexnet {
namespace {

constexpr float kEpsilon = 1e-5f;  // of BatchNorm, torchvision's

// Square windows of strides and zero padding; kernel sizes are the weights'.
struct Window {
  int64_t kernel = 1, stride = 1, padding = 0;
  OnnxGraph::Attributes attributes() const {
    return {{"kernel_shape", OnnxGraph::Ints{kernel, kernel}},
            {"strides", OnnxGraph::Ints{stride, stride}},
            {"pads", OnnxGraph::Ints(4, padding)}};
  }
};
constexpr Window kStemPool = {3, 2, 1}, kTransitionPool = {2, 2, 0};

class Layers {
 public:
  Layers(OnnxGraph& graph, const FloatTensors& weights)
      : graph_(graph), weights_(weights) {}

  // All return the name of their output.
  std::string convolution(const std::string& x, const std::string& name,
                          const Window& window) {
    const FloatTensor& weight = find(name + ".weight");
    if (weight.shape.size() != 4 || weight.shape[2] != window.kernel)
      refuse(name + ".weight is of another shape");
    return graph_.add(
        {"Conv", name, {x, constant(name + ".weight")}, window.attributes()});
  }

  std::string norm(const std::string& x, const std::string& name) {
    return graph_.add(
        {"BatchNormalization",
         name,
         {x, constant(name + ".weight"), constant(name + ".bias"),
          constant(name + ".running_mean"), constant(name + ".running_var")},
         {{"epsilon", kEpsilon}}});
  }
  std::string relu(const std::string& x) {
    return graph_.add({"Relu", x + ".relu", {x}});
  }
  std::string norm_relu(const std::string& x, const std::string& name) {
    return relu(norm(x, name));
  }
  std::string stem_pool(const std::string& x, const std::string& name) {
    return graph_.add({"MaxPool", name, {x}, kStemPool.attributes()});
  }
  std::string transition_pool(const std::string& x, const std::string& name) {
    return graph_.add({"AveragePool", name, {x}, kTransitionPool.attributes()});
  }

  // Logits of feature maps.
  std::string classifier(const std::string& x, const HeadSpec& head,
                         const std::string& result) {
    const std::string mean = graph_.add({"GlobalAveragePool", "pool", {x}});
    const std::string flat =
        graph_.add({"Flatten", "flat", {mean}, {{"axis", int64_t{1}}}});
    return graph_.add(
        {"Gemm",
         result,
         {flat, constant(head.name + ".weight"), constant(head.name + ".bias")},
         {{"transB", int64_t{1}}}});
  }
  int64_t findings(const HeadSpec& head) const {
    return find(head.name + ".bias").shape.at(0);
  }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    throw CheckpointError(
        "[export] {}. Hint: export a checkpoint as this program wrote it",
        what);
  }
  const FloatTensor& find(const std::string& name) const {
    const auto found = weights_.find(name);
    if (found == weights_.end()) refuse(name + " is not in the model file");
    return found->second;
  }
  std::string constant(const std::string& name) {
    return graph_.add_constant(name, find(name));
  }
  OnnxGraph& graph_;
  const FloatTensors& weights_;
};

std::string dense_layer(OnnxGraph& graph, Layers& layers, const std::string& x,
                        const std::string& name) {
  const std::string narrow = layers.convolution(
      layers.norm_relu(x, name + ".norm1"), name + ".conv1", {.kernel = 1});
  const std::string grown =
      layers.convolution(layers.norm_relu(narrow, name + ".norm2"),
                         name + ".conv2", {.kernel = 3, .padding = 1});
  return graph.add(
      {"Concat", name + ".concat", {x, grown}, {{"axis", int64_t{1}}}});
}

std::string backbone(OnnxGraph& graph, Layers& layers, const DenseNetSpec& spec,
                     std::string x) {
  x = layers.convolution(x, "features.conv0",
                         {.kernel = 7, .stride = 2, .padding = 3});
  x = layers.stem_pool(layers.norm_relu(x, "features.norm0"), "features.pool0");
  for (size_t b = 0; b < spec.blocks.size(); ++b) {
    const std::string number = std::to_string(b + 1);
    for (int i = 0; i < spec.blocks[b]; ++i)
      x = dense_layer(graph, layers, x,
                      "features.denseblock" + number + ".denselayer" +
                          std::to_string(i + 1));
    if (b + 1 == spec.blocks.size()) break;
    const std::string name = "features.transition" + number;
    x = layers.convolution(layers.norm_relu(x, name + ".norm"), name + ".conv",
                           {.kernel = 1});
    x = layers.transition_pool(x, name + ".pool");
  }
  return layers.norm_relu(x, "features.norm5");
}

// Its input is added to what three convolutions make of it, as it is or through
// a fourth convolution.
std::string bottleneck(OnnxGraph& graph, Layers& layers, const std::string& x,
                       const std::string& name, int64_t stride, bool projects) {
  std::string y = layers.convolution(x, name + ".conv1", {.kernel = 1});
  y = layers.norm_relu(y, name + ".bn1");
  y = layers.convolution(y, name + ".conv2",
                         {.kernel = 3, .stride = stride, .padding = 1});
  y = layers.norm_relu(y, name + ".bn2");
  y = layers.convolution(y, name + ".conv3", {.kernel = 1});
  y = layers.norm(y, name + ".bn3");
  std::string shortcut = x;
  if (projects) {
    shortcut = layers.convolution(x, name + ".downsample.0",
                                  {.kernel = 1, .stride = stride});
    shortcut = layers.norm(shortcut, name + ".downsample.1");
  }
  return layers.relu(graph.add({"Add", name + ".add", {y, shortcut}}));
}

std::string backbone(OnnxGraph& graph, Layers& layers, const ResNetSpec& spec,
                     std::string x) {
  x = layers.convolution(x, "conv1", {.kernel = 7, .stride = 2, .padding = 3});
  x = layers.stem_pool(layers.norm_relu(x, "bn1"), "maxpool");
  for (size_t stage = 0; stage < spec.blocks.size(); ++stage) {
    for (int b = 0; b < spec.blocks[stage]; ++b) {
      const std::string name =
          "layer" + std::to_string(stage + 1) + "." + std::to_string(b);
      const bool first = b == 0;
      const int64_t stride = first && stage > 0 ? 2 : 1;
      x = bottleneck(graph, layers, x, name, stride, first);
    }
  }
  return x;
}

FloatTensor per_channel(const std::vector<double>& values) {
  assert(values.size() == 3);
  return {{1, 3, 1, 1}, std::vector<float>(values.begin(), values.end())};
}

// Bytes [N,1,S,S] to normalized [N,3,S,S]: subtracting three means makes the
// channels.
std::string normalized(OnnxGraph& graph, const std::string& gray,
                       const OnnxOptions& options) {
  const std::string number =
      graph.add({"Cast",
                 "gray",
                 {gray},
                 {{"to", static_cast<int64_t>(OnnxType::kFloat)}}});
  const std::string share =
      graph.add({"Div",
                 "gray.share",
                 {number, graph.add_constant("gray.white", {{}, {255.0f}})}});
  const std::string centered = graph.add(
      {"Sub",
       "gray.centered",
       {share, graph.add_constant("gray.mean", per_channel(options.mean))}});
  return graph.add(
      {"Div",
       "gray.normalized",
       {centered, graph.add_constant("gray.std", per_channel(options.std))}});
}

}  // namespace

const char* output_name(ModelOutput output) {
  return output == ModelOutput::kLogits ? "logits" : "probabilities";
}

std::string onnx_network(const NetworkSpec& spec,
                         const std::vector<FloatTensors>& members,
                         const OnnxOptions& options) {
  assert(options.input != ModelInput::kOneChannel && !members.empty());
  OnnxGraph graph(spec.arch);
  const int64_t size = options.size;
  std::string x;
  if (options.input == ModelInput::kGray) {
    x = graph.add_input(kModelInputName, OnnxType::kUint8, {1, size, size});
    x = normalized(graph, x, options);
  } else {
    x = graph.add_input(kModelInputName, OnnxType::kFloat, {3, size, size});
  }
  const std::string result = output_name(options.output);
  const std::string logits = output_name(ModelOutput::kLogits);
  std::vector<std::string> of_members;
  int64_t findings = 0;
  for (size_t m = 0; m < members.size(); ++m) {
    const bool is_ensemble = members.size() > 1;
    graph.set_scope(is_ensemble ? "member" + std::to_string(m) + "." : "");
    Layers layers(graph, members[m]);
    const std::string features = std::visit(
        [&](const auto& family) { return backbone(graph, layers, family, x); },
        spec.family);
    of_members.push_back(layers.classifier(features, spec.head, logits));
    findings = layers.findings(spec.head);
  }
  graph.set_scope("");
  if (members.size() > 1) graph.add({"Mean", logits, of_members});
  if (options.output == ModelOutput::kProbabilities)
    graph.add({"Sigmoid", result, {logits}});
  graph.add_output(result, OnnxType::kFloat, {findings});
  return graph.model(options.metadata);
}

}  // namespace chexnet
