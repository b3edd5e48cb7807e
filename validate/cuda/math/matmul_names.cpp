#include "validate/cuda/math/matmul_names.hpp"

#include <algorithm>
#include <iterator>

namespace foretrain::gpu {

namespace {

/// cublasLtMatmulTile_t from 1 to 35, in its order.
constexpr const char* first_tiles[] = {"8x8",     "8x16",    "16x8",    "8x32",    "16x16",  "32x8",    "8x64",
                                       "16x32",   "32x16",   "64x8",    "32x32",   "32x64",  "64x32",   "32x128",
                                       "64x64",   "128x32",  "64x128",  "128x64",  "64x256", "128x128", "256x64",
                                       "64x512",  "128x256", "256x128", "512x64",  "64x96",  "96x64",   "96x128",
                                       "128x160", "160x128", "192x128", "128x192", "128x96", "32x256",  "256x32"};

/// The others, in runs whose sides grow by a step: cublasLt.h of CUDA 13.0, which only appends to those of CUDA 12.
struct TileRun {
  std::uint32_t first, rows, columns, row_step, column_step;
};
constexpr TileRun tile_runs[] = {
    {36, 8, 128, 0, 64},    {47, 16, 64, 0, 64},   {59, 24, 64, 0, 64},    {71, 32, 192, 0, 128},
    {73, 32, 384, 0, 64},   {80, 40, 64, 0, 64},   {92, 48, 64, 0, 64},    {104, 56, 64, 0, 64},
    {116, 64, 192, 0, 128}, {118, 64, 384, 0, 64}, {120, 64, 576, 0, 64},  {124, 72, 64, 0, 64},
    {134, 80, 64, 0, 64},   {143, 88, 64, 0, 64},  {151, 96, 192, 0, 64},  {157, 104, 64, 0, 64},
    {164, 112, 64, 0, 64},  {170, 120, 64, 0, 64}, {176, 128, 320, 0, 64}, {178, 136, 64, 0, 64},
    {183, 144, 64, 0, 64},  {188, 152, 64, 0, 64}, {193, 160, 64, 0, 128}, {195, 160, 256, 0, 0},
    {196, 168, 64, 0, 64},  {200, 176, 64, 0, 64}, {204, 184, 64, 0, 64},  {208, 192, 64, 0, 128},
    {210, 192, 256, 0, 0},  {211, 200, 64, 0, 64}, {214, 208, 64, 0, 64},  {217, 216, 64, 0, 64},
    {220, 224, 64, 0, 64},  {223, 232, 64, 0, 64}, {226, 240, 64, 0, 64},  {229, 248, 64, 0, 64},
    {232, 256, 192, 0, 0},  {233, 264, 64, 0, 64}, {235, 272, 64, 0, 64},  {237, 280, 64, 0, 64},
    {239, 288, 64, 0, 64},  {241, 296, 64, 0, 64}, {243, 304, 64, 0, 64},  {245, 312, 64, 0, 64},
    {247, 320, 64, 0, 64},  {249, 328, 64, 0, 64}, {251, 336, 64, 0, 64},  {253, 344, 64, 0, 64},
    {255, 352, 64, 0, 64},  {257, 360, 64, 0, 64}, {259, 368, 64, 0, 64},  {261, 376, 64, 0, 64},
    {263, 384, 64, 0, 64},  {265, 392, 64, 8, 0},  {280, 520, 64, 8, 0},   {312, 64, 16, 0, 8},
    {314, 64, 40, 0, 8},    {317, 64, 72, 0, 8},   {320, 64, 104, 0, 8},   {323, 64, 136, 0, 8},
    {330, 64, 200, 0, 8},   {337, 64, 264, 0, 8},  {344, 64, 328, 0, 8},   {351, 64, 392, 0, 8},
    {358, 64, 456, 0, 8},   {365, 64, 520, 0, 8},  {372, 64, 584, 0, 8},   {379, 64, 648, 0, 8},
    {386, 64, 712, 0, 8},   {393, 128, 8, 0, 8},   {396, 128, 40, 0, 8},   {399, 128, 72, 0, 8},
    {402, 128, 104, 0, 8},  {405, 128, 136, 0, 8}, {408, 128, 168, 0, 8},  {411, 128, 200, 0, 8},
    {418, 128, 264, 0, 8},  {425, 128, 328, 0, 8}, {432, 128, 392, 0, 8},  {448, 192, 8, 0, 8},
    {455, 192, 72, 0, 8},   {462, 192, 136, 0, 8}, {469, 192, 200, 0, 8},  {476, 192, 264, 0, 8},
    {486, 256, 8, 0, 8},    {489, 256, 40, 0, 8},  {492, 256, 72, 0, 8},   {499, 256, 136, 0, 8},
    {506, 256, 200, 0, 8},  {514, 320, 8, 0, 8},   {521, 320, 72, 0, 8},   {528, 320, 136, 0, 8},
    {537, 384, 8, 0, 8},    {544, 384, 72, 0, 8},  {551, 384, 136, 0, 8},  {556, 448, 8, 0, 8},
    {563, 448, 72, 0, 8},   {573, 512, 8, 0, 8},   {580, 512, 72, 0, 8},   {588, 576, 8, 0, 8},
    {595, 576, 72, 0, 8},   {601, 640, 8, 0, 8},   {608, 640, 72, 0, 8},   {612, 704, 8, 0, 8},
    {619, 704, 72, 0, 8},   {622, 768, 8, 0, 8},   {629, 768, 72, 0, 8},   {631, 256, 512, 0, 512},
    {633, 512, 512, 0, 512}};
constexpr std::uint32_t last_tile = 634;

/// cublasLtMatmulStages_t, in its order; 29 and 30 are reserved.
constexpr const char* stages_names[] = {
    "16x1",  "16x2",   "16x3",    "16x4",    "16x5",    "16x6",     "32x1",     "32x2",    "32x3",  "32x4",
    "32x5",  "32x6",   "64x1",    "64x2",    "64x3",    "64x4",     "64x5",     "64x6",    "128x1", "128x2",
    "128x3", "128x4",  "128x5",   "128x6",   "32x10",   "8x4",      "16x10",    "8x5",     "",      "",
    "8x3",   "8xauto", "16xauto", "32xauto", "64xauto", "128xauto", "256xauto", "768xauto"};

template <typename Value>
void read(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute, Value& value) {
  Value read_value = value;
  std::size_t written = 0;
  const auto status =
      cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &read_value, sizeof(read_value), &written);
  if (status == CUBLAS_STATUS_SUCCESS) value = read_value;
}

std::string numbered(std::uint32_t number) { return number == 0 ? "" : "number " + std::to_string(number); }

}  // namespace

