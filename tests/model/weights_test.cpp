#include "chexnet/model/weights.hpp"

#include <ATen/ATen.h>

#include "chexnet/core/error.hpp"
#include "chexnet/model/network.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

Metadata knows(const std::string& findings) {
  return {{"chexnet", "{\"findings\": " + findings + "}"}};
}

// A tensor of the network by name, a view.
at::Tensor tensor_of(const Network& network, const std::string& name) {
  const Parameters& p = network.parameters();
  for (const auto& entry : p.list())
    if (entry.name == name) return p.part(p.flat_values(), entry);
  return {};
}

const std::vector<std::string> kThree = {"A", "B", "C"};

}  // namespace

TEST_CASE(
    "weights travel through safetensors, and what does not fit is named") {
  const ScratchFolder folder;
  const auto file = folder / "a.safetensors";
  Network a(network_spec("densenet121"), 3, {}),
      b(network_spec("densenet121"), 3, {});
  a.parameters().initialize(1);
  b.parameters().initialize(2);
  save_weights(file, a.parameters(), 3, knows("[\"A\", \"B\", \"C\"]"));
  CHECK(load_weights(SafetensorsFile(file), "a", kThree, b.parameters())
            .left_out_text()
            .empty());
  CHECK(at::equal(a.parameters().flat_values(), b.parameters().flat_values()));
  CHECK(
      at::equal(a.parameters().flat_running(), b.parameters().flat_running()));

  Network resnet(network_spec("resnet50"), 3, {});
  const auto text = error_of<CheckpointError>([&] {
    load_weights(SafetensorsFile(file), "a.safetensors", kThree,
                 resnet.parameters());
  });
  CHECK(text.find("a.safetensors") != std::string::npos);
  CHECK(text.find("do not fit this network") != std::string::npos);

  save_weights(file, a.parameters(), 3, knows("[\"A\", \"B\"]"));
  CHECK(error_of<CheckpointError>([&] {
          load_weights(SafetensorsFile(file), "a", kThree, b.parameters());
        }).find("for 2 named findings") != std::string::npos);
  const at::Tensor bias = tensor_of(a, "classifier.bias");
  save_weights(file, a.parameters(), 3, knows("7"));
  CHECK(error_of<CheckpointError>([&] {
          load_weights(SafetensorsFile(file), "a", kThree, b.parameters());
        }).find("description is damaged") != std::string::npos);
  for (const double bad : {NAN, INFINITY}) {
    bias[1].fill_(bad);
    save_weights(file, a.parameters(), 3, knows("[\"A\", \"B\", \"C\"]"));
    CHECK(error_of<CheckpointError>([&] {
            load_weights(SafetensorsFile(file), "a", kThree, b.parameters());
          }).find("[weights] a: classifier.bias is not finite") !=
          std::string::npos);
  }
}

TEST_CASE("a negative variance is refused by its name") {
  const ScratchFolder folder;
  const auto file = folder / "a.safetensors";
  Network a(network_spec("densenet121"), 3, {});
  a.parameters().initialize(1);
  a.parameters().running_var(7)[2].fill_(-1e-6);
  save_weights(file, a.parameters(), 3, knows("[\"A\", \"B\", \"C\"]"));
  CHECK(error_of<CheckpointError>([&] {
          load_weights(SafetensorsFile(file), "a", kThree, a.parameters());
        }).find(".running_var has a negative variance") != std::string::npos);
}

TEST_CASE("what is not finite is found in every type of a file") {
  const ScratchFolder folder;
  const auto file = folder / "a.safetensors";
  Network a(network_spec("densenet121"), 3, {});
  a.parameters().initialize(1);
  save_weights(file, a.parameters(), 3, knows("[\"A\", \"B\", \"C\"]"));
  const SafetensorsFile whole(file);
  for (const auto& [type, of_file] : {std::pair(at::kDouble, ElementType::kF64),
                                      {at::kFloat, ElementType::kF32},
                                      {at::kHalf, ElementType::kF16},
                                      {at::kBFloat16, ElementType::kBF16}}) {
    for (const double last : {1.0, double{NAN}, -double{INFINITY}, 1e300}) {
      const at::Tensor bias = at::tensor({-0.5, 65504.0, last}).to(type);
      auto arrays = whole.arrays();
      for (auto& array : arrays)
        if (array.name == "classifier.bias") {
          array.type = of_file;
          array.data = {static_cast<const std::byte*>(bias.const_data_ptr()),
                        bias.nbytes()};
        }
      const auto other = folder / "b.safetensors";
      write_safetensors(other, arrays, whole.metadata());
      const auto text = error_of<CheckpointError>([&] {
        load_weights(SafetensorsFile(other), "b", kThree, a.parameters());
      });
      INFO(text);
      const bool is_large = last == 1e300 && type == at::kDouble;
      CHECK((text.find("classifier.bias has a number too large") !=
             std::string::npos) == is_large);
      CHECK((text.find("classifier.bias is not finite. Hint: ") !=
             std::string::npos) == (last != 1.0 && !is_large));
    }
  }
}

