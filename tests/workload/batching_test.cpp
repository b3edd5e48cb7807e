// Samples of different lengths: what padding, bucketing and packing compute, and how unequal replicas are.
#include "model/workload/batching.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

LengthDistribution histogram(std::vector<WeightedValue> values) {
  LengthDistribution lengths;
  lengths.kind = LengthDistribution::Kind::histogram;
  lengths.histogram = std::move(values);
  return lengths;
}

LengthDistribution fixed(double value) {
  LengthDistribution lengths;
  lengths.value = value;
  return lengths;
}

LengthDistribution lognormal(double mean, double spread) {
  LengthDistribution lengths;
  lengths.kind = LengthDistribution::Kind::lognormal;
  lengths.mean = mean;
  lengths.spread = spread;
  return lengths;
}

SampleMix text_only(LengthDistribution text, std::int64_t limit = 4096) {
  DataShape data;
  data.text = std::move(text);
  return mix_of(data, 0.0, limit);
}

Batching batching(Batching::Kind kind, std::int64_t length = 0, int buckets = 8) { return {kind, buckets, length}; }

}  // namespace

TEST_CASE("distributions keep their mean and spread") {
  LengthDistribution uniform;
  uniform.kind = LengthDistribution::Kind::uniform;
  uniform.from = 100;
  uniform.to = 300;
  // Uniform: mean 200, variance 200²/12.
  CHECK(moment(values_of(uniform), 1) == Approx(200.0));
  CHECK(moment(values_of(uniform), 2) == Approx(200.0 * 200.0 + 200.0 * 200.0 / 12.0).epsilon(1e-4));
  // Lognormal: variance (spread · mean)².
  const auto text = values_of(lognormal(400, 0.8));
  CHECK(moment(text, 1) == Approx(400.0));
  CHECK(moment(text, 2) == Approx(400.0 * 400.0 * (1.0 + 0.64)).epsilon(0.005));
  // Weights of any sum, equal values joined, zero weights gone.
  const auto values = values_of(histogram({{5, 2}, {1, 1}, {5, 1}, {9, 0}}));
  REQUIRE(values.size() == 2);
  CHECK(values[0] == WeightedValue{1, 0.25});
  CHECK(values[1] == WeightedValue{5, 0.75});
  // A spread of zero is a fixed length.
  CHECK(values_of(lognormal(400, 0)).size() == 1);
  // 2.5 images are two or three, half of the time each.
  CHECK(whole_values_of(fixed(2.5)) == std::vector<WeightedValue>{{2, 0.5}, {3, 0.5}});
}

TEST_CASE("the longest of several draws, by hand and by formula") {
  // 1 with probability ¾, 3 with ¼; of two draws both are 1 with 9/16: E = 9/16 + 3 · 7/16.
  const auto values = values_of(histogram({{1, 3}, {3, 1}}));
  CHECK(largest_moment(values, 2) == Approx(9.0 / 16 + 3 * 7.0 / 16));
  CHECK(largest_moment(values, 2, 2) == Approx(9.0 / 16 + 9 * 7.0 / 16));
  CHECK(largest_moment(values, 1) == Approx(moment(values, 1)));
  // Uniform on [0, 1]: E[max of n] = n/(n + 1).
  LengthDistribution uniform;
  uniform.kind = LengthDistribution::Kind::uniform;
  uniform.to = 1.0;
  for (const double n : {1.0, 2.0, 8.0, 64.0}) {
    CHECK(largest_moment(values_of(uniform), n) == Approx(n / (n + 1)).epsilon(0.003));
  }
}

