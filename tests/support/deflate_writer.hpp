// Deflate streams built symbol by symbol, also such as no packer makes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace chexnet {

class DeflateWriter {
 public:
  void bits(unsigned value, int count) {
    for (int i = 0; i < count; ++i, value >>= 1) {
      if (used_ == 0) bytes_.push_back(0);
      bytes_.back() |= static_cast<uint8_t>((value & 1) << used_);
      used_ = (used_ + 1) % 8;
    }
  }
  void stored_block(std::span<const uint8_t> content) {
    bits(0, 3);
    used_ = 0;
    const auto size = static_cast<unsigned>(content.size());
    bits(size, 16);
    bits(~size & 0xFFFF, 16);
    bytes_.insert(bytes_.end(), content.begin(), content.end());
  }
  void begin_fixed_block() {
    bits(1 << 1, 3);
    std::vector<uint8_t> lengths(288, 8);
    for (size_t s = 144; s < 256; ++s) lengths[s] = 9;
    for (size_t s = 256; s < 280; ++s) lengths[s] = 7;
    literals_ = codes_of(lengths);
    distances_ = codes_of(std::vector<uint8_t>(32, 5));
  }
  // At least 257 and 1 lengths, 0 for none; whether they are codes is the
  // caller's.
  void begin_block(const std::vector<uint8_t>& literals,
                   const std::vector<uint8_t>& distances) {
    bits(2 << 1, 3);
    bits(static_cast<unsigned>(literals.size() - 257), 5);
    bits(static_cast<unsigned>(distances.size() - 1), 5);
    bits(19 - 4, 4);
    // Of the code for lengths: four bits each, but no repeats.
    for (int i = 0; i < 19; ++i) bits(i < 3 ? 0 : 4, 3);
    const Codes own = codes_of(std::vector<uint8_t>(16, 4));
    for (const auto* lengths : {&literals, &distances})
      for (const uint8_t length : *lengths) put(own[length]);
    literals_ = codes_of(literals);
    distances_ = codes_of(distances);
  }
  void symbol(size_t s) { put(literals_[s]); }
  void distance(size_t s) { put(distances_[s]); }
  // Closes it by an empty stored block, the last one.
  std::vector<uint8_t> end() {
    bits(1, 3);
    used_ = 0;
    for (const uint8_t byte : {0, 0, 0xFF, 0xFF}) bytes_.push_back(byte);
    return bytes_;
  }

 private:
  struct Code {
    unsigned value;
    int length;
  };
  using Codes = std::vector<Code>;

  static Codes codes_of(const std::vector<uint8_t>& lengths) {
    Codes codes(lengths.size());
    unsigned next = 0;
    for (int length = 1; length <= 15; ++length, next <<= 1)
      for (size_t s = 0; s < lengths.size(); ++s)
        if (lengths[s] == length) codes[s] = {next++, length};
    return codes;
  }
  void put(const Code& code) {
    for (int i = code.length - 1; i >= 0; --i) bits(code.value >> i & 1, 1);
  }

  std::vector<uint8_t> bytes_;
  int used_ = 0;  // bits of the last byte
  Codes literals_, distances_;
};

}  // namespace chexnet
