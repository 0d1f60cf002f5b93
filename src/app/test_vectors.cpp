#include "test_vectors.hpp"

#include <array>
#include <cstdio>

#include "chexnet/core/error.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/data/image/encode.hpp"
#include "chexnet/data/image_reader.hpp"
#include "chexnet/data/phantom.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/predict.hpp"
#include "chexnet/train/run/input_set.hpp"
#include "model_file.hpp"

namespace chexnet {
namespace {

constexpr uint64_t kSeed = 14;
constexpr int kSide = 512;  // pixels; is resized for every usual network

void write_png(const std::filesystem::path& path, const uint8_t* pixels,
               int side) {
  OutputFile file(path);
  file.write(encode_gray_png(pixels, side, side));
  file.commit();
}

// Names sort in the order of drawing.
std::string name_of(int drawing, const char* ending) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "vectors/%03d%s", drawing, ending);
  return text.data();
}

void for_reference(Config& c) {
  c.train.precision = Precision::kFp32;
  c.launch.device = DeviceKind::kCpu;
  c.data.stage = {};
  c.data.corrupt = {};
}

void write_inputs(const InputSet& set, const Config& config,
                  const std::vector<TestVector>& vectors,
                  const ExportFolder& folder) {
  const ImageReader reader(*set.dataset.images,
                           evaluation_preprocessing(config.data),
                           Augmentation::none(), 0);
  const auto side = static_cast<size_t>(reader.crop());
  std::vector<uint8_t> pixels(side * side);
  ImageReader::Scratch scratch;
  for (size_t i = 0; i < vectors.size(); ++i) {
    reader.read({.row = static_cast<uint32_t>(i)}, pixels.data(), scratch);
    write_png(folder.file(vectors[i].input), pixels.data(), reader.crop());
  }
}

}  // namespace

std::vector<TestVector> make_test_vectors(const std::filesystem::path& file,
                                          const ModelMetadata& metadata,
                                          int count,
                                          const ExportFolder& folder) {
  std::vector<TestVector> vectors;
  std::vector<std::string> images;
  for (int i = 0; i < count; ++i) {
    const PhantomImage drawn =
        draw_phantom(kSeed, static_cast<uint32_t>(i + 1), 0, kSide);
    vectors.push_back({name_of(i, ".png"), name_of(i, "_input.png"), {}});
    images.push_back(folder.file(vectors.back().image));
    write_png(images.back(), drawn.pixels.data(), drawn.size);
  }

  const Config config = model_config(file, metadata, {.last = for_reference});
  const auto comm = solo_communicator();
  const Device device = choose_device(config.launch, *comm);
  const InputSet set = load_inputs(config, images, metadata.findings,
                                   TakenDicom::kChestXrays, *comm);
  write_inputs(set, config, vectors, folder);
  const ModelNetworks networks(file, config, metadata, device, *comm);
  const LossWeights weights = no_loss_weights(set.dataset.manifest);
  const auto scored = predict_split(
      networks.context(config, *comm, device, set.dataset, weights), set.split,
      [] { return false; });
  const auto& probabilities = scored->predictions.probabilities;
  const auto findings = static_cast<ptrdiff_t>(metadata.findings.size());
  auto at = probabilities.begin();
  for (auto& vector : vectors) {
    vector.probabilities.assign(at, at + findings);
    at += findings;
  }
  return vectors;
}

}  // namespace chexnet