MatmulConfig matmul_config(const cublasLtMatmulAlgo_t& algorithm) {
  MatmulConfig config;
  read(algorithm, CUBLASLT_ALGO_CONFIG_ID, config.id);
  read(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, config.splits);
  read(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, config.tile);
  read(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID, config.stages);
  read(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, config.reduction_scheme);
  read(algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, config.swizzle);
  read(algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, config.custom_option);
  return config;
}

std::string tile_name(std::uint32_t tile) {
  if (tile == 0 || tile > last_tile) return numbered(tile);
  if (tile <= std::size(first_tiles)) return first_tiles[tile - 1];
  const auto* after =
      std::find_if(std::begin(tile_runs), std::end(tile_runs), [tile](const TileRun& run) { return run.first > tile; });
  const TileRun& run = *(after - 1);
  const std::uint32_t steps = tile - run.first;
  return std::to_string(run.rows + steps * run.row_step) + "x" + std::to_string(run.columns + steps * run.column_step);
}

std::string stages_name(std::uint32_t stages) {
  if (stages == 0 || stages > std::size(stages_names) || *stages_names[stages - 1] == 0) return numbered(stages);
  return stages_names[stages - 1];
}

std::map<std::string, std::string> texts_of(const MatmulConfig& config) {
  return {{"algorithm", std::to_string(config.id) + "." + std::to_string(config.custom_option)},
          {"tile", tile_name(config.tile)},
          {"stages", stages_name(config.stages)},
          {"split_k", std::to_string(config.splits)}};
}

}  // namespace foretrain::gpu
