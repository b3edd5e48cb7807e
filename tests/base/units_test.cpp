#include "model/base/units.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// The parser's error for a text that it refuses: "wrong; right".
template <typename Parse>
std::string complaint(Parse parse) {
  try {
    parse();
  } catch (const UnitError& error) {
    return error.got() + "; " + error.expected();
  }
  return "accepted";
}

std::string bandwidth_complaint(const char* text) {
  return complaint([&] { return parse_quantity<BytesPerSecond>(text); });
}

}  // namespace

TEST_CASE("SI prefixes are powers of ten, binary ones powers of two") {
  CHECK(parse_quantity<Bytes>("25 MB").value() == 25e6);
  CHECK(parse_quantity<Bytes>("16 MiB").value() == 16.0 * 1024 * 1024);
  CHECK(parse_quantity<Bytes>("1 KiB").value() == 1024.0);
  CHECK(parse_quantity<Bytes>("2 TiB").value() == 2199023255552.0);  // 2 · 2⁴⁰
  CHECK(parse_quantity<Bytes>("1.5 GB").value() == 1.5e9);
  CHECK(parse_quantity<Bytes>("0 B").value() == 0.0);
  CHECK(parse_quantity<BytesPerSecond>("3 MiB/s").value() == 3.0 * 1048576.0);
  // They count bytes and nothing else.
  CHECK(complaint([] { return parse_quantity<Bytes>("3 Kibit"); }) != "accepted");
  CHECK(bandwidth_complaint("3 Mibit/s") != "accepted");
  CHECK(complaint([] { return parse_quantity<FlopsPerSecond>("3 GiFLOP/s"); }) != "accepted");
  CHECK(complaint([] { return parse_quantity<Hertz>("3 GiHz"); }) != "accepted");
}

TEST_CASE("A byte is eight bits") {
  CHECK(parse_quantity<BytesPerSecond>("200 Gbit/s").value() == 25e9);  // 200e9 / 8
  CHECK(parse_quantity<BytesPerSecond>("200 Gbps").value() == 25e9);    // as networks are sold
  CHECK(parse_quantity<BytesPerSecond>("450 GB/s").value() == 450e9);
  CHECK(parse_quantity<Bytes>("8 Mbit").value() == 1e6);
}

