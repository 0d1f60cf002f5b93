// The kernels of BatchNorm over all ranks, as
// model/aten/batch_norm_operators puts them together: a map that is cut
// among ranks is normalized as a whole.
#include "model/cuda/batch_norm_cases.hpp"
#include "model/cuda/kernel_grid.hpp"

namespace chexnet {
namespace {

using Rows = std::vector<int64_t>;  // of each rank

// The part of a map of `count` rows that begins at row `from`.
Values part_of(const Values& map, int64_t channels, int64_t from,
               int64_t count) {
  return {map.begin() + from * channels,
          map.begin() + (from + count) * channels};
}

void append(Values& all, const Values& more) {
  all.insert(all.end(), more.begin(), more.end());
}

#define RESULTS_OF(space)                                                     \
  [](const Case& c, const Rows& ranks) {                                      \
    using E = ELEMENTS(space);                                                \
    const auto channels = static_cast<size_t>(c.size.channels);               \
    const int vectors = static_cast<int>(c.size.channels) / space::kWidth;    \
    const auto run = [&](int64_t rows, const auto& kernel) {                  \
      const KernelGrid g = kernel_grid(rows, vectors, 64, 7);                 \
      Values sums = room_for_sums(g, space::kWidth);                          \
      std::vector<unsigned> arrived(g.channel_blocks);                        \
      cuda_words::run_kernel(                                                 \
          {g.channel_blocks, g.row_blocks}, {g.block_vectors, g.block_rows},  \
          order_of(g.row_blocks, false), [&] {                                \
            kernel(PartialSums{sums.data(), arrived.data()});                 \
          });                                                                 \
    };                                                                        \
    struct Part {                                                             \
      int64_t rows;                                                           \
      std::vector<space::Vector> x, dy, readers_dx = {};                      \
    };                                                                        \
    std::vector<Part> parts;                                                  \
    std::vector<double> all;                                                  \
    int64_t from = 0;                                                         \
    for (const int64_t rows : ranks) {                                        \
      const auto map = [&](const Values& v) {                                 \
        return E::encoded(part_of(v, c.size.channels, from, rows));           \
      };                                                                      \
      const Part& part = parts.emplace_back(rows, map(c.x), map(c.dy));       \
      std::vector<double> moments(2 * channels + 1, NAN);                     \
      run(rows, [&](const PartialSums& partial) {                             \
        space::batch_norm_statistics(part.x.data(), rows, vectors, {},        \
                                     partial, nullptr, nullptr,               \
                                     moments.data());                         \
      });                                                                     \
      all.insert(all.end(), moments.begin(), moments.end());                  \
      from += rows;                                                           \
    }                                                                         \
    Results r;                                                                \
    Values pixels(1, NAN), dweight(channels), dbias(channels);                \
    Values offset(channels), slope(channels); /* of all ranks */              \
    r.mean.assign(channels, NAN);                                             \
    r.var.assign(channels, NAN);                                              \
    cuda_words::run_kernel(                                                   \
        {static_cast<unsigned>(channels + 4) / 5, 1}, {5, 1}, {0}, [&] {      \
          space::merge_moments(all.data(), static_cast<int>(ranks.size()),    \
                               static_cast<int>(channels), r.mean.data(),     \
                               r.var.data(), pixels.data());                  \
        });                                                                   \
    CHECK(pixels[0] == static_cast<float>(c.size.rows));                      \
    const auto arguments = [&](const Part& part) {                            \
      return BatchNormArguments{part.x.data(),   vectors,       part.rows,    \
                                vectors,         r.mean.data(), r.var.data(), \
                                c.weight.data(), c.bias.data(), kEpsilon,     \
                                c.relu};                                      \
    };                                                                        \
    for (Part & part : parts) {                                               \
      Values w(channels, NAN), b(channels, NAN);                              \
      std::vector<space::Vector> y(part.x.size());                            \
      r.kept_mean.assign(channels, kKept);                                    \
      r.kept_var.assign(channels, kKept);                                     \
      run(part.rows, [&](const PartialSums&) {                                \
        space::batch_norm_apply(                                              \
            arguments(part), nullptr,                                         \
            {r.kept_mean.data(), r.kept_var.data(), kShare, pixels.data()},   \
            y.data());                                                        \
      });                                                                     \
      run(part.rows, [&](const PartialSums& partial) {                        \
        space::batch_norm_sums(arguments(part), part.dy.data(), partial,      \
                               w.data(), b.data());                           \
      });                                                                     \
      part.readers_dx.resize(part.x.size());                                  \
      for (int reader = 0; reader < 2; ++reader)                              \
        run(part.rows, [&](const PartialSums& partial) {                      \
          space::batch_norm_add_up(arguments(part), part.dy.data(), partial,  \
                                   w.data(), b.data(),                        \
                                   {part.readers_dx.data(), vectors}, reader, \
                                   {offset.data(), slope.data()});            \
        });                                                                   \
      append(r.y, E::decoded(y));                                             \
      for (size_t k = 0; k < channels; ++k) {                                 \
        dweight[k] += w[k];                                                   \
        dbias[k] += b[k];                                                     \
      }                                                                       \
    }                                                                         \
    for (const Part& part : parts) {                                          \
      std::vector<space::Vector> dx(part.x.size()), readers_dx(dx.size());    \
      run(part.rows, [&](const PartialSums&) {                                \
        space::batch_norm_gradient(arguments(part), part.dy.data(),           \
                                   dweight.data(), dbias.data(),              \
                                   pixels.data(), dx.data());                 \
      });                                                                     \
      run(part.rows, [&](const PartialSums&) {                                \
        space::batch_norm_corrected(                                          \
            {part.readers_dx.data(), vectors}, {part.x.data(), vectors},      \
            part.rows, vectors, r.mean.data(), offset.data(), slope.data(),   \
            pixels.data(), readers_dx.data());                                \
      });                                                                     \
      append(r.dx, E::decoded(dx));                                           \
      append(r.readers_dx, E::decoded(readers_dx));                           \
    }                                                                         \
    r.dweight = dweight;                                                      \
    r.dbias = dbias;                                                          \
    return r;                                                                 \
  }

#define ROUNDED(space)                                                 \
  [](const Values& values) {                                           \
    return ELEMENTS(space)::decoded(ELEMENTS(space)::encoded(values)); \
  }

struct Element {
  std::string name;
  double rounding;  // of one element, relative
  Results (*results)(const Case&, const Rows&);
  Values (*rounded)(const Values&);
};

void check_ranks(Case c, const Rows& ranks, const Element& element,
                 unsigned seed) {
  c.size.rows = std::accumulate(ranks.begin(), ranks.end(), int64_t{0});
  INFO(element.name << ", " << ranks.size() << " ranks, mean " << c.center);
  c = made(c, element.rounded, seed);
  const Results found = element.results(c, ranks);
  const Results wanted = by_definition(c);
  const double sums = 2e-6 * (1 + double{std::fabs(c.center)});
  CHECK(difference(found.mean, wanted.mean) < sums);
  CHECK(difference(found.var, wanted.var) < 2 * sums);
  CHECK(difference(found.kept_mean, wanted.kept_mean) < sums);
  CHECK(difference(found.kept_var, wanted.kept_var) < sums);
  CHECK(difference(found.y, wanted.y) < element.rounding + sums);
  CHECK(difference(found.dweight, wanted.dweight) < 10 * sums);
  CHECK(difference(found.dbias, wanted.dbias) < 10 * sums);
  CHECK(difference(found.dx, wanted.dx) < element.rounding + 10 * sums);
  CHECK(difference(found.readers_dx, wanted.readers_dx) <
        1.5 * element.rounding + 10 * sums);
}

}  // namespace

TEST_CASE("kernels normalize a map that is cut among ranks as a whole") {
  const std::vector<Element> elements = {
      {"fp32", 0x1p-23, RESULTS_OF(fp32), ROUNDED(fp32)},
      {"fp16", 0x1p-11, RESULTS_OF(fp16), ROUNDED(fp16)},
      {"bf16", 0x1p-8, RESULTS_OF(bf16), ROUNDED(bf16)}};
  unsigned seed = 20;
  for (const Element& element : elements) {
    const Case c{.size = {0, 64}, .relu = true};
    check_ranks(c, {61}, element, ++seed);
    check_ranks(c, {40, 61}, element, ++seed);
    check_ranks(c, {33, 1, 75}, element, ++seed);
    check_ranks({.size = {0, 272}}, {50, 50, 50, 50}, element, ++seed);
    check_ranks({.size = {0, 24}, .center = 100}, {77, 30}, element, ++seed);
  }
}

}  // namespace chexnet