TEST_CASE("unpadded samples compute their own tokens, and the slowest replica has the longest ones") {
  // Of 100 and 300 tokens, as many each: 4 samples have 800, and 4 · (100² + 300²) / 2 pairs.
  const SampleMix mix = text_only(histogram({{100, 1}, {300, 1}}));
  const Batching unpadded = batching(Batching::Kind::unpadded);
  const BatchShape shape = batch_shape(mix, unpadded, 4, false);
  CHECK(shape.mean.language.tokens == 800);
  CHECK(shape.mean.language.batch * shape.mean.language.length * shape.mean.language.length ==
        Approx(200'000).epsilon(0.01));
  CHECK(shape.largest.language.tokens == 1200);
  // The sum of four varies by 2 · 100 around 800; of two such the larger is expected 200 / √π above the mean.
  CHECK(slowest_replica(pass_variation(mix, unpadded, 4, {}), 1, 2) ==
        Approx(1.0 + 0.25 / std::sqrt(M_PI)).epsilon(0.01));
}

TEST_CASE("packing leaves less than the longest sample empty, and computes few tokens more than there are") {
  for (const double spread : {0.2, 0.8, 2.0}) {
    const SampleMix mix = text_only(lognormal(400, spread), 2048);
    for (const std::int64_t length : {2048, 4096, 16384}) {
      const double share = packed_share(mix, length);
      CHECK(share <= 1.0);
      CHECK(share > 1.0 - 2048.0 / static_cast<double>(length));
      CHECK(share > 0.5);
      const BatchShape packed = batch_shape(mix, batching(Batching::Kind::packing, length), 64, false);
      CHECK(packed.computed_per_sample == Approx(packed.tokens_per_sample / share).epsilon(1e-3));
      const BatchShape padded = batch_shape(mix, batching(Batching::Kind::padding), 64, false);
      CHECK(packed.computed_per_sample < padded.computed_per_sample);
    }
  }
}

TEST_CASE("attention over packed samples sees pairs of the same sample only, unless it masks whole rows") {
  const SampleMix mix = text_only(histogram({{256, 1}, {768, 1}}), 1024);
  // 64 samples: the sum of squares is 64 · (256² + 768²)/2 = 64 · 327,680.
  const PassTokens blocks = batch_shape(mix, batching(Batching::Kind::packing, 1024), 64, false).mean.language;
  CHECK(static_cast<double>(blocks.batch * blocks.length * blocks.length) == Approx(64 * 327'680.0).epsilon(0.005));
  const PassTokens rows = batch_shape(mix, batching(Batching::Kind::packing, 1024), 64, true).mean.language;
  CHECK(rows.length == Approx(1024).epsilon(0.02));
  CHECK(static_cast<double>(rows.batch * 1024) == Approx(static_cast<double>(rows.tokens)).epsilon(0.02));
}

TEST_CASE("images and text make samples") {
  DataShape data;
  data.images = histogram({{0, 1}, {1, 2}, {2, 1}});
  data.text = fixed(100);
  const SampleMix mix = mix_of(data, 576, 1000);
  // 100, 676 and 1252 tokens; the last is cut to 1000, though both its images are encoded.
  REQUIRE(mix.samples.size() == 3);
  CHECK(mix.tokens() == Approx(0.25 * 100 + 0.5 * 676 + 0.25 * 1000));
  CHECK(mix.images() == Approx(1.0));
  // The largest pass has both images of every sample; four samples a pass have four on average.
  const BatchShape shape = batch_shape(mix, batching(Batching::Kind::padding), 4, false);
  CHECK(shape.mean.images == Approx(4.0));
  CHECK(shape.largest.images == 8.0);
}

TEST_CASE("the slowest replica, by hand") {
  // Work ½ or 1½; of two replicas the slower has ½ with ¼: E = ½ · ¼ + 1½ · ¾ = 1.25.
  const PassVariation variation{{{{0.5, 0.5}, {1.5, 0.5}}}};
  CHECK(slowest_replica(variation, 1, 2) == Approx(1.25));
  CHECK(slowest_replica(variation, 1, 1) == 1.0);
  CHECK(slowest_replica({}, 1, 8) == 1.0);
  // Two passes: 1, 2 or 3 with ¼, ½, ¼. The larger of two sums is 1 with 1/16, 2 with 8/16, else 3: 2.375 of a mean
  // of 2.
  CHECK(slowest_replica(variation, 2, 2) == Approx(2.375 / 2));
  // E[max of two normal variables] = σ/√π: sums of 100 passes have σ = ½ · √100 against a mean of 100.
  CHECK(slowest_replica(variation, 100, 2) == Approx(1.0 + 0.05 / std::sqrt(3.14159265)).epsilon(1e-4));
  // More passes between two meetings even out, more replicas do not.
  CHECK(slowest_replica(variation, 16, 8) < slowest_replica(variation, 4, 8));
  CHECK(slowest_replica(variation, 4, 16) > slowest_replica(variation, 4, 8));
}

TEST_CASE("formulas agree with sampling") {
  // Lognormal text and up to two images; 8 samples a micro-batch, 4 micro-batches a step, 4 replicas; 4,000 steps.
  DataShape data;
  data.images = histogram({{0, 1}, {1, 6}, {2, 1}});
  data.text = lognormal(300, 0.7);
  constexpr double visual = 576;
  constexpr std::int64_t limit = 2048;
  constexpr int steps = 4000, passes = 4, replicas = 4, samples = 8;
  const WorkWeights work{1.0, 0.0003, 50.0};

  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::discrete_distribution<int> images({1, 6, 1});
  const double sigma = std::sqrt(std::log1p(0.49));
  double computed = 0.0, useful = 0.0, mean_work = 0.0, slowest_work = 0.0;
  for (int step = 0; step < steps; ++step) {
    double slowest = 0.0;
    for (int replica = 0; replica < replicas; ++replica) {
      double sum = 0.0;
      for (int pass = 0; pass < passes; ++pass) {
        double longest = 0.0;
        double count = 0.0;
        for (int s = 0; s < samples; ++s) {
          const int k = images(random);
          const double text = std::exp(std::log(300.0) - sigma * sigma / 2 + sigma * normal(random));
          const double tokens = std::min(std::round(k * visual + text), static_cast<double>(limit));
          longest = std::max(longest, tokens);
          useful += tokens;
          count += k;
        }
        computed += samples * longest;
        sum += samples * (work.per_token * longest + work.per_pair * longest * longest) + work.per_image * count;
      }
      mean_work += sum / replicas;
      slowest = std::max(slowest, sum);
    }
    slowest_work += slowest;
  }
  const SampleMix mix = mix_of(data, visual, limit);
  const BatchShape shape = batch_shape(mix, batching(Batching::Kind::padding), samples, false);
  constexpr double drawn = static_cast<double>(steps) * replicas * passes * samples;
  CHECK(shape.tokens_per_sample == Approx(useful / drawn).epsilon(0.005));
  CHECK(shape.computed_per_sample == Approx(computed / drawn).epsilon(0.005));
  const PassVariation variation = pass_variation(mix, batching(Batching::Kind::padding), samples, work);
  const double excess = slowest_replica(variation, passes, replicas) - 1.0;
  CHECK(excess == Approx(slowest_work / mean_work - 1.0).epsilon(0.06));
  CHECK(excess > 0.02);
}

TEST_CASE("full sequences differ by what does not go with their samples' lengths, by hand") {
  // One or three tokens, 2 work a pair: 2 or 18, on average 10 for two tokens, 5 a token. What is left is 2 - 5 = -3
  // and 18 - 15 = 3: of four samples a standard deviation of 6. On average they have 40 of it, and 8 tokens' 10 each,
  // where sequences are full. E[max of two normal variables] = σ/√π.
  constexpr double root_of_pi = 1.7724538509;
  const SampleMix mix{{{1.0, 0.0, 0.5}, {3.0, 2.0, 0.5}}, 3.0};
  const Batching packing = batching(Batching::Kind::packing, 4);
  const double excess = slowest_replica(pass_variation(mix, packing, 4, {10.0, 2.0, 0.0}), 1, 2) - 1.0;
  CHECK(excess == Approx(6.0 / root_of_pi / (40.0 + 80.0 / packed_share(mix, 4))).epsilon(1e-3));
  // Padded to three tokens each, four samples differ by their images alone: no or two of 50, ±50 each, in all ±100.
  const Batching maximum = batching(Batching::Kind::maximum);
  const double of_images = slowest_replica(pass_variation(mix, maximum, 4, {10.0, 2.0, 50.0}), 1, 2) - 1.0;
  CHECK(of_images == Approx(100.0 / root_of_pi / (200.0 + 4 * (30.0 + 18.0))).epsilon(1e-3));
}
