// One native vector of the instruction set this file is compiled for: 64 bytes
// under AVX-512, 32 under AVX2 and SVE of that size, 16 otherwise (SSE2, NEON),
// by GCC's vector extension. Everything here and in the kernels has internal
// linkage on purpose: each instruction set compiles its own copy.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#if defined(__ARM_FEATURE_SVE)
#include <arm_sve.h>
#endif
#endif

#include <cstdint>
#include <cstring>

#include "chexnet/model/engine/storage.hpp"

namespace chexnet {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__) || defined(__ARM_FEATURE_SVE)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kVectorRegisters = 32;
#else
constexpr int kVectorRegisters = 16;
#endif

template <class A>
struct Native;
template <>
struct Native<float> {
  using Vector = float __attribute__((vector_size(kVectorBytes)));
};
template <>
struct Native<double> {
  using Vector = double __attribute__((vector_size(kVectorBytes)));
};
template <>
struct Native<uint32_t> {
  using Vector = uint32_t __attribute__((vector_size(kVectorBytes)));
};
template <class A>
using Vec = typename Native<A>::Vector;
template <class A>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(A));

#define CHEXNET_INLINE inline __attribute__((always_inline))

// a * b + c, rounded once where the instruction set can. A compiler fuses the
// two by itself, but not where it moves them apart, and bits then depend on its
// moves.
template <class V>
CHEXNET_INLINE V fused(V a, V b, V c) {
#if defined(__AVX512F__)
  if constexpr (sizeof(a[0]) == 4)
    return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
  else
    return (V)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX2__)
  if constexpr (sizeof(a[0]) == 4)
    return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
  else
    return (V)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  return a * b + c;
#endif
}

template <class A>
CHEXNET_INLINE Vec<A> load(const A* p) {
  Vec<A> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class A>
CHEXNET_INLINE void store(A* p, Vec<A> v) {
  std::memcpy(p, &v, sizeof v);
}
template <class A>
CHEXNET_INLINE Vec<A> splat(A a) {
  return a - Vec<A>{};
}

// Nearest bf16, ties to even, in the low half of each lane.
CHEXNET_INLINE Vec<uint32_t> bf16_bits(Vec<float> v) {
#if defined(__AVX512BF16__)
  return (Vec<uint32_t>)_mm512_cvtepu16_epi32(
      (__m256i)_mm512_cvtneps_pbh((__m512)v));
#elif defined(__ARM_FEATURE_SVE)
  return (Vec<uint32_t>)svreinterpret_u32_bf16(
      svcvt_bf16_f32_x(svptrue_b32(), (svfloat32_t)v));
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  const auto halves = vreinterpret_u16_bf16(vcvt_bf16_f32((float32x4_t)v));
  return (Vec<uint32_t>)vmovl_u16(halves);
#else
  Vec<uint32_t> u;
  std::memcpy(&u, &v, sizeof u);
  const Vec<uint32_t> rounded = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;
  return (u & 0x7FFFFFFFu) > 0x7F800000u ? (u >> 16) | 0x40u : rounded;
#endif
}

CHEXNET_INLINE Vec<float> load(const Bf16* p) {
#if defined(__AVX512F__)
  return (Vec<float>)_mm512_slli_epi32(
      _mm512_cvtepu16_epi32(
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))),
      16);
#elif defined(__ARM_FEATURE_SVE)
  return (Vec<float>)svlsl_n_u32_x(svptrue_b32(),
                                   svld1uh_u32(svptrue_b32(), &p->bits), 16);
#else
  using Half = uint16_t __attribute__((vector_size(kVectorBytes / 2)));
  Half half;
  std::memcpy(&half, p, sizeof half);
  const Vec<uint32_t> wide = __builtin_convertvector(half, Vec<uint32_t>) << 16;
  Vec<float> v;
  std::memcpy(&v, &wide, sizeof v);
  return v;
