// The functions of each instruction set's file.
#pragma once

#include "kernels.hpp"

namespace chexnet {

struct KernelSet {
  Kernels<float> fp32;
  Kernels<Bf16> bf16;
  Kernels<double> fp64;
};

void generic_kernels(KernelSet& set);
void avx2_kernels(KernelSet& set);
void avx512_kernels(KernelSet& set);
void avx512bf16_kernels(KernelSet& set);  // bf16 only
void neonbf16_kernels(KernelSet& set);    // bf16 only
void sve256_kernels(KernelSet& set);

}  // namespace chexnet
