// For all kernels of maps: their elements, 16 bytes at once. After
// kernel_arguments.hpp. Compiled on
// the machine for its GPU (kernel_compiler.hpp), once for each type of elements;
// tests compile it for the CPU (tests/fakes/cuda_kernels.hpp).
//
// ELEMENT_FP32, ELEMENT_FP16 or ELEMENT_BF16 is defined by the compiling code.

struct alignas(16) Vector {
  unsigned int words[4];
};
struct alignas(16) Quad {
  float values[4];
};

#if !defined(KERNELS_ON_CPU)
using namespace chexnet;
#define KERNEL extern "C" __global__
#define TEXT(x) #x
#define UNROLL(count) _Pragma(TEXT(unroll count))
#define SHARED(type, name) alignas(16) __shared__ type name

__device__ inline float half_to_float(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
__device__ inline unsigned short float_to_half(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
// Stores for other blocks: a fence before an atomic operation shows them to
// blocks that see that operation.
__device__ inline void store_across_blocks(float* to, float value) {
  *to = value;
}
// From the cache that all multiprocessors share: others have written it.
__device__ inline Quad load_across_blocks(const Quad* from) {
  const float4 v = __ldcg(reinterpret_cast<const float4*>(from));
  return {{v.x, v.y, v.z, v.w}};
}
#endif

#if defined(ELEMENT_FP32)
constexpr int kWidth = 4;  // elements of a vector
#else
constexpr int kWidth = 8;
#endif

__device__ inline float as_float(unsigned int bits) {
  return __uint_as_float(bits);
}

#if defined(ELEMENT_FP32)

__device__ inline void read(const Vector& vector, float (&to)[kWidth]) {
  for (int i = 0; i < kWidth; ++i) to[i] = as_float(vector.words[i]);
}
__device__ inline Vector packed(const float (&from)[kWidth]) {
  Vector vector;
  for (int i = 0; i < kWidth; ++i) vector.words[i] = __float_as_uint(from[i]);
  return vector;
}

#elif defined(ELEMENT_FP16)

__device__ inline void read(const Vector& vector, float (&to)[kWidth]) {
  for (int i = 0; i < kWidth; ++i)
    to[i] = half_to_float(
        static_cast<unsigned short>(vector.words[i / 2] >> (i % 2 * 16)));
}
__device__ inline Vector packed(const float (&from)[kWidth]) {
  Vector vector;
  for (int i = 0; i < 4; ++i)
    vector.words[i] =
        float_to_half(from[2 * i]) |
        static_cast<unsigned int>(float_to_half(from[2 * i + 1])) << 16;
  return vector;
}

#else

__device__ inline void read(const Vector& vector, float (&to)[kWidth]) {
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = as_float(vector.words[i] << 16);
    to[2 * i + 1] = as_float(vector.words[i] & 0xffff0000U);
  }
}
// To the nearest, ties to even; a NaN stays one.
__device__ inline unsigned int bf16_bits(float value) {
  const unsigned int bits = __float_as_uint(value);
  if (value != value) return 0x7fc0U;
  return (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
}
__device__ inline Vector packed(const float (&from)[kWidth]) {
  Vector vector;
  for (int i = 0; i < 4; ++i) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
        : "=r"(vector.words[i])
        : "f"(from[2 * i + 1]), "f"(from[2 * i]));
#else
    vector.words[i] =
        bf16_bits(from[2 * i]) | bf16_bits(from[2 * i + 1]) << 16;
#endif
  }
  return vector;
}

#endif
