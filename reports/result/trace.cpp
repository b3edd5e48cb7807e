#include "reports/result/trace.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace foretrain {

namespace {

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

std::string microseconds(Seconds time) { return fmt::format("{:.3f}", time.value() * 1e6); }

/// Place of an entry: process and thread, both from 1.
struct Place {
  int process = 0, thread = 0;
};

/// The events, one a line.
class Events {
 public:
  void add(const std::string& event) { text_ += (text_.empty() ? "" : ",\n") + event; }

  void name(const char* what, Place place, const std::string& name) {
    add(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what, place.process,
                    place.thread, quoted(name)));
    if (std::string(what) == "thread_name") {
      add(fmt::format(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
                      place.process, place.thread, place.thread));
    }
  }

  void task(const TimelineEntry& entry, Place place) {
    std::string arguments;
    const auto argument = [&](const char* key, const std::string& value) {
      arguments += fmt::format("{}\"{}\":{}", arguments.empty() ? "" : ",", key, value);
    };
    if (entry.micro_batch >= 0) argument("micro_batch", fmt::format("{}", entry.micro_batch + 1));
    if (entry.moved.value() > 0.0) argument("bytes", fmt::format("{:.0f}", entry.moved.value()));
    if (!entry.algorithm.empty()) argument("algorithm", quoted(entry.algorithm));
    add(fmt::format(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                    quoted(entry.name), entry.category, place.process, place.thread, microseconds(entry.start),
                    microseconds(entry.duration), arguments));
  }

  /// From the end of one task to the beginning of another.
  void arrow(const TimelineEntry& from, Place source, const TimelineEntry& to, Place target) {
    ++arrows_;
    add(fmt::format(R"({{"ph":"s","name":"waits for","cat":"dependency","id":{},"pid":{},"tid":{},"ts":{}}})", arrows_,
                    source.process, source.thread, microseconds(from.start + from.duration * 0.999)));
    add(fmt::format(R"({{"ph":"f","bp":"e","name":"waits for","cat":"dependency","id":{},"pid":{},"tid":{},"ts":{}}})",
                    arrows_, target.process, target.thread, microseconds(to.start)));
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  int arrows_ = 0;
};

}  // namespace

std::string to_trace(const std::string& title, const std::vector<TimelineEntry>& entries) {
  Events events;
  std::map<int, int> threads_of_class;
  std::map<std::pair<int, std::string>, int> thread_of;
  std::vector<Place> places;
  for (const TimelineEntry& entry : entries) {
    const int process = entry.rank_class + 1;
    int& threads = threads_of_class[entry.rank_class];
    if (threads == 0) {
      const bool measured = entry.resource.starts_with("measured ");
      const std::string whose = measured ? "measured" : fmt::format("rank class {}", entry.rank_class);
      events.name("process_name", {process, 0}, title + ": " + whose);
    }
    const auto [known, is_new] = thread_of.try_emplace({entry.rank_class, entry.resource}, threads + 1);
    if (is_new) events.name("thread_name", {process, ++threads}, entry.resource);
    places.push_back({process, known->second});
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    events.task(entries[i], places[i]);
    for (const std::size_t other : entries[i].after) events.arrow(entries[other], places[other], entries[i], places[i]);
  }
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", events.text());
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  constexpr int gzip_window = 15 + 16, memory_level = 8;
  if (deflateInit2(&stream, 6, Z_DEFLATED, gzip_window, memory_level, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("zlib has no memory");
  }
  std::string packed(deflateBound(&stream, text.size()), '\0');
  std::string copy = text;  // zlib's interface knows no constants
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int status = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw std::runtime_error("zlib: not all could be packed");
  return packed;
}

}  // namespace foretrain
