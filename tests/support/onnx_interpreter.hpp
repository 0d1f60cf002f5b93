// Computes an ONNX model with ATen's operators, in double, reading the file by
// itself: whether a graph says what a network does needs no runtime to find
// out. Knows the operators and attributes that exported networks have, and
// fails at any other.
#pragma once

#include <ATen/ATen.h>

#include <cstring>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace chexnet {

class OnnxInterpreter {
 public:
  explicit OnnxInterpreter(const std::string& model) {
    protozero::pbf_reader reader(model);
    while (reader.next()) {
      if (reader.tag() == 7)
        read_graph(reader.get_message());
      else
        reader.skip();
    }
  }

  // `image` goes in under the only input's name; all tensors come out by name.
  std::map<std::string, at::Tensor> run(const at::Tensor& image) const {
    std::map<std::string, at::Tensor> values = constants_;
    values[input_] = image;
    for (const auto& node : nodes_) {
      std::vector<at::Tensor> inputs;
      for (const auto& name : node.inputs) inputs.push_back(values.at(name));
      if (!values.emplace(node.output, compute(node, inputs)).second)
        throw std::runtime_error(node.output + " is computed twice");
    }
    return values;
  }
  const std::string& input() const { return input_; }
  const std::vector<std::string>& outputs() const { return outputs_; }

 private:
  struct Node {
    std::string type, output;
    std::vector<std::string> inputs;
    std::map<std::string, std::vector<int64_t>> ints;
    std::map<std::string, float> floats;
  };

  void read_graph(protozero::pbf_reader graph) {
    while (graph.next()) {
      switch (graph.tag()) {
        case 1:
          nodes_.push_back(read_node(graph.get_message()));
          break;
        case 5:
          read_constant(graph.get_message());
          break;
        case 11:
          input_ = name_of(graph.get_message());
          break;
        case 12:
          outputs_.push_back(name_of(graph.get_message()));
          break;
        default:
          graph.skip();
      }
    }
  }
  static std::string name_of(protozero::pbf_reader value) {
    value.next(1);
    return value.get_string();
  }
  void read_constant(protozero::pbf_reader tensor) {
    std::vector<int64_t> shape;
    std::string name, bytes;
    while (tensor.next()) {
      if (tensor.tag() == 1)
        shape.push_back(tensor.get_int64());
      else if (tensor.tag() == 8)
        name = tensor.get_string();
      else if (tensor.tag() == 9)
        bytes = tensor.get_bytes();
      else
        tensor.skip();
    }
    const at::Tensor values = at::empty(shape, at::kFloat);
    if (values.nbytes() != bytes.size())
      throw std::runtime_error(name + " has other bytes than its shape");
    std::memcpy(values.mutable_data_ptr(), bytes.data(), bytes.size());
    constants_[name] = values.to(at::kDouble);
  }
  static Node read_node(protozero::pbf_reader message) {
    Node node;
    while (message.next()) {
      if (message.tag() == 1)
        node.inputs.push_back(message.get_string());
      else if (message.tag() == 2)
        node.output = message.get_string();
      else if (message.tag() == 4)
        node.type = message.get_string();
      else if (message.tag() == 5)
        read_attribute(message.get_message(), node);
      else
        message.skip();
    }
    return node;
  }
  static void read_attribute(protozero::pbf_reader attribute, Node& node) {
    std::string name;
    while (attribute.next()) {
      if (attribute.tag() == 1)
        name = attribute.get_string();
      else if (attribute.tag() == 2)
        node.floats[name] = attribute.get_float();
      else if (attribute.tag() == 3 || attribute.tag() == 8)
        node.ints[name].push_back(attribute.get_int64());
      else
        attribute.skip();
    }
  }

  static at::Tensor compute(const Node& node,
                            const std::vector<at::Tensor>& in) {
    const auto list = [&](const char* name) { return node.ints.at(name); };
    const auto pads = [&] {
      const auto all = list("pads");
      return std::vector<int64_t>(all.begin(), all.begin() + 2);
    };
    if (node.type == "Cast") return in[0].to(at::kDouble);
    if (node.type == "Div") return in[0] / in[1];
    if (node.type == "Sub") return in[0] - in[1];
    if (node.type == "Add") return in[0] + in[1];
    if (node.type == "Relu") return in[0].relu();
    if (node.type == "Sigmoid") return in[0].sigmoid();
    if (node.type == "Mean") return at::stack(in).mean(0);
    if (node.type == "Conv")
      return at::conv2d(in[0], in[1], {}, list("strides"), pads());
    if (node.type == "BatchNormalization")
      return std::get<0>(at::native_batch_norm(in[0], in[1], in[2], in[3],
                                               in[4], false, 0,
                                               node.floats.at("epsilon")));
    if (node.type == "MaxPool")
      return at::max_pool2d(in[0], list("kernel_shape"), list("strides"),
                            pads());
    if (node.type == "AveragePool")
      return at::avg_pool2d(in[0], list("kernel_shape"), list("strides"),
                            pads());
    if (node.type == "GlobalAveragePool")
      return in[0].mean(at::IntArrayRef{2, 3}, true);
    if (node.type == "Concat") return at::cat(in, list("axis")[0]);
    if (node.type == "Flatten") return in[0].flatten(list("axis")[0]);
    if (node.type == "Gemm" && list("transB")[0] == 1)
      return at::addmm(in[2], in[0], in[1].t());
    throw std::runtime_error("no operator " + node.type);
  }

  std::vector<Node> nodes_;
  std::map<std::string, at::Tensor> constants_;
  std::string input_;
  std::vector<std::string> outputs_;
};

}  // namespace chexnet
