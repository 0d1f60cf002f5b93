// A tf.train.Example by itself: what is read and written again reads the same.
#include "fuzz/example_parts.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  Example example;
  const bool whole =
      accepted<DataError>([&] { example = decode_example(bytes, "x"); });
  Bytes image;
  const bool has_image =
      accepted<DataError>([&] { image = example_image(bytes, "x"); });
  if (!whole) return;
  if (has_image)
    require(image.data() == example.image.data(), "both find the same image");
  if (example.image.data() == nullptr) return;
  const std::string text = encode_example(example);
  const Example again = decode_example(std::as_bytes(std::span(text)), "again");
  require(text_of(again.image) == text_of(example.image) &&
              again.filename == example.filename &&
              again.labels == example.labels &&
              again.label_names == example.label_names,
          "an example that is written reads back equal");
}

const Registered kTarget{{"example", run, nullptr, example_seeds}};

}  // namespace
}  // namespace chexnet::fuzz
