#include "chexnet/image/inflate.hpp"

#ifdef CHEXNET_WITH_ISAL
#include <isa-l/igzip_lib.h>
#endif
#include <libdeflate.h>

#include <memory>

namespace chexnet {

uint32_t crc32_of(std::span<const std::byte> bytes) {
  return libdeflate_crc32(0, bytes.data(), bytes.size());
}

#ifdef CHEXNET_WITH_ISAL

// ISA-L's own Adler-32 takes six times as long as libdeflate's, so it inflates
// the raw stream and header and checksum are looked at here.
InflateStatus inflate_zlib(std::span<const std::byte> stream,
                           std::span<uint8_t> into) {
  const auto byte = [&](size_t i) {
    return std::to_integer<unsigned>(stream[i]);
  };
  // Deflate, a window of at most 32 KiB, no preset dictionary.
  if (stream.size() < 6 || (byte(0) & 15) != 8 || byte(0) >> 4 > 7 ||
      (byte(1) & 32) != 0 || (byte(0) * 256 + byte(1)) % 31 != 0)
    return InflateStatus::kDamaged;
  thread_local inflate_state state;
  isal_inflate_init(&state);
  state.next_in =
      const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(stream.data())) + 2;
  state.avail_in = static_cast<uint32_t>(stream.size() - 2);
  state.next_out = into.data();
  state.avail_out = static_cast<uint32_t>(into.size());
  state.crc_flag = ISAL_DEFLATE;
  const int rc = isal_inflate_stateless(&state);
  if (rc == ISAL_OUT_OVERFLOW) return InflateStatus::kTooLong;
  if (rc != ISAL_DECOMP_OK || state.block_state != ISAL_BLOCK_FINISH)
    return InflateStatus::kDamaged;
  if (state.avail_out > 0) return InflateStatus::kTooShort;
  // Whole bytes that it read ahead into its bit buffer belong to the checksum.
  const uint8_t* end = state.next_in - state.read_in_length / 8;
  if (reinterpret_cast<const std::byte*>(end) + 4 >
      stream.data() + stream.size())
    return InflateStatus::kDamaged;
  const uint32_t wanted =
      static_cast<uint32_t>(end[0]) << 24 | end[1] << 16 | end[2] << 8 | end[3];
  return libdeflate_adler32(1, into.data(), into.size()) == wanted
             ? InflateStatus::kWhole
             : InflateStatus::kDamaged;
}

#else

InflateStatus inflate_zlib(std::span<const std::byte> stream,
                           std::span<uint8_t> into) {
  thread_local const std::unique_ptr<libdeflate_decompressor,
                                     void (*)(libdeflate_decompressor*)>
      decompressor(libdeflate_alloc_decompressor(),
                   libdeflate_free_decompressor);
  switch (libdeflate_zlib_decompress(decompressor.get(), stream.data(),
                                     stream.size(), into.data(), into.size(),
                                     nullptr)) {
    case LIBDEFLATE_SUCCESS:
      return InflateStatus::kWhole;
    case LIBDEFLATE_SHORT_OUTPUT:
      return InflateStatus::kTooShort;
    case LIBDEFLATE_INSUFFICIENT_SPACE:
      return InflateStatus::kTooLong;
    default:
      return InflateStatus::kDamaged;
  }
}

#endif

}  // namespace chexnet
