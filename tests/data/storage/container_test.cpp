// Containers: known by their names, and entries of every kind through text and
// bounds.
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "chexnet/core/error.hpp"
#include "chexnet/data/storage/entry.hpp"
#include "chexnet/data/storage/index_text.hpp"
#include "chexnet/data/storage/tar.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

// A bare deflate stream, as zip keeps: no head, no trailer.
std::vector<std::byte> deflated(const std::string& text) {
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::vector<std::byte> out(text.size() + 100);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(out.size() - z.avail_out);
  deflateEnd(&z);
  return out;
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("a container is known by its name") {
  const std::vector<std::pair<const char*, ContainerKind>> names = {
      {"two\nlines/train-00000-of-00001", ContainerKind::kTfrecord},
      {"x/train-00003-of-00338", ContainerKind::kTfrecord},
      {"x/a.tfrecord", ContainerKind::kTfrecord},
      {"x/a.tfrecords", ContainerKind::kTfrecord},
      {"x/train-0003-of-00338", ContainerKind::kFile},
      {"x/images_001.tar.gz", ContainerKind::kTarGz},
      {"x/images.tgz", ContainerKind::kTarGz},
      {"x/images.tar", ContainerKind::kTar},
      {"x/images.pack", ContainerKind::kPack},
      {"x/00000001_000.png", ContainerKind::kFile},
      {"x/tar", ContainerKind::kFile}};
  for (const auto& [name, kind] : names) {
    INFO(name);
    CHECK(container_kind(name) == kind);
  }
  CHECK(is_index_file("x/images.tar.index"));
  CHECK_FALSE(is_index_file("x/index.png"));
}

TEST_CASE(
    "each kind has a word of its own in an index, and files and packs have no "
    "entries") {
  std::vector<std::string> heads;
  for (int k = 0; k <= static_cast<int>(ContainerKind::kLast); ++k) {
    const std::string head =
        index_head(static_cast<ContainerKind>(k), {"a", 9});
    CHECK(std::ranges::find(heads, head) == heads.end());
    heads.push_back(head);
  }
  const ScratchFolder folder;
  const std::string path = folder.write("a.png", "no container");
  const auto store = local_store();
  const StoredFile file = store->list(path).front();
  for (const auto kind : {ContainerKind::kFile, ContainerKind::kPack})
    CHECK(container_entries(*store, file, kind, [](uint64_t) {}).empty());
  CHECK_FALSE(std::filesystem::exists(path + ".index"));
}

TEST_CASE(
    "entries with all fields come back from text, whatever their container") {
  const std::vector<Entry> entries = {
      {.name = "a\tb\n.png", .offset = 1, .length = 2, .crc32c = 3},
      {.name = "b",
       .offset = 4,
       .length = 5,
       .stored = 6,
       .skip = 7,
       .bit = 3,
       .crc32c = 8,
       .window = {{0, 255}, {32767, 1}}}};
  CHECK(entries_of_text(all_fields_text(entries), "x") == entries);
  std::string changed = all_fields_text(entries);
  changed[changed.size() / 2] ^= 1;
  CHECK_THROWS_AS(entries_of_text(changed, "x"), DataError);
}

TEST_CASE("an entry lies inside its container, to the byte") {
  const Entry last{.offset = 90, .length = 10};
  CHECK(is_possible(last, ContainerKind::kTar, 100));
  CHECK_FALSE(is_possible(last, ContainerKind::kTar, 99));
  CHECK_FALSE(
      is_possible({.offset = 101, .length = 0}, ContainerKind::kTar, 100));
  CHECK_FALSE(is_possible({.offset = 1, .length = UINT64_MAX},
                          ContainerKind::kTar, 100));
  CHECK_FALSE(is_possible({.length = kLargestImage + 1}, ContainerKind::kTar,
                          UINT64_MAX));
  CHECK(is_possible({.offset = 90, .length = 10, .skip = 90},
                    ContainerKind::kTar, 100));
  CHECK_FALSE(is_possible({.offset = 90, .length = 10, .skip = 91},
                          ContainerKind::kTar, 100));
  // A record has 12 bytes before its data and 4 after.
  CHECK(
      is_possible({.offset = 50, .length = 34}, ContainerKind::kTfrecord, 100));
  CHECK_FALSE(
      is_possible({.offset = 50, .length = 35}, ContainerKind::kTfrecord, 100));
  CHECK_FALSE(
      is_possible({.offset = 90, .length = 0}, ContainerKind::kTfrecord, 100));
  const Entry gz{.offset = 90, .length = 1000, .stored = 10};
  CHECK(is_possible(gz, ContainerKind::kTarGz, 100));
  CHECK_FALSE(is_possible(gz, ContainerKind::kTarGz, 99));
  Entry bits = gz;
  bits.bit = 8;
  CHECK_FALSE(is_possible(bits, ContainerKind::kTarGz, 100));
  Entry window = gz;
  window.window = {{32768, 1}};
  CHECK_FALSE(is_possible(window, ContainerKind::kTarGz, 100));
  // Ten bytes of deflate are at most 10,320 of anything.
  Entry bomb = gz;
  bomb.length = 10 * 1032 + 1;
  CHECK_FALSE(is_possible(bomb, ContainerKind::kTarGz, 100));
}

TEST_CASE("a member ends with its deflate stream: no trailer is needed") {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "image " + std::to_string(i % 77);
  const auto stream = deflated(text);
  std::vector<std::byte> content;
  for (const size_t skip : {size_t{0}, size_t{1}, size_t{4000}}) {
    Entry entry;
    entry.skip = skip;
    entry.length = text.size() - skip;
    inflate_member(stream, entry, "x.zip", content);
    CHECK(text_of(content) == text.substr(skip));
  }
  // An empty member takes nothing.
  inflate_member(stream, Entry(), "x.zip", content);
  CHECK(content.empty());
}

TEST_CASE("a member that ends before its content is named as cut off") {
  const std::string text = "sixteen bytes ok";
  const auto stream = deflated(text);
  std::vector<std::byte> content;
  Entry entry;
  entry.length = text.size() + 1;
  CHECK(error_of<DataError>([&] {
          inflate_member(stream, entry, "x.tgz", content);
        }).find("[tar] x.tgz: damaged gzip data") != std::string::npos);
  entry.length = text.size();
  const auto cut = std::span(stream).first(stream.size() / 2);
  CHECK(error_of<DataError>([&] {
          inflate_member(cut, entry, "x.tgz", content);
        }).find("cut off") != std::string::npos);
  entry.window = {{40000, 1}};
  CHECK(error_of<DataError>([&] {
          inflate_member(stream, entry, "x.tgz", content);
        }).find("window") != std::string::npos);
}