#endif
}
CHEXNET_INLINE void store(Bf16* p, Vec<float> v) {
#if defined(__AVX512BF16__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      (__m256i)_mm512_cvtneps_pbh((__m512)v));
#elif defined(__ARM_FEATURE_SVE)
  svst1h_u32(svptrue_b32(), &p->bits, (svuint32_t)bf16_bits(v));
#else
  using Half = uint16_t __attribute__((vector_size(kVectorBytes / 2)));
  const Half half = __builtin_convertvector(bf16_bits(v), Half);
  std::memcpy(p, &half, sizeof half);
#endif
}
// The value after a store and a load as type S.
template <class S>
CHEXNET_INLINE Vec<Accumulator<S>> as_stored(Vec<Accumulator<S>> v) {
  if constexpr (sizeof(S) == 2) {
    const Vec<uint32_t> wide = bf16_bits(v) << 16;
    std::memcpy(&v, &wide, sizeof v);
  }
  return v;
}

// As many values as a vector of double has.
CHEXNET_INLINE Vec<double> load_wide(const double* p) { return load(p); }
CHEXNET_INLINE Vec<double> load_wide(const float* p) {
  using Half = float __attribute__((vector_size(kVectorBytes / 2)));
  Half half;
  std::memcpy(&half, p, sizeof half);
  return __builtin_convertvector(half, Vec<double>);
}
CHEXNET_INLINE void store_narrow(double* p, Vec<double> v) { store(p, v); }
CHEXNET_INLINE void store_narrow(float* p, Vec<double> v) {
  using Half = float __attribute__((vector_size(kVectorBytes / 2)));
  const Half half = __builtin_convertvector(v, Half);
  std::memcpy(p, &half, sizeof half);
}

// Small whole numbers kept as bytes.
template <class A>
CHEXNET_INLINE Vec<A> load_bytes(const uint8_t* p) {
#if defined(__AVX512F__)
  if constexpr (sizeof(A) == 4)
    return (Vec<A>)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  else
    return (Vec<A>)_mm512_cvtepi32_pd(_mm256_cvtepu8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
  Vec<A> v;
  for (int i = 0; i < kLanes<A>; ++i) v[i] = p[i];
  return v;
#endif
}
template <class V>
CHEXNET_INLINE void store_bytes(uint8_t* p, V v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(v[0]) == 4) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm512_cvtepi32_epi8(_mm512_cvtps_epi32((__m512)v)));
    return;
  }
#endif
  for (int i = 0; i < kVectorBytes / static_cast<int>(sizeof(v[0])); ++i)
    p[i] = static_cast<uint8_t>(v[i]);
}

// max(v, 0) that keeps NaN, as PyTorch's relu does.
template <class V>
CHEXNET_INLINE V relu(V v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(v[0]) == 4)
    return (V)_mm512_max_ps(_mm512_setzero_ps(), (__m512)v);
  else
    return (V)_mm512_max_pd(_mm512_setzero_pd(), (__m512d)v);
#elif defined(__AVX2__)
  if constexpr (sizeof(v[0]) == 4)
    return (V)_mm256_max_ps(_mm256_setzero_ps(), (__m256)v);
  else
    return (V)_mm256_max_pd(_mm256_setzero_pd(), (__m256d)v);
#else
  return v < 0 ? V{} : v;
#endif
}
// ReLU's backward: d where the input was positive (or NaN), 0 elsewhere.
template <class V>
CHEXNET_INLINE V gated(V input, V d) {
#if defined(__AVX512F__)
  if constexpr (sizeof(d[0]) == 4)
    return (V)_mm512_maskz_mov_ps(
        _mm512_cmp_ps_mask((__m512)input, _mm512_setzero_ps(), _CMP_NLE_UQ),
        (__m512)d);
  else
    return (V)_mm512_maskz_mov_pd(
        _mm512_cmp_pd_mask((__m512d)input, _mm512_setzero_pd(), _CMP_NLE_UQ),
        (__m512d)d);
#else
  return input <= 0 ? V{} : d;
#endif
}

// to[0 .. lanes) += v, in double.
CHEXNET_INLINE void add_wide(double* to, Vec<double> v) {
  store(to, load(to) + v);
}
CHEXNET_INLINE void add_wide(double* to, Vec<float> v) {
#if defined(__AVX512F__)
  _mm512_storeu_pd(
      to, _mm512_add_pd(_mm512_loadu_pd(to),
                        _mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v))));
  _mm512_storeu_pd(
      to + 8,
      _mm512_add_pd(_mm512_loadu_pd(to + 8),
                    _mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(
                        _mm512_castps_pd((__m512)v), 1)))));
#else
  for (int i = 0; i < kLanes<float>; ++i) to[i] += static_cast<double>(v[i]);
#endif
}

}  // namespace
}  // namespace chexnet
