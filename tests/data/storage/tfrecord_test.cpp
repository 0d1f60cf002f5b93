#include "chexnet/data/storage/tfrecord.hpp"

#include <cmath>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

std::span<const std::byte> span_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Example example_of(std::string_view image, std::string_view name) {
  Example example;
  example.image = span_of(image);
  example.filename = name;
  example.labels = {0, 1, -1, 1};
  example.label_names = {"Mass", "Edema", "Hernia", "Nodule"};
  return example;
}

}  // namespace

TEST_CASE("an Example comes back as it was written") {
  const std::string data = encode_example(example_of("pixels", "a/b.png"));
  const Example back = decode_example(span_of(data), "x");
  CHECK(std::string_view(reinterpret_cast<const char*>(back.image.data()),
                         back.image.size()) == "pixels");
  CHECK(back.filename == "a/b.png");
  CHECK(back.labels == std::vector<int64_t>{0, 1, -1, 1});
  CHECK(back.label_names ==
        std::vector<std::string_view>{"Mass", "Edema", "Hernia", "Nodule"});
  CHECK(example_image(span_of(data), "x").size() == 6);
  CHECK(error_of<DataError>([] {
          decode_example(span_of("no proto at all"), "shard record 3");
        }).find("shard record 3") != std::string::npos);
}

TEST_CASE(
    "every flipped bit of a shard is reported with file, offset and record") {
  const ScratchFolder folder;
  std::string file;
  std::vector<size_t> starts;
  for (const char* name : {"one.png", "two.png", "three.png"}) {
    starts.push_back(file.size());
    append_record(file,
                  encode_example(example_of("some bytes of a picture", name)));
  }
  starts.push_back(file.size());
  const auto read = [&](const std::string& content) {
    const std::string path = folder.write("train-00000-of-00001", content);
    const auto store = local_store();
    return tfrecord_entries(*store, {path, content.size()}, [](uint64_t) {});
  };
  const auto entries = read(file);
  REQUIRE(entries.size() == 3);
  CHECK(entries[1].name == "two.png");
  CHECK(entries[2].offset == starts[2]);
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string bad = file;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    const std::string error = error_of<DataError>([&] { read(bad); });
    size_t record = 0;
    while (bit / 8 >= starts[record + 1]) ++record;
    INFO("bit " << bit << ": " << error);
    CHECK(error.find("train-00000-of-00001: record " + std::to_string(record) +
                     " at byte " + std::to_string(starts[record]) + ":") !=
          std::string::npos);
  }
  for (size_t cut = 1; cut < file.size(); ++cut) {
    if (std::ranges::find(starts, cut) != starts.end())
      continue;  // whole records are a whole file
    CHECK(error_of<DataError>([&] {
            read(file.substr(0, cut));
          }).find("record") != std::string::npos);
  }
}

TEST_CASE("labels that are floats become whole numbers or are refused") {
  const auto of_labels = [](std::vector<float> labels) {
    const auto sized = [](char tag, const std::string& body) {
      return std::string{tag, static_cast<char>(body.size())} + body;
    };
    const auto entry = [&](const std::string& key, const std::string& value) {
      return sized('\x0a', sized('\x0a', key) + sized('\x12', value));
    };
    const std::string floats(reinterpret_cast<const char*>(labels.data()),
                             4 * labels.size());
    return sized(
        '\x0a', entry("image/encoded", sized('\x0a', sized('\x0a', "abc"))) +
                    entry("image/label", sized('\x12', sized('\x0a', floats))));
  };
  const std::string data = of_labels({1, 0, NAN, -1});
  CHECK(decode_example(span_of(data), "x").labels ==
        std::vector<int64_t>{1, 0, -1, -1});
  for (const float label : {1e30F, -1e30F, INFINITY}) {
    const std::string bad = of_labels({label});
    CHECK(error_of<DataError>([&] {
            decode_example(span_of(bad), "shard record 3");
          }).find("a label is beyond") != std::string::npos);
  }
}

TEST_CASE("fields of another wire type are passed over, as unknown ones are") {
  // Features, their map, a key, an image and a list of labels: as varints.
  for (const char* text :
       {"\x08\x05", "\x0a\x02\x08\x05", "\x0a\x04\x0a\x02\x08\x05",
        "\x0a\x04\x0a\x02\x10\x05"}) {
    CAPTURE(text);
    CHECK(error_of<DataError>([&] {
            decode_example(span_of(text), "x");
          }).find("has no image/encoded") != std::string::npos);
  }
  const std::string good = encode_example(example_of("pixels", "a.png"));
  // An int64 as a fixed64 after the Example, and a varint within its features.
  const std::string more =
      good + std::string("\x11\x01\x02\x03\x04\x05\x06\x07\x08", 9);
  CHECK(decode_example(span_of(more), "x").labels ==
        std::vector<int64_t>{0, 1, -1, 1});
}

TEST_CASE("shards are named as TensorFlow's are") {
  CHECK(shard_name("train", 3, 338) == "train-00003-of-00338");
}
