// A graph in the format of ONNX (onnx.proto of github.com/onnx/onnx, IR version
// 8, operators of opset 17), written field by field with protozero: the schema
// needed here has a dozen messages. Nodes are added in the order in which they
// are computed. Tensors are known by name; the caller keeps names apart.
#pragma once

#include <cstdint>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <variant>
#include <vector>

#include "chexnet/model/formats/float_tensors.hpp"

namespace chexnet {

// TensorProto.DataType.
enum class OnnxType : int32_t { kFloat = 1, kUint8 = 2 };

class OnnxGraph {
 public:
  using Ints = std::vector<int64_t>;
  using Attributes = std::map<std::string, std::variant<int64_t, float, Ints>>;
  struct Node {
    const char* type;  // of operator
    std::string name;  // also of its only output
    std::vector<std::string> inputs;
    Attributes attributes = {};
  };

  explicit OnnxGraph(const std::string& name);
  OnnxGraph(const OnnxGraph&) = delete;  // the writer refers to the text
  OnnxGraph& operator=(const OnnxGraph&) = delete;

  // The prefix of further nodes' and constants' names, so that several networks
  // are kept apart.
  void set_scope(const std::string& scope) { scope_ = scope; }
  // Return the name that further nodes use.
  std::string add(const Node& node);
  std::string add_constant(const std::string& name, const FloatTensor& tensor);
  // `shape` without the first extent, which is of any size and called N.
  std::string add_input(const std::string& name, OnnxType type,
                        const Ints& shape);
  void add_output(const std::string& name, OnnxType type, const Ints& shape);

  // The whole model. `metadata`: texts by key.
  std::string model(const std::map<std::string, std::string>& metadata) const;

 private:
  void add_value(protozero::pbf_tag_type tag, const std::string& name,
                 OnnxType type, const Ints& shape);
  std::string scoped(const std::string& name) const;
  std::string scope_;
  std::string text_;  // of the GraphProto
  protozero::pbf_writer graph_;
};

}  // namespace chexnet
