#include "chexnet/image/flip.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace chexnet {
namespace {

void reversed_plain(const std::uint8_t* line, std::size_t width, std::uint8_t* into) {
  for (std::size_t x = 0; x < width; ++x) into[x] = line[width - 1 - x];
}

#if defined(__x86_64__)
__attribute__((target("ssse3"))) void reversed_ssse3(const std::uint8_t* line, std::size_t width,
                                                     std::uint8_t* into) {
  const __m128i order = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  std::size_t x = 0;
  for (; x + 16 <= width; x += 16) {
    const __m128i from =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(line + width - 16 - x));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into + x), _mm_shuffle_epi8(from, order));
  }
  reversed_plain(line, width - x, into + x);
}
#endif

}  // namespace

void copy_reversed(const std::uint8_t* line, std::size_t width, std::uint8_t* into) {
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("ssse3");
  if (fast) return reversed_ssse3(line, width, into);
#endif
  reversed_plain(line, width, into);
}

}  // namespace chexnet