TEST_CASE("weights with the names of a CheXNet reproduction are read") {
  const ScratchFolder folder;
  const auto file = folder / "a.safetensors";
  Network a(network_spec("densenet121"), 3, {}),
      b(network_spec("densenet121"), 3, {});
  a.parameters().initialize(1);
  b.parameters().initialize(2);
  save_weights(file, a.parameters(), 3, {});
  const SafetensorsFile own(file);
  std::vector<NamedArray> theirs = own.arrays();
  for (auto& array : theirs) {
    for (const char* layer : {".norm1.", ".norm2.", ".conv1.", ".conv2."}) {
      const auto at = array.name.find(layer);
      if (at != std::string::npos) array.name.insert(at + 5, ".");
    }
    if (array.name.starts_with("classifier")) array.name.insert(10, ".0");
    array.name.insert(0, "module.densenet121.");
  }
  write_safetensors(folder / "b.safetensors", theirs,
                    knows("[\"A\", \"B\", \"C\"]"));
  const SafetensorsFile foreign(folder / "b.safetensors");
  const auto report = load_weights(foreign, "b", kThree, b.parameters());
  CHECK(report.left_out_text().empty());
  CHECK(report.read_as.find("tensors read by other names, e.g. module.") !=
        std::string::npos);
  CHECK(at::equal(a.parameters().flat_values(), b.parameters().flat_values()));
  CHECK(
      at::equal(a.parameters().flat_running(), b.parameters().flat_running()));

  // The first that fits nowhere is named, as the file has it.
  Network resnet(network_spec("resnet50"), 3, {});
  CHECK(error_of<CheckpointError>(
            [&] { load_weights(foreign, "b", kThree, resnet.parameters()); })
            .find("first of the file that is none of its: " +
                  foreign.arrays().front().name + " [") != std::string::npos);
}

TEST_CASE(
    "a classifier's rows are taken over by name of finding, never by "
    "position") {
  const ScratchFolder folder;
  const auto file = folder / "a.safetensors";
  Network from(network_spec("densenet121"), 3, {}),
      to(network_spec("densenet121"), 3, {});
  from.parameters().initialize(1);
  to.parameters().initialize(2);
  const std::string weight = "classifier.weight", bias = "classifier.bias";
  tensor_of(from, bias).copy_(at::arange(3, at::kFloat) + 1);
  save_weights(file, from.parameters(), 3,
               knows("[\"Edema\", \"Effusion\", \"Hernia\"]"));
  const at::Tensor before = tensor_of(to, weight).clone();

  const auto report = load_weights(SafetensorsFile(file), "a",
                                   {"No Finding", "Edema", "Pleural Effusion"},
                                   to.parameters());
  CHECK(report.taken_text() ==
        "classifier taken over by name: Edema, Pleural Effusion");
  CHECK(report.left_out_text() ==
        "started afresh: No Finding; of the file, not wanted: Hernia");
  CHECK(at::equal(tensor_of(to, weight)[0], before[0]));
  CHECK(at::equal(tensor_of(to, weight)[1], tensor_of(from, weight)[0]));
  CHECK(at::equal(tensor_of(to, weight)[2], tensor_of(from, weight)[1]));
  CHECK(tensor_of(to, bias)[0].item<float>() == 0);
  CHECK(tensor_of(to, bias)[2].item<float>() == 2);
  CHECK(at::equal(tensor_of(to, "features.conv0.weight"),
                  tensor_of(from, "features.conv0.weight")));
}

TEST_CASE(
    "a classifier whose findings are not named starts afresh, whatever its "
    "size") {
  const ScratchFolder folder;
  for (const int64_t outputs : {3, 1000}) {
    const auto file = folder / "a.safetensors";
    Network from(network_spec("densenet121"), outputs, {}),
        to(network_spec("densenet121"), 3, {});
    from.parameters().initialize(1);
    to.parameters().initialize(2);
    save_weights(file, from.parameters(), 3, {});
    const at::Tensor before = tensor_of(to, "classifier.weight").clone();
    const auto report =
        load_weights(SafetensorsFile(file), "a", kThree, to.parameters());
    CHECK(report.taken_text().empty());
    CHECK(report.left_out_text() ==
          "classifier of " + std::to_string(outputs) +
              " outputs whose findings the file does not name, started afresh");
    CHECK(at::equal(tensor_of(to, "classifier.weight"), before));
  }
}
