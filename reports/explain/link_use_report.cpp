// The use of links as text, JSON and a picture.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/base/number.hpp"
#include "model/base/words.hpp"
#include "reports/explain/link_use.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

constexpr double least_link_utilisation = 0.001;  ///< of a link; below it is not printed
constexpr std::string_view columns_explained =
    "utilisation: of the busiest link's capacity over the whole time; active: share of the time with a transfer on it; "
    "while active: utilisation in that time. Near 100 % the link limits its transfers.";
constexpr std::size_t most_groups = 14;  ///< printed groups of links

/// Links with traffic, busiest first. Links whose names differ only in numbers are one entry, that of the busiest.
std::vector<LinkUse> busiest_first(const LinkUses& uses) {
  std::vector<LinkUse> order;
  std::map<std::string, std::size_t> place;
  for (const LinkUse& use : uses.links) {
    const auto [known, is_new] = place.try_emplace(without_numbers(use.name), order.size());
    if (is_new) {
      order.push_back(use);
      continue;
    }
    LinkUse& alike = order[known->second];
    const int links = alike.links + use.links;
    const double mean = (alike.mean * alike.links + use.mean * use.links) / links;
    if (use.most > alike.most) alike = use;
    alike.links = links;
    alike.mean = mean;
  }
  std::erase_if(order, [](const LinkUse& use) { return use.most < least_link_utilisation; });
  std::ranges::stable_sort(order, std::ranges::greater{}, &LinkUse::most);
  return order;
}

/// "gradient all-reduce 80 %, pipeline activations 20 %".
std::string users_text(const LinkUse& use) {
  std::string text;
  for (const LinkUse::User& user : use.users) {
    const double share = user.bytes / use.busiest;
    if (share < 0.01) continue;
    text += (text.empty() ? "" : ", ") + user.name;
    if (share < 0.99) text += fmt::format(" {:.0f} %", 100.0 * share);
  }
  return text;
}

/// "gpu>nvswitch ×8": where they differ, the busiest by its own name.
std::string name_of(const LinkUse& use) {
  if (use.links == 1) return use.name;
  const bool differ = use.most - use.mean > 0.02;
  return fmt::format("{} {}{}", differ ? use.name : without_numbers(use.name), differ ? "of " : "×", use.links);
}

/// A scale of one colour, from what hardly anybody uses to what is full (ColorBrewer Blues).
struct Shade {
  double from;
  std::string_view colour;
};
constexpr std::array<Shade, 5> shades = {
    {{0.0, "#deebf7"}, {0.1, "#9ecae1"}, {0.25, "#4292c6"}, {0.5, "#2171b5"}, {0.75, "#08306b"}}};

std::size_t shade_of(double share) {
  const auto above = std::ranges::upper_bound(shades, share, {}, &Shade::from);
  return static_cast<std::size_t>(above - shades.begin()) - 1;
}

std::vector<Series> empty_shades() {
  std::vector<Series> series;
  for (std::size_t i = 0; i < shades.size(); ++i) {
    const double until = i + 1 < shades.size() ? shades[i + 1].from : 1.0;
    series.push_back(
        {.name = fmt::format("{:.0f} to {:.0f} %", 100.0 * shades[i].from, 100.0 * until), .colour = shades[i].colour});
  }
  return series;
}

std::string waits_text(const LinkUses& uses) {
  constexpr std::size_t most_waits = 10;
  TextTable table("llrr", {"late ranks", "waiting ranks", "time", "share of step"});
  std::size_t printed = 0;
  for (const Wait& wait : uses.waits) {
    if (wait.time < least_link_utilisation * uses.time || printed == most_waits) break;
    table.add_row({wait.late, wait.waiting, format_seconds(wait.time), percent_text(wait.time / uses.time)});
    ++printed;
  }
  return printed == 0 ? "" : "\nStragglers\n" + table.text(2);
}

}  // namespace

