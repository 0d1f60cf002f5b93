// Small tf.train.Examples.
#pragma once

#include "chexnet/data/storage/tfrecord.hpp"
#include "target.hpp"

namespace chexnet::fuzz {

inline std::vector<std::string> example_seeds() {
  const auto image = bytes_of("\x89PNG of some bytes");
  Example example;
  example.image = image;
  example.filename = "00000001_000.png";
  example.labels = {1, 0, -1};
  const std::string plain = encode_example(example);
  example.label_names = {"Mass", "Edema", "Hernia"};
  // Labels as floats, packed and not.
  const auto of_floats = [](const std::string& list) {
    const auto sized = [](char tag, const std::string& body) {
      return std::string{tag, static_cast<char>(body.size())} + body;
    };
    const auto entry = [&](const std::string& key, const std::string& value) {
      return sized('\x0a', sized('\x0a', key) + sized('\x12', value));
    };
    return sized(
        '\x0a', entry("image/encoded", sized('\x0a', sized('\x0a', "abc"))) +
                    entry("image/filename", sized('\x0a', sized('\x0a', "a"))) +
                    entry("image/label", sized('\x12', list)));
  };
  return {plain, encode_example(example),
          of_floats(raw("\x0a\x08\x00\x00\x80\x3f\x00\x00\x00\x00")),
          of_floats(raw("\x0d\x00\x00\x80\x3f"))};
}

}  // namespace chexnet::fuzz
