// Training logs beyond rows/logs.txt: bytes that are no text, tables, several logs, broken heads.

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "reports/import/training_log.hpp"
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

LoggedRun run_of(std::string text, std::string file = "run.log") {
  ImportInput input;
  input.file = std::move(file);
  input.text = std::move(text);
  return read_training_log(input);
}

std::string megatron_step(int number, double milliseconds) {
  return fmt::format(" iteration {:8d}/    100 | elapsed time per iteration (ms): {:.1f} |\n", number, milliseconds);
}

constexpr const char* heads[] = {
    "---- arguments ----\n  num_layers .... 2\n  hidden_size .... 256\n  num_attention_heads .... 4\n  seq_length .... "
    "64\n"
    "  world_size .... 8\n  micro_batch_size .... 1\n  ......\n---- end of arguments ----\n",
    "Running with args: {\"model\": {\"name\": \"llama3\", \"flavor\": \"8B\"}, \"training\": {\"seq_len\": 128}}\n",
    "  json = {\n  \"train_batch_size\": 8,\n  \"zero_optimization\": {\"stage\": 2}\n}\n"};

}  // namespace

TEST_CASE("colours of terminals and the carriage returns of progress bars are no part of a line") {
  const LoggedRun run = run_of(
      "\x1b[31mstep:  1  \x1b[32mloss: 12.2  \x1b[34mtps: 1,000\x1b[39m\n\x1b[31mstep: 10  \x1b[34mtps: "
      "7,000\x1b[39m\n");
  CHECK(run.format == "torchtitan");
  CHECK(run.median == Approx(4000.0));
  const LoggedRun bar = run_of(
      "Epoch 0: 1%| global_step=1.0, train_step_timing in s=3.0]\r"
      "Epoch 0: 2%| global_step=2.0, train_step_timing in s=2.0]\r");
  CHECK(bar.steps == 2);
  CHECK(bar.median == Approx(2.5));
}

TEST_CASE("metrics.csv of Lightning is read by its columns, those of training alone") {
  const std::string header =
      "epoch,step,train/batches,train/device/batches_per_sec,train/device/samples_per_sec,train/samples,train/time,"
      "validate/device/batches_per_sec,validate/time\n";
  std::string rows = "0,9,10,,,40,25.1,,\n";
  for (const char* step : {"10", "20", "30", "40"}) {
    rows += fmt::format("0,{},{},{},1.6,80,50.1,,\n0,{},,,,,,2.5,4.1\n", step, step, "0.4", step);
  }
  const LoggedRun run = run_of(header + rows, "metrics.csv");
  CHECK(run.format == "PyTorch Lightning");
  CHECK(run.median == Approx(2.5));  // 1 / 0.4
  CHECK(run_of("device/batches_per_sec,iter,time\n0.5,1,2\n0.5,2,4\n", "metrics.csv").median ==
        Approx(2.0));  // Fabric's
}

TEST_CASE("warm-up ends with the first step that is hardly slower than the second half") {
  std::string log;
  for (const double time : {9000.0, 3000.0, 2150.0, 2000.0, 2000.0, 2050.0, 2000.0, 2400.0, 2000.0, 2000.0}) {
    log += megatron_step(static_cast<int>(log.size()), time);
  }
  const LoggedRun run = run_of(log);
  CHECK(run.warm_up == 2);  // 2150 is within a tenth of 2000
  CHECK(run.steps == 8);
  CHECK(run.median == Approx(2.0));
  // Of 2, 2, 2, 2, 2, 2.05, 2.15, 2.4 the P90 lies 0.3 of the way from the seventh to the eighth.
  CHECK(run.slowest_tenth == Approx(2.15 + 0.3 * 0.25));
}

TEST_CASE("where each step follows an evaluation, all count") {
  const std::string evaluation = " validation loss at iteration 1 | lm loss value: 1.0 |\n";
  CHECK(run_of(evaluation + megatron_step(1, 1000) + evaluation + megatron_step(2, 1200)).median == Approx(1.1));
}

TEST_CASE("a step at half the rate behind a checkpoint takes one more of three steps' time") {
  CHECK(run_of("step: 1 tps: 1,000\nSaving the checkpoint\nstep: 2 tps: 500\nstep: 3 tps: 1,000\n").checkpoint_share ==
        Approx(1.0 / 3.0));
}

TEST_CASE("several logs make one table, whose rows lack what their log lacks") {
  std::vector<LoggedRun> runs = {run_of(megatron_step(1, 1000), "a.log"), run_of("step:  1  tps: 500\n", "b.log")};
  const std::vector<std::string> lines = split(log_table(runs, "gpt2-xl-dgx-a100", {"plan.zero=1"}), '\n');
  CHECK(lines.at(0) == "case,base,plan.zero,measured.step_time,measured.tokens_per_second_per_gpu,source");
  CHECK(lines.at(1).starts_with("a,gpt2-xl-dgx-a100,1,1 s,,"));
  CHECK(lines.at(2).starts_with("b,gpt2-xl-dgx-a100,1,,500,"));
  CHECK_THROWS_AS(log_table(runs, "gpt2-xl-dgx-a100", {"plan.tensor=7"}), ScenarioError);
}

TEST_CASE("a head that is cut off or broken anywhere is refused as its tool's files are") {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 1);
  for (const std::string head : heads) {
    ImportInput input;
    input.file = "log";
    input.text = head;
    if (!head.starts_with("----")) CHECK_FALSE(scenario_at_head(input).empty());
    for (std::size_t end = 0; end < head.size(); ++end) {
      for (const char* instead : {"", "\"", "{", "\xff", " ..", "9e999"}) {
        input.text = head.substr(0, end) + instead + (end % 2 == 0 ? "" : head.substr(end + 1));
        try {
          scenario_at_head(input);
        } catch (const ScenarioError&) {
          // Refusals are reported.
        }
      }
    }
  }
}
