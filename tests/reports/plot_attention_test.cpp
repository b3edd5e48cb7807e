#include "reports/figure/plot_attention.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

// Faster below 256 by chance, then slower, then faster for good; the last length does not fit with scores in memory.
AttentionFigure figure() {
  return {"Attention",
          "forward and backward",
          {128, 256, 512, 1024},
          {{{"standard", {Seconds(1e-3), Seconds(2e-3), Seconds(4e-3), std::nullopt}},
            {Bytes(1e9), Bytes(4e9), Bytes(16e9), Bytes(64e9)}},
           {{"flash_2", {Seconds(0.9e-3), Seconds(2e-3), Seconds(3e-3), Seconds(5e-3)}},
            {Bytes(1e9), Bytes(2e9), Bytes(4e9), Bytes(8e9)}}},
          Bytes(40e9)};
}

}  // namespace

TEST_CASE("A crossover is where a curve begins to stay below the other") {
  CHECK(crossover(figure(), 0, 1) == 512);  // equal at 256; at 1024 there is nothing to compare with
  CHECK_FALSE(crossover(figure(), 1, 0).has_value());
}

TEST_CASE("Attention's table has times, memory and where an algorithm begins to win") {
  const std::string text = to_text(figure());
  CHECK_THAT(text, Catch::Contains("does not fit"));
  CHECK_THAT(text, Catch::Contains("64.0 GB"));
  CHECK_THAT(text, Catch::Contains("flash_2 is faster than standard from 512 on"));
}

TEST_CASE("Attention's picture has two panels, the same bytes each time") {
  const std::string svg = to_svg(to_figure(figure()));
  for (const char* label : {"Attention, forward and backward", "time (ms)", "memory (GB)", "flash 2", "standard",
                            "sequence length", "the GPU has 40.0 GB", ">1,024<"}) {
    CHECK_THAT(svg, Catch::Contains(label));
  }
  CHECK(svg == to_svg(to_figure(figure())));
}