std::string to_text(const LinkUses& uses) {
  const std::vector<LinkUse> order = busiest_first(uses);
  std::string text = fmt::format("Link utilisation over {}, busiest first{}\n", format_seconds(uses.time),
                                 uses.without_inside_layers ? ", without collectives inside layers" : "");
  if (order.empty()) return text + "  no traffic\n";
  TextTable table("lrrrrl", {"link", "bandwidth", "utilisation", "active", "while active", "traffic"});
  for (std::size_t i = 0; i < std::min(order.size(), most_groups); ++i) {
    const LinkUse& use = order[i];
    const double in_use = use.in_use / uses.time;
    table.add_row({name_of(use), format_bandwidth(use.bandwidth), percent_text(use.most),
                   in_use > 0.0 ? percent_text(in_use) : "", in_use > 0.0 ? percent_text(use.most / in_use) : "",
                   users_text(use)});
  }
  text += table.text(2);
  if (order.size() > most_groups) text += fmt::format("  and {} less utilised\n", order.size() - most_groups);
  return text + paragraph(columns_explained) + waits_text(uses);
}

std::string to_json(const LinkUses& uses) {
  using Json = nlohmann::ordered_json;
  Json json = {{"time_s", uses.time.value()}, {"links", Json::array()}};
  for (const LinkUse& use : busiest_first(uses)) {
    Json users = Json::array();
    for (const LinkUse::User& user : use.users) {
      users.push_back({{"name", user.name}, {"bytes", user.bytes.value()}});
    }
    json["links"].push_back({{"name", use.name},
                             {"kind", name(use.kind)},
                             {"links", use.links},
                             {"bandwidth_bytes_per_second", use.bandwidth.value()},
                             {"busiest_bytes", use.busiest.value()},
                             {"busiest_share", use.most},
                             {"mean_share", use.mean},
                             {"in_use_share", use.in_use / uses.time},
                             {"users", std::move(users)},
                             {"share_by_slice", use.slices}});
  }
  json["waits"] = Json::array();
  for (const Wait& wait : uses.waits) {
    json["waits"].push_back({{"late", wait.late}, {"waiting", wait.waiting}, {"time_s", wait.time.value()}});
  }
  return json.dump(2);
}

Figure to_figure(const LinkUses& uses) {
  std::vector<LinkUse> order = busiest_first(uses);
  if (order.empty()) throw UsageError("no link carries traffic: nothing to draw");
  order.resize(std::min(order.size(), most_groups));
  const TimeUnit unit = time_unit(uses.time);
  const double end = uses.time / unit.size;
  constexpr int row_height = 24, width = 620;
  Panel panel{.title = "link utilisation",
              .width = width,
              .height = row_height * static_cast<int>(order.size()),
              .x = {.name = fmt::format("time ({})", unit.name), .high = end},
              .y = {.low = -0.5, .high = number(order.size()) - 0.5, .font = 11},
              .series = empty_shades(),
              .rows = true,
              .frame = true};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double row = number(order.size() - 1 - i), slice = end / number(order[i].slices.size());
    panel.y.tics.push_back({row, name_of(order[i])});
    double left = 0.0;
    for (std::size_t s = 0; s < order[i].slices.size(); ++s) {
      const double share = order[i].slices[s], right = slice * number(s + 1);
      if (share >= least_link_utilisation) {
        std::vector<Box>& boxes = panel.series[shade_of(share)].boxes;
        const bool goes_on = !boxes.empty() && boxes.back().low == row - 0.4 && boxes.back().right == left;
        if (goes_on) {
          boxes.back().right = right;
        } else {
          boxes.push_back({left, right, row - 0.4, row + 0.4});
        }
      }
      left = right;
    }
  }
  std::erase_if(panel.series, [](const Series& shade) { return shade.boxes.empty(); });
  return {.panels = {std::move(panel)}};
}

}  // namespace foretrain
