#include "onnx_graph.hpp"

#include <type_traits>

namespace chexnet {
namespace {

using Tag = protozero::pbf_tag_type;

// Field numbers of onnx.proto, by message.
constexpr Tag kModelIrVersion = 1, kModelProducer = 2, kModelGraph = 7,
              kModelOpset = 8, kModelMetadata = 14;
constexpr Tag kOpsetVersion = 2;
constexpr Tag kEntryKey = 1, kEntryValue = 2;
constexpr Tag kGraphNode = 1, kGraphName = 2, kGraphInitializer = 5,
              kGraphInput = 11, kGraphOutput = 12;
constexpr Tag kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeType = 4,
              kNodeAttribute = 5;
constexpr Tag kAttributeName = 1, kAttributeFloat = 2, kAttributeInt = 3,
              kAttributeInts = 8, kAttributeType = 20;
constexpr Tag kTensorDims = 1, kTensorType = 2, kTensorName = 8,
              kTensorRawData = 9;
constexpr Tag kValueName = 1, kValueType = 2, kTypeTensor = 1, kElementType = 1,
              kElementShape = 2, kShapeDim = 1, kDimValue = 1, kDimName = 2;
// AttributeProto.AttributeType.
constexpr int32_t kIsFloat = 1, kIsInt = 2, kIsInts = 7;

// Read by ONNX Runtime from 1.12, OpenVINO from 2022.2, TensorRT from 8.5.
constexpr int64_t kIrVersion = 8, kOpset = 17;

void write_attribute(protozero::pbf_writer& node, const std::string& name,
                     const OnnxGraph::Attributes::mapped_type& value) {
  protozero::pbf_writer attribute(node, kNodeAttribute);
  attribute.add_string(kAttributeName, name);
  std::visit(
      [&](const auto& v) {
        using Value = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<Value, float>) {
          attribute.add_float(kAttributeFloat, v);
          attribute.add_enum(kAttributeType, kIsFloat);
        } else if constexpr (std::is_same_v<Value, int64_t>) {
          attribute.add_int64(kAttributeInt, v);
          attribute.add_enum(kAttributeType, kIsInt);
        } else {
          for (const auto i : v) attribute.add_int64(kAttributeInts, i);
          attribute.add_enum(kAttributeType, kIsInts);
        }
      },
      value);
}

}  // namespace

OnnxGraph::OnnxGraph(const std::string& name) : graph_(text_) {
  graph_.add_string(kGraphName, name);
}

// A name that was made of a scoped one has the scope already.
std::string OnnxGraph::scoped(const std::string& name) const {
  return name.starts_with(scope_) ? name : scope_ + name;
}

std::string OnnxGraph::add(const Node& node) {
  std::string name = scoped(node.name);
  protozero::pbf_writer writer(graph_, kGraphNode);
  for (const auto& input : node.inputs) writer.add_string(kNodeInput, input);
  writer.add_string(kNodeOutput, name);
  writer.add_string(kNodeName, name);
  writer.add_string(kNodeType, node.type);
  for (const auto& [key, value] : node.attributes)
    write_attribute(writer, key, value);
  return name;
}

std::string OnnxGraph::add_constant(const std::string& own_name,
                                    const FloatTensor& tensor) {
  std::string name = scoped(own_name);
  protozero::pbf_writer writer(graph_, kGraphInitializer);
  for (const auto extent : tensor.shape) writer.add_int64(kTensorDims, extent);
  writer.add_int32(kTensorType, static_cast<int32_t>(OnnxType::kFloat));
  writer.add_string(kTensorName, name);
  // Little endian, as x86-64 and arm64 are.
  writer.add_bytes(kTensorRawData,
                   reinterpret_cast<const char*>(tensor.values.data()),
                   tensor.values.size() * sizeof(float));
  return name;
}

void OnnxGraph::add_value(Tag tag, const std::string& name, OnnxType type,
                          const Ints& shape) {
  protozero::pbf_writer value(graph_, tag);
  value.add_string(kValueName, name);
  protozero::pbf_writer about(value, kValueType);
  protozero::pbf_writer tensor(about, kTypeTensor);
  tensor.add_int32(kElementType, static_cast<int32_t>(type));
  protozero::pbf_writer extents(tensor, kElementShape);
  protozero::pbf_writer(extents, kShapeDim).add_string(kDimName, "N");
  for (const auto extent : shape)
    protozero::pbf_writer(extents, kShapeDim).add_int64(kDimValue, extent);
}

std::string OnnxGraph::add_input(const std::string& name, OnnxType type,
                                 const Ints& shape) {
  add_value(kGraphInput, name, type, shape);
  return name;
}

void OnnxGraph::add_output(const std::string& name, OnnxType type,
                           const Ints& shape) {
  add_value(kGraphOutput, name, type, shape);
}

std::string OnnxGraph::model(
    const std::map<std::string, std::string>& metadata) const {
  std::string text;
  protozero::pbf_writer model(text);
  model.add_int64(kModelIrVersion, kIrVersion);
  model.add_string(kModelProducer, "chexnet-train");
  {
    protozero::pbf_writer opset(model, kModelOpset);
    opset.add_int64(kOpsetVersion, kOpset);
  }
  for (const auto& [key, value] : metadata) {
    protozero::pbf_writer entry(model, kModelMetadata);
    entry.add_string(kEntryKey, key);
    entry.add_string(kEntryValue, value);
  }
  model.add_message(kModelGraph, text_);
  return text;
}

}  // namespace chexnet
