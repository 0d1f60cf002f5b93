// The arguments of our kernels, for the host that launches them and, as text
// before their source, for NVRTC. Maps are void here, as their elements have
// three types. A row is a pixel's vectors of 16 bytes.
#pragma once

namespace chexnet {

// Of a block of BatchNorm's kernels: those that add up, and the others.
constexpr int kReducingThreads = 512, kMappingThreads = 256;

// Of a map that is pooled, and of its windows.
struct PoolShape {
  int images, height, width, out_height, out_width;
};

// BatchNorm, and ReLU, of the map x by statistics per channel. Rows of x are
// `x_apart` vectors apart: more than they have where x is some channels of a
// wider map.
struct BatchNormArguments {
  const void* x;
  long long x_apart, rows;
  int vectors;
  const float *mean, *var, *weight, *bias;
  float epsilon;
  int relu;
};

// A part of a larger map, that rows are read from or written to.
struct ReadRows {
  const void* first;
  long long apart;  // vectors
};
struct WrittenRows {
  void* first;
  long long apart;  // vectors
};

// Per channel: sums of the BatchNorms that read x, to be subtracted from the
// sum of their gradients.
struct PendingCorrections {
  float *offset, *slope;
};

// Partial sums that blocks leave for the last of them.
struct PartialSums {
  float* sums;
  unsigned int* arrived;
};

// kept += share * new of mean and unbiased variance. Of *rows, or where that is
// null of the map's own.
struct KeptChannels {
  float *mean, *var;
  float share;
  const float* rows;
};

}  // namespace chexnet
