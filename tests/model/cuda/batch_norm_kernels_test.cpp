// The kernels' source on threads of the CPU, against sums in double.
#include "model/cuda/batch_norm_cases.hpp"

namespace chexnet {
namespace {

#define RESULTS_OF(space)                                                      \
  [](const Case& c, const Launch& launch) {                                    \
    using E = ELEMENTS(space);                                                 \
    using Map = std::vector<space::Vector>;                                    \
    const auto channels = static_cast<size_t>(c.size.channels);                \
    const int vectors = static_cast<int>(c.size.channels) / space::kWidth;     \
    const long long rows = c.size.rows, apart = vectors + c.gap;               \
    const KernelGrid g =                                                       \
        kernel_grid(rows, vectors, launch.threads, launch.blocks);             \
    const auto run = [&](const auto& kernel) { on_grid(g, {}, kernel); };      \
    const auto run_sums = [&](const auto& kernel) {                            \
      on_grid(g, launch, kernel);                                              \
    };                                                                         \
    const space::Vector beyond{{1, 2, 3, 4}};                                  \
    const auto wide = [&] {                                                    \
      return Map(static_cast<size_t>(rows * apart), beyond);                   \
    };                                                                         \
    const auto rows_of = [&](const Map& map) {                                 \
      Map out;                                                                 \
      for (long long at = 0; at < rows * apart; ++at) {                        \
        const space::Vector& vector = map[static_cast<size_t>(at)];            \
        if (at % apart < vectors)                                              \
          out.push_back(vector);                                               \
        else                                                                   \
          CHECK(std::ranges::equal(vector.words, beyond.words));               \
      }                                                                        \
      return out;                                                              \
    };                                                                         \
    const auto dense_x = E::encoded(c.x), dy = E::encoded(c.dy),               \
               shortcut = E::encoded(c.shortcuts), sum = E::encoded(c.sum);    \
    Map x = wide(), added_up = wide(), y(dense_x.size()), inferred(y.size()),  \
        dx(y.size()), readers_dx(y.size());                                    \
    for (long long at = 0; at < rows * vectors; ++at)                          \
      added_up[static_cast<size_t>(at / vectors * apart + at % vectors)] =     \
          sum[static_cast<size_t>(at)];                                        \
    Values sums = room_for_sums(g, space::kWidth);                             \
    std::vector<unsigned> arrived(g.channel_blocks);                           \
    const PartialSums partial{sums.data(), arrived.data()};                    \
    Results r;                                                                 \
    for (Values * v : {&r.mean, &r.var, &r.dweight, &r.dbias,                  \
                       &r.readers_dweight, &r.readers_dbias})                  \
      v->assign(channels, NAN);                                                \
    r.kept_mean.assign(channels, kKept);                                       \
    r.kept_var.assign(channels, kKept);                                        \
    run_sums([&] {                                                             \
      space::batch_norm_statistics(dense_x.data(), rows, vectors,              \
                                   {x.data(), apart}, partial, r.mean.data(),  \
                                   r.var.data(), nullptr);                     \
    });                                                                        \
    CHECK(std::ranges::equal(rows_of(x), dense_x, [](auto& a, auto& b) {       \
      return std::ranges::equal(a.words, b.words);                             \
    }));                                                                       \
    BatchNormArguments n{                                                      \
        x.data(),     apart,           rows,          vectors,  r.mean.data(), \
        r.var.data(), c.weight.data(), c.bias.data(), kEpsilon, c.relu};       \
    const auto* added = c.shortcut ? shortcut.data() : nullptr;                \
    run([&] {                                                                  \
      space::batch_norm_apply(                                                 \
          n, added, {r.kept_mean.data(), r.kept_var.data(), kShare, nullptr},  \
          y.data());                                                           \
    });                                                                        \
    run_sums([&] {                                                             \
      space::batch_norm_sums(n, dy.data(), partial, r.dweight.data(),          \
                             r.dbias.data());                                  \
    });                                                                        \
    run([&] {                                                                  \
      space::batch_norm_gradient(n, dy.data(), r.dweight.data(),               \
                                 r.dbias.data(), nullptr, dx.data());          \
    });                                                                        \
    Values offset(channels), slope(channels);                                  \
    for (const bool adds : {c.adds, true}) {                                   \
      run_sums([&] {                                                           \
        space::batch_norm_add_up(                                              \
            n, dy.data(), partial, r.readers_dweight.data(),                   \
            r.readers_dbias.data(), {added_up.data(), apart}, adds,            \
            {offset.data(), slope.data()});                                    \
      });                                                                      \
    }                                                                          \
    rows_of(added_up);                                                         \
    run([&] {                                                                  \
      space::batch_norm_corrected({added_up.data(), apart}, {x.data(), apart}, \
                                  rows, vectors, r.mean.data(), offset.data(), \
                                  slope.data(), nullptr, readers_dx.data());   \
    });                                                                        \
    n.mean = r.kept_mean.data();                                               \
    n.var = r.kept_var.data();                                                 \
    run([&] { space::batch_norm_apply(n, added, {}, inferred.data()); });      \
    CHECK(std::ranges::all_of(arrived, [](unsigned k) { return k == 0; }));    \
    r.y = E::decoded(y);                                                       \
    r.y_inference = E::decoded(inferred);                                      \
    r.dx = E::decoded(dx);                                                     \
    r.readers_dx = E::decoded(readers_dx);                                     \
    return r;                                                                  \
  }

using Element = TypeOfElements<Results (*)(const Case&, const Launch&)>;

const std::vector<Element>& elements() {
  static const std::vector<Element> all = TYPES_OF_ELEMENTS(RESULTS_OF);
  return all;
}

void check_case(const Case& c, const Element& element) {
  INFO(element.name << " " << c.size.rows << " x " << c.size.channels
                    << (c.relu ? " relu" : "") << (c.adds ? " adds" : "")
                    << (c.shortcut ? " shortcut" : "") << ", gap " << c.gap
                    << ", mean " << c.center);
  const Results found = element.computed(c, {}), wanted = by_definition(c);
  // Digits that a mean far from 0 takes from fp32's x - mean.
  const double sums = 2e-6 * (1 + double{std::fabs(c.center)});
  CHECK(difference(found.mean, wanted.mean) < sums);
  CHECK(difference(found.var, wanted.var) < 2 * sums);
  CHECK(difference(found.kept_mean, wanted.kept_mean) < sums);
  CHECK(difference(found.kept_var, wanted.kept_var) < sums);
  CHECK(difference(found.y, wanted.y) < element.rounding + sums);
  CHECK(difference(found.y_inference, wanted.y_inference) <
        element.rounding + sums);
  // Of one row or two the gradient is the rest of a subtraction.
  if (c.size.rows <= 2) return;
  CHECK(difference(found.dweight, wanted.dweight) < 10 * sums);
  CHECK(difference(found.dbias, wanted.dbias) < 10 * sums);
  CHECK(difference(found.dx, wanted.dx) < element.rounding + 10 * sums);
  CHECK(found.readers_dweight == found.dweight);
  CHECK(found.readers_dbias == found.dbias);
  // Rounded three times.
  CHECK(difference(found.readers_dx, wanted.readers_dx) <
        1.5 * element.rounding + 10 * sums);
}

}  // namespace

TEST_CASE("kernels of BatchNorm are what their definition says") {
  unsigned seed = 1;
  for (const Element& element : elements()) {
    for (const Size size : {Size{61, 64}, Size{1, 32}, Size{2, 24},
                            Size{130, 272}, Size{9, 1024}})
      for (const int gap : {0, 3})
        check_case(made({.size = size, .gap = gap}, element.rounded, ++seed),
                   element);
    const Size size{77, 96};
    for (const bool relu : {false, true})
      for (const bool adds : {false, true})
        for (const int gap : {0, 12})
          check_case(
              made({.size = size, .relu = relu, .adds = adds, .gap = gap},
                   element.rounded, ++seed),
              element);
    // A shortcut's ReLU is another's in backward.
    Case c = made({.size = size, .shortcut = true}, element.rounded, ++seed);
    check_case(c, element);
    check_case(made({.size = size, .center = 100}, element.rounded, ++seed),
               element);
  }
}

TEST_CASE("sums of BatchNorm's kernels do not depend on which block is last") {
  for (const Element& element : elements()) {
    const Case c = made({.size = {400, 64}, .relu = true}, element.rounded, 3);
    const Results there = element.computed(c, {}),
                  back = element.computed(c, {.backwards = true});
    CHECK(there.mean == back.mean);
    CHECK(there.var == back.var);
    CHECK(there.dweight == back.dweight);
    CHECK(there.dx == back.dx);
    CHECK(there.readers_dx == back.readers_dx);
  }
}

TEST_CASE("sums are equal in a thousand orders of blocks that run at once",
          "[arithmetic]") {
  for (const Element& element : elements()) {
    const Case c = made({.size = {37, 8}, .relu = true}, element.rounded, 6);
    const Results wanted = element.computed(c, kSmall);
    for (unsigned seed = 0; seed < 334; ++seed) {
      Launch launch = kSmall;
      launch.at_once = seed;
      const Results found = element.computed(c, launch);
      INFO(element.name << ", order " << seed);
      REQUIRE(found.mean == wanted.mean);
      REQUIRE(found.var == wanted.var);
      REQUIRE(found.dweight == wanted.dweight);
      REQUIRE(found.dbias == wanted.dbias);
      REQUIRE(found.readers_dx == wanted.readers_dx);
    }
  }
}

TEST_CASE("a fence that is missing or late, and a plain load, spoil the sums") {
  using cuda_words::Mistake;
  for (const Element& element : elements()) {
    const Case c = made({.size = {37, 8}}, element.rounded, 7);
    const Values wanted = element.computed(c, kSmall).mean;
    for (const Mistake mistake : {Mistake::kNoFence, Mistake::kPlainLoad}) {
      cuda_words::mistake = mistake;
      CHECK(element.computed(c, kSmall).mean != wanted);
    }
    // In some order alone.
    cuda_words::mistake = Mistake::kFenceAfterAtomic;
    bool is_found = false;
    for (unsigned seed = 0; seed < 1000 && !is_found; ++seed) {
      Launch launch = kSmall;
      launch.at_once = seed;
      is_found = element.computed(c, launch).mean != wanted;
    }
    CHECK(is_found);
    cuda_words::mistake = Mistake::kNone;
  }
}

TEST_CASE("one strange pixel takes few digits from BatchNorm's variance") {
  for (const Element& element : elements()) {
    Case c = made({.size = {1000, 64}}, element.rounded, 4);
    const Values usual = by_definition(c).var;
    for (size_t k = 0; k < 64; ++k) c.x[k] = 16;  // of the first row
    const Results found = element.computed(c, {}), wanted = by_definition(c);
    CHECK(difference(found.var, wanted.var) < 4e-6);
    CHECK(difference(found.var, usual) > 1e-3);
  }
}

TEST_CASE("ReLU after a shortcut, and a NaN that stays one") {
  for (const Element& element : elements()) {
    Case c = made({.size = {33, 64}, .relu = true, .shortcut = true},
                  element.rounded, 5);
    const Results wanted = by_definition(c);
    CHECK(difference(element.computed(c, {}).y, wanted.y) <
          element.rounding + 1e-5);
    c.x[70] = NAN;
    const Results found = element.computed(c, {});
    CHECK(std::isnan(found.y[70]));
    CHECK(std::isnan(found.mean[6]));
    CHECK(std::isnan(found.var[6]));
    CHECK(std::isnan(found.kept_var[6]));
    CHECK(std::isnan(found.dx[6]));
    CHECK(std::isnan(found.readers_dx[6]));
    CHECK_FALSE(std::isnan(found.mean[7]));
  }
}

TEST_CASE("DenseNet-121's grids read 128 bytes at once with few idle threads") {
  for (const int64_t channel_bytes : {2, 4})
    for (int64_t channels = 64; channels <= 1024; channels += 32) {
      const int64_t vectors = channels * channel_bytes / 16;
      const KernelGrid grid = kernel_grid(50176, vectors, 512, 80);
      INFO(vectors << " vectors");
      CHECK(grid.block_vectors >= 8);
      CHECK(grid.block_vectors * grid.channel_blocks <= vectors * 17 / 16);
      CHECK(grid.row_blocks * grid.channel_blocks >= 70);  // of 80
    }
}

TEST_CASE("grids of kernels cover each row and each channel") {
  for (const int64_t vectors : {1, 4, 12, 16, 17, 20, 34, 68, 124, 256})
    for (const int64_t rows : {1, 7, 784, 802816}) {
      const KernelGrid grid = kernel_grid(rows, vectors, 512, 264);
      INFO(rows << " rows of " << vectors);
      CHECK(grid.block_vectors * grid.channel_blocks >= vectors);
      CHECK(grid.block_vectors * (grid.channel_blocks - 1) < vectors);
      CHECK(grid.block_vectors * grid.block_rows <= 512);
      CHECK(grid.row_blocks >= 1);
      CHECK((grid.row_blocks - 1) * grid.block_rows < rows);
      CHECK(grid.row_blocks * grid.channel_blocks <=
            std::max<int64_t>(264, grid.channel_blocks));
    }
}

}  // namespace chexnet
