// Tiles of thread blocks into which libraries cut products, and what of each a problem asks for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace foretrain::gemm_tiles {

// Accumulators of resident tiles fill half of a multiprocessor's 64 Ki registers (CUDA C++ Programming Guide, technical
// specifications); operands and addresses take the other half: modelling choice.
inline constexpr double resident_elements = 32768.0;
// Blocks of 256 among the 2,048 threads that a multiprocessor holds (the same table): modelling choice.
inline constexpr double max_resident = 8.0;
// An instruction with tensor memory multiplies 128 rows of one operand by all columns of the other, and reads both from
// shared memory (PTX ISA, tcgen05.mma, without pairs).
inline constexpr double instruction_rows = 128.0;

// Thread-block tiles, of the sizes that cublasLtMatmulTile_t lists. First, both ways round, what cuBLAS has from Hopper
// on (nvjet_hsh_192x192: 292 of 941 such names in PyTorch's steps on H100 and H200, validate/measurements). Then those
// of most names before (sgemm_128x64, h884gemm_256x128); then narrow ones, for skinny results, on CUDA cores and for
// convolutions alone, as products grow with k like tiles of 64 x 64. Which ones: modelling choice.
struct Tile {
  double rows, columns;
};
inline constexpr std::size_t tile_count = 27, first_common_tile = 13, first_narrow_tile = 21;
inline constexpr std::array<Tile, tile_count> tiles = {
    {{192, 192}, {320, 128}, {128, 320}, {192, 128}, {128, 192}, {160, 128}, {128, 160}, {224, 128},
     {128, 224}, {96, 128},  {128, 96},  {96, 64},   {64, 96},

     {128, 256}, {256, 128}, {128, 128}, {256, 64},  {64, 256},  {128, 64},  {64, 128},  {64, 64},

     {128, 32},  {32, 128},  {64, 32},   {32, 64},   {128, 16},  {64, 16}}};

using PerTile = std::array<double, tile_count>;

template <class Function>
constexpr PerTile of_tiles(Function function) {
  PerTile values{};
  for (std::size_t i = 0; i < tile_count; ++i) values[i] = function(tiles[i]);
  return values;
}

// Sizes are powers of two, so that multiplying by their inverses is as exact as dividing.
inline constexpr PerTile per_row = of_tiles([](Tile t) { return 1.0 / t.rows; });
inline constexpr PerTile per_column = of_tiles([](Tile t) { return 1.0 / t.columns; });
inline constexpr PerTile area = of_tiles([](Tile t) { return t.rows * t.columns; });
inline constexpr PerTile sides = of_tiles([](Tile t) { return t.rows + t.columns; });
inline constexpr PerTile loads = of_tiles([](Tile t) { return 1.0 / t.rows + 1.0 / t.columns; });  // per multiplication
inline constexpr PerTile instruction_reads = of_tiles([](Tile t) {  // elements, for a k of 1
  const double longer = t.rows > t.columns ? t.rows : t.columns, shorter = t.rows + t.columns - longer;
  return longer + shorter * (longer > instruction_rows ? longer / instruction_rows : 1.0);
});
// Tiles of a multiprocessor that keep it busy on CUDA cores, four warps for each of its schedulers. A thread has about
// 32 results, a block at most eight warps (cuDNN's scudnn_128x32 to 128x128): modelling choice.
inline constexpr double busy_warps = 16.0;
inline constexpr PerTile busy_rounds =
    of_tiles([](Tile t) { return busy_warps / std::min(t.rows * t.columns / 1024.0, 8.0); });
inline constexpr PerTile per_resident =
    of_tiles([](Tile t) { return 1.0 / std::clamp(resident_elements / (t.rows * t.columns), 1.0, max_resident); });

}  // namespace foretrain::gemm_tiles