TEST_CASE("Times, frequencies, work, rates, power and price") {
  CHECK(parse_quantity<Seconds>("5 us").value() == Approx(5e-6));
  CHECK(parse_quantity<Seconds>("5 µs").value() == Approx(5e-6));
  CHECK(parse_quantity<Seconds>("3566.500 ms").value() == Approx(3.5665));
  CHECK(parse_quantity<Seconds>("2 h").value() == 7200.0);
  CHECK(parse_quantity<Seconds>("36h").value() == 129'600.0);
  CHECK(parse_quantity<Seconds>("45d").value() == parse_quantity<Seconds>("45 days").value());
  CHECK(parse_quantity<Seconds>("2w").value() == parse_quantity<Seconds>("14 days").value());
  CHECK(parse_quantity<Hertz>("1410 MHz").value() == 1.41e9);
  CHECK(parse_quantity<Flops>("4 GFLOP").value() == 4e9);
  CHECK(parse_quantity<FlopsPerSecond>("312 TFLOP/s").value() == 312e12);
  CHECK(parse_watts("400 W") == 400.0);
  CHECK(parse_usd_per_gpu_hour("2.5 USD/GPU/hour") == 2.5);
}

TEST_CASE("The space before the unit is optional, exponents are allowed") {
  CHECK(parse_quantity<Bytes>("25MB").value() == 25e6);
  CHECK(parse_quantity<Bytes>("  25  MB ").value() == 25e6);
  CHECK(parse_quantity<Bytes>("1e3 MB").value() == 1e9);
  CHECK(parse_quantity<Bytes>(".5 KB").value() == 500.0);
}

TEST_CASE("A wrong dimension says which one it is and what to write") {
  CHECK(bandwidth_complaint("25 GB") == "\"25 GB\" is a size, not a bandwidth; write \"25 GB/s\" or \"25 Gbit/s\"");
  CHECK(complaint([] { return parse_quantity<Bytes>("25 GB/s"); }) ==
        "\"25 GB/s\" is a bandwidth, not a size; write \"25 GB\"");
  CHECK(complaint([] { return parse_quantity<FlopsPerSecond>("19.5 TFLOP"); }) ==
        "\"19.5 TFLOP\" is an amount of work, not a computing rate; write \"19.5 TFLOP/s\"");
  CHECK(complaint([] { return parse_quantity<Seconds>("5 GB"); }) ==
        "\"5 GB\" is a size, not a time; write \"5 us\", \"5 ms\" or \"5 s\"");
}

TEST_CASE("A number without unit is refused") {
  CHECK(bandwidth_complaint("200") == "\"200\" has no unit; write \"200 GB/s\" or \"200 Gbit/s\"");
  CHECK(complaint([] { return parse_usd_per_gpu_hour("3"); }) == "\"3\" has no unit; write \"3 USD/GPU/hour\"");
}

TEST_CASE("Foreign spellings are refused with the right one") {
  CHECK(bandwidth_complaint("200 Gb/s") == "unknown unit \"Gb/s\"; write \"200 Gbit/s\"");
  CHECK(bandwidth_complaint("16 GBps") == "unknown unit \"GBps\"; write \"16 GB/s\"");
  CHECK(complaint([] { return parse_quantity<FlopsPerSecond>("312 TFLOPS"); }) ==
        "unknown unit \"TFLOPS\"; write \"312 TFLOP/s\"");
  CHECK(complaint([] { return parse_quantity<Bytes>("25 mb"); }) == "unknown unit \"mb\"; write \"25 MB\"");
  CHECK(complaint([] { return parse_quantity<Seconds>("3 sec"); }) == "unknown unit \"sec\"; write \"3 s\"");
}

TEST_CASE("Numbers that are none, negative or endless are refused") {
  for (const char* text : {"NaN", ".nan", "inf", "-inf", ".inf", "nan GB/s"}) {
    INFO(text);
    CHECK(bandwidth_complaint(text).find("is not a finite number") != std::string::npos);
  }
  CHECK(bandwidth_complaint("-5 GB/s") == "\"-5 GB/s\" is negative; a number that is not negative");
  CHECK(bandwidth_complaint("1e400 GB/s") == "\"1e400 GB/s\" is outside the range of numbers; a number below 1e24");
  // 1e20 GB/s is 1e29 B/s: a number, but beyond every machine
  CHECK(bandwidth_complaint("1e20 GB/s").find("is too large") != std::string::npos);
  // and 1e-300 bit/s is one that no machine has: 1 GB would take longer than the largest number of seconds
  CHECK(bandwidth_complaint("1e-300 bit/s") == "\"1e-300 bit/s\" is too small; a bandwidth from 1e-24 base units on");
  CHECK(complaint([] { return parse_number("1e-300"); }) == "\"1e-300\" is too small; 0, or at least 1e-24");
  CHECK(parse_number("0") == 0.0);  // nothing is not too little
  CHECK(bandwidth_complaint("fast") == "\"fast\" is not a number; a decimal number such as 2.5 or 1e6");
  CHECK(bandwidth_complaint("") == "empty value; a number");
  CHECK(bandwidth_complaint("1,024 GB/s").find("digits without separators") != std::string::npos);
  CHECK(bandwidth_complaint("0x10 GB/s") != "accepted");
}

TEST_CASE("Whole numbers keep to their range, both ends included") {
  CHECK(parse_integer("1", 1, 8) == 1);
  CHECK(parse_integer("8", 1, 8) == 8);
  CHECK(complaint([] { return parse_integer("9", 1, 8); }) == "9 is out of range; an integer from 1 to 8");
  CHECK(complaint([] { return parse_integer("0", 1, 8); }) == "0 is out of range; an integer from 1 to 8");
  CHECK(complaint([] { return parse_integer("-1", 1, 8); }) == "-1 is out of range; an integer from 1 to 8");
  CHECK(complaint([] { return parse_integer("2.0", 1, 8); }) == "\"2.0\" is not an integer; an integer from 1 to 8");
  CHECK(complaint([] { return parse_integer("99999999999999999999", 1, 8); }) ==
        "\"99999999999999999999\" is too large; an integer from 1 to 8");
}

TEST_CASE("Lengths of training count tokens or samples") {
  const TrainingLength tokens = parse_training_length("300 billion tokens");
  CHECK(tokens.count == 300e9);
  CHECK(tokens.unit == TrainingLength::Unit::tokens);
  CHECK(parse_training_length("15T tokens").count == 15e12);
  CHECK(parse_training_length("1.5 B tokens").count == 1.5e9);
  CHECK(parse_training_length("20M images").count == 20e6);
  const TrainingLength images = parse_training_length("90 epochs of 1281167 images");
  CHECK(images.count == 90.0 * 1281167.0);
  CHECK(images.unit == TrainingLength::Unit::samples);
  CHECK(parse_training_length("50000 samples").count == 50000.0);
  CHECK(complaint([] { return parse_training_length("300 billion"); }).find("300 billion tokens") != std::string::npos);
  CHECK(complaint([] { return parse_training_length("90 epochs"); }) != "accepted");
  CHECK(complaint([] { return parse_training_length("0 tokens"); }) != "accepted");
}

TEST_CASE("A row of a table may fix the unit in which a quantity is kept") {
  CHECK(parse_in_unit("6.5 us", "us") == Approx(6.5));
  CHECK(parse_in_unit("2 ms", "us") == Approx(2000.0));
  CHECK(parse_in_unit("1200 MiB", "MiB") == Approx(1200.0));
  CHECK(complaint([] { return parse_in_unit("6 GB", "GB/s"); }) ==
        "\"6 GB\" is a size, not a bandwidth; write \"6 GB/s\" or \"6 Gbit/s\"");
}
