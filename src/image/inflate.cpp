#include "chexnet/image/inflate.hpp"

#ifdef CHEXNET_WITH_ISAL
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#else
#include <libdeflate.h>

#include <memory>
#endif

namespace chexnet {

#ifdef CHEXNET_WITH_ISAL

const char* inflate_library() { return "ISA-L"; }

std::uint32_t crc32_of(std::span<const std::byte> bytes) {
  return crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

Inflated inflate_zlib(std::span<const std::byte> stream, std::span<std::uint8_t> into) {
  thread_local inflate_state state;
  isal_inflate_init(&state);
  state.next_in = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(stream.data()));
  state.avail_in = static_cast<std::uint32_t>(stream.size());
  state.next_out = into.data();
  state.avail_out = static_cast<std::uint32_t>(into.size());
  state.crc_flag = ISAL_ZLIB;  // header and Adler-32 are checked
  const int rc = isal_inflate_stateless(&state);
  if (rc == ISAL_OUT_OVERFLOW) return Inflated::kTooLong;
  if (rc != ISAL_DECOMP_OK || state.block_state != ISAL_BLOCK_FINISH) return Inflated::kDamaged;
  return state.avail_out == 0 ? Inflated::kWhole : Inflated::kTooShort;
}

#else

const char* inflate_library() { return "libdeflate"; }

std::uint32_t crc32_of(std::span<const std::byte> bytes) {
  return libdeflate_crc32(0, bytes.data(), bytes.size());
}

Inflated inflate_zlib(std::span<const std::byte> stream, std::span<std::uint8_t> into) {
  thread_local const std::unique_ptr<libdeflate_decompressor,
                                     void (*)(libdeflate_decompressor*)>
      decompressor(libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  switch (libdeflate_zlib_decompress(decompressor.get(), stream.data(), stream.size(), into.data(),
                                     into.size(), nullptr)) {
    case LIBDEFLATE_SUCCESS: return Inflated::kWhole;
    case LIBDEFLATE_SHORT_OUTPUT: return Inflated::kTooShort;
    case LIBDEFLATE_INSUFFICIENT_SPACE: return Inflated::kTooLong;
    default: return Inflated::kDamaged;
  }
}

#endif

}  // namespace chexnet
