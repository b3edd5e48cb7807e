#include "model/planning/usual_batch.hpp"

#include "model/scenario/catalogue.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

UsualBatch batch_of(const std::string& model, std::int64_t gpus) {
  const YamlNode document = parse_yaml("model: " + model, "test.yaml");
  return usual_batch(Field(*document.at("model"), "model"), gpus);
}

}  // namespace

TEST_CASE("A batch is near the wanted one, and GPUs divide it into halves as often as possible") {
  // 4 M tokens of 4,096 are 976.6 samples; 1,024, which 8 GPUs divide with 128 left, lies 4.9 % above.
  CHECK(divisible_batch(4e6 / 4096, 8) == 1024);
  // 24 GPUs divide 768 (21 % below) and 1,152 (18 % above) better, but 960 = 5 x 8 x 24 lies within a tenth.
  CHECK(divisible_batch(4e6 / 4096, 24) == 960);
  // More GPUs than samples: replicas are several GPUs each, of 1,024 two.
  CHECK(divisible_batch(4e6 / 8192, 1024) == 512);
  // 1,001 GPUs have no half.
  CHECK(divisible_batch(488.0, 1001) == 1001);
  CHECK(divisible_batch(1.0, 1) == 1);
  CHECK(divisible_batch(512.0, 1) == 512);
}

TEST_CASE("No more halvings or doublings of the GPUs divide a batch within a tenth of the wanted one") {
  for (const std::int64_t gpus : {1, 2, 3, 8, 12, 24, 72, 96, 1000, 1024}) {
    for (double wanted = 1.0; wanted < 5000.0; wanted *= 1.173) {
      INFO(gpus << " GPUs, " << wanted << " samples");
      const std::int64_t batch = divisible_batch(wanted, gpus);
      REQUIRE(batch > 0);
      const auto near = [&](std::int64_t unit) {
        const double whole = static_cast<double>(unit);
        const double nearest = std::round(wanted / whole) * whole;
        return nearest > 0.0 && std::abs(nearest - wanted) <= 0.1 * wanted ? std::optional(nearest) : std::nullopt;
      };
      std::int64_t unit = gpus << 12;
      while (!near(unit) && unit % 2 == 0) unit /= 2;
      const double whole = static_cast<double>(gpus);
      const double least = std::max(std::round(wanted / whole), 1.0) * whole;  // where none is near
      CHECK(static_cast<double>(batch) == near(unit).value_or(least));
    }
  }
  CHECK(divisible_batch(100.0, 90) == 90);  // a tenth less
  CHECK(divisible_batch(100.0, 55) == 110);
  CHECK(divisible_batch(96.0, 3) == 96);
}

TEST_CASE("A model begins with the batch that it was published with") {
  // 16 M tokens of 8,192 are 1,953 samples; 2,048 lie 4.9 % above, whether on 128 GPUs or on 16,384.
  CHECK(batch_of("llama3-405b", 128).samples == 2048);
  CHECK(batch_of("llama3-405b", 16384).samples == 2048);
  CHECK_THAT(batch_of("llama3-405b", 128).why, Catch::Contains("16 M tokens, Grattafiori et al. 2024"));
  // DeepSeek-V3's 15,360 sequences are 15 x 1,024: 64 GPUs divide them as they are into 240 each.
  CHECK(batch_of("deepseek-v3", 64).samples == 15360);
  CHECK(batch_of("gpt2", 1).samples == 512);
  // Samples of twice the length are half as many: the tokens of a step stay.
  CHECK(batch_of("{ preset: gpt2, sequence: 2048 }", 1).samples == 256);
  CHECK(batch_of("{ preset: llama2-7b, sequence: 8192 }", 8).samples == 512);
}

TEST_CASE("A model without a published batch begins as its kind was trained") {
  // 8.0 billion parameters are nearest to GPT-3's 6.7 billion, 2 M tokens: 244 samples of 8,192; 256 lie 4.9 % above.
  CHECK(batch_of("llama3-8b", 16).samples == 256);
  CHECK_THAT(batch_of("llama3-8b", 16).why, Catch::Contains("GPT-3 6.7B") && Catch::Contains("2.00 M tokens"));
  // 70.6 billion: ln(175/70.6) = 0.91 against ln(70.6/13) = 1.69, so 3.2 M tokens: 390.6 samples; 384 lie 1.7 % below.
  CHECK(batch_of("llama3-70b", 64).samples == 384);
  // 32 images a GPU, 256 at least, 8,192 at most.
  CHECK(batch_of("resnet-50", 1).samples == 256);
  CHECK(batch_of("resnet-50", 64).samples == 2048);
  CHECK(batch_of("resnet-50", 512).samples == 8192);
  CHECK(batch_of("vit-b-16", 8).samples == 4096);
}

TEST_CASE("Whatever is trained, the GPUs divide the batch, or replicas of several GPUs each") {
  for (const CatalogueEntry& model : list_models()) {
    for (const std::int64_t gpus : {1, 2, 8, 24, 64, 72, 1024}) {
      INFO(model.name << " on " << gpus);
      const UsualBatch batch = batch_of(model.name, gpus);
      CHECK(8 * std::gcd(batch.samples, gpus) >= std::min(batch.samples, gpus));
      CHECK_FALSE(batch.why.empty());
      // No published training of these takes fewer than 100 samples or more than 100 M tokens a step.
      const YamlNode name = parse_yaml("model: " + model.name, "test.yaml");
      const double tokens = tokens_of_samples(read_model(Field(*name.at("model"), "model")));
      CHECK(batch.samples >= 100);
      CHECK(static_cast<double>(batch.samples) * tokens < 1e8);
    }
  }
}

}  // namespace foretrain::test
