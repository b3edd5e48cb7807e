// Drawings of machines as wholes: several sockets and NVSwitches, rings, and what has no room.
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/figure/plot_topology.hpp"
#include "reports/print/wiring_text.hpp"
#include "tests/catch.hpp"
#include "tests/hardware/nodes.hpp"
#include "tests/reports/figure_words.hpp"

namespace foretrain::test {
namespace {

using namespace test_nodes;

std::string drawn(const Node& node, int width) { return "\n" + panel_words(node_panel(node, node.network, width)); }
std::string told(const Node& node) { return "\n" + wiring_text(node, node.network, 0); }

/// Sockets with a switch each, on which GPUs hang.
Node sockets_with_switches(int sockets, int gpus_each) {
  Node node = bare_node("sockets", sockets * gpus_each, sockets);
  node.link_types = {link_type("pcie4", LinkKind::pcie, 25.0_GBps, 1.0_us),
                     link_type("nvlink", LinkKind::nvlink, 25.0_GBps, 1.0_us),
                     link_type("upi", LinkKind::socket, 20.0_GBps, 1.0_us)};
  const int gpus = sockets * gpus_each;
  for (int socket = 0; socket < sockets; ++socket) {
    const int plx = add_vertex(node, "plx" + std::to_string(socket), VertexKind::pcie_switch);
    node.links.push_back({plx, gpus + socket, 0, 1});
    for (int i = 0; i < gpus_each; ++i) node.links.push_back({socket * gpus_each + i, plx, 0, 1});
  }
  return node;
}

Node catalogue_node(const char* name) {
  const YamlNode written = yaml_scalar(name, {"", 0, 0});
  return read_node(Field(written, ""));
}

}  // namespace

TEST_CASE("A machine with two NVSwitches has a bar for each below its GPUs") {
  Node node = sockets_with_switches(2, 2);
  for (int number = 0; number < 2; ++number) {
    const int nvswitch = add_vertex(node, "nvswitch" + std::to_string(number), VertexKind::nvswitch);
    for (int gpu = 0; gpu < (number == 0 ? 4 : 2); ++gpu) node.links.push_back({gpu, nvswitch, 1, number + 1});
  }
  node.links.push_back({4, 5, 2, 2});
  CHECK(drawn(node, 300) == R"(
panel <>, <>: 300 x 218 rows bare edge #6b6b6b
  x <> 0..300: 0=
  y <> -218..0: 0=
  series <pcie4, 25.0 GB/s> #0072B2 line 1.4 (63.8298, -38) (63.8298, -66) (0, nan) (31.9149, -88) (31.9149,
      -116) (0, nan) (95.7447, -88) (95.7447, -116) (0, nan) (236.17, -38) (236.17, -66) (0, nan) (204.255,
      -88) (204.255, -116) (0, nan) (268.085, -88) (268.085, -116) (0, nan)
  series <2 x upi, 40.0 GB/s> #D55E00 line 1.4 (63.8298, -4) (63.8298, -16) (0, nan) (236.17, -4) (236.17,
      -16) (0, nan) (63.8298, -4) (236.17, -4) (0, nan)
  series <nvlink, 25.0 GB/s> #009E73 line 1.4 (30.4149, -138) (30.4149, -162) (0, nan) (94.2447, -138)
      (94.2447, -162) (0, nan) (202.755, -138) (202.755, -162) (0, nan) (266.585, -138) (266.585, -162) (0,
      nan)
  series <2 x nvlink, 50.0 GB/s> #CC79A7 line 1.4 (33.4149, -138) (33.4149, -192) (0, nan) (97.2447, -138)
      (97.2447, -192) (0, nan)
  series <> #E6BAD4 [3.82979..123.83 x -38..-16] [176.17..296.17 x -38..-16]
  series <> #D4D4D4 [3.82979..123.83 x -88..-66] [176.17..296.17 x -88..-66]
  series <> #8CCBF0 [3.82979..60 x -138..-116] [67.6596..123.83 x -138..-116] [176.17..232.34 x -138..-116]
      [240..296.17 x -138..-116]
  series <> #9AD9BE [3.82979..296.17 x -184..-162] [3.82979..123.83 x -214..-192]
  label <cpu0> at (63.8298, -27) middle font 10
  label <plx0> at (63.8298, -77) middle font 10
  label <gpu0> at (31.9149, -127) middle font 10
  label <gpu1> at (95.7447, -127) middle font 10
  label <cpu1> at (236.17, -27) middle font 10
  label <plx1> at (236.17, -77) middle font 10
  label <gpu2> at (204.255, -127) middle font 10
  label <gpu3> at (268.085, -127) middle font 10
  label <nvswitch0> at (150, -173) middle font 10
  label <nvswitch1> at (63.8298, -203) middle font 10
)");
  CHECK(told(node) == R"(
cpu0
└─ plx0                  pcie4, 25.0 GB/s
   └─ gpu0, gpu1         pcie4, 25.0 GB/s
cpu1
└─ plx1                  pcie4, 25.0 GB/s
   └─ gpu2, gpu3         pcie4, 25.0 GB/s
gpu0 … gpu3 – nvswitch0  nvlink, 25.0 GB/s
gpu0, gpu1 – nvswitch1   2 x nvlink, 50.0 GB/s
cpu0 – cpu1              2 x upi, 40.0 GB/s
)");
}

TEST_CASE("GPUs in a ring are joined by arcs, the longer the higher") {
  Node node = sockets_with_switches(1, 4);
  for (int gpu = 0; gpu < 4; ++gpu) node.links.push_back({gpu, (gpu + 1) % 4, 1, 1});
  CHECK(drawn(node, 300) == R"(
panel <>, <>: 300 x 178 rows bare edge #6b6b6b
  x <> 0..300: 0=
  y <> -178..0: 0=
  series <pcie4, 25.0 GB/s> #0072B2 line 1.4 (150, -26) (150, -54) (0, nan) (37.5, -76) (37.5, -104) (0, nan)
      (112.5, -76) (112.5, -104) (0, nan) (187.5, -76) (187.5, -104) (0, nan) (262.5, -76) (262.5, -104) (0,
      nan)
  series <nvlink, 25.0 GB/s> #D55E00 line 1.4 (37.5, -126) (37.8208, -128.806) (38.7778, -131.565) (40.3545,
      -134.228) (42.524, -136.75) (45.2492, -139.088) (48.4835, -141.203) (52.1714, -143.057) (56.25, -144.62)
      (60.6494, -145.863) (65.2943, -146.767) (70.1053, -147.316) (75, -147.5) (79.8947, -147.316) (84.7057,
      -146.767) (89.3506, -145.863) (93.75, -144.62) (97.8286, -143.057) (101.517, -141.203) (104.751,
      -139.088) (107.476, -136.75) (109.645, -134.228) (111.222, -131.565) (112.179, -128.806) (112.5, -126)
      (0, nan) (112.5, -126) (112.821, -128.806) (113.778, -131.565) (115.355, -134.228) (117.524, -136.75)
      (120.249, -139.088) (123.483, -141.203) (127.171, -143.057) (131.25, -144.62) (135.649, -145.863)
      (140.294, -146.767) (145.105, -147.316) (150, -147.5) (154.895, -147.316) (159.706, -146.767) (164.351,
      -145.863) (168.75, -144.62) (172.829, -143.057) (176.517, -141.203) (179.751, -139.088) (182.476,
      -136.75) (184.645, -134.228) (186.222, -131.565) (187.179, -128.806) (187.5, -126) (0, nan) (187.5,
      -126) (187.821, -128.806) (188.778, -131.565) (190.355, -134.228) (192.524, -136.75) (195.249, -139.088)
      (198.483, -141.203) (202.171, -143.057) (206.25, -144.62) (210.649, -145.863) (215.294, -146.767)
      (220.105, -147.316) (225, -147.5) (229.895, -147.316) (234.706, -146.767) (239.351, -145.863) (243.75,
      -144.62) (247.829, -143.057) (251.517, -141.203) (254.751, -139.088) (257.476, -136.75) (259.645,
      -134.228) (261.222, -131.565) (262.179, -128.806) (262.5, -126) (0, nan) (37.5, -126) (38.4625,
      -132.331) (41.3333, -138.553) (46.0636, -144.56) (52.5721, -150.25) (60.7477, -155.525) (70.4505,
      -160.295) (81.5143, -164.478) (93.75, -168.002) (106.948, -170.808) (120.883, -172.847) (135.316,
      -174.085) (150, -174.5) (164.684, -174.085) (179.117, -172.847) (193.052, -170.808) (206.25, -168.002)
      (218.486, -164.478) (229.55, -160.295) (239.252, -155.525) (247.428, -150.25) (253.936, -144.56)
      (258.667, -138.553) (261.538, -132.331) (262.5, -126) (0, nan)
  series <> #E6BAD4 [4.5..295.5 x -26..-4]
  series <> #D4D4D4 [4.5..295.5 x -76..-54]
  series <> #8CCBF0 [4.5..70.5 x -126..-104] [79.5..145.5 x -126..-104] [154.5..220.5 x -126..-104]
      [229.5..295.5 x -126..-104]
  label <cpu0> at (150, -15) middle font 10
  label <plx0> at (150, -65) middle font 10
  label <gpu0> at (37.5, -115) middle font 10
  label <gpu1> at (112.5, -115) middle font 10
  label <gpu2> at (187.5, -115) middle font 10
  label <gpu3> at (262.5, -115) middle font 10
)");
  CHECK(told(node) == R"(
cpu0
└─ plx0            pcie4, 25.0 GB/s
   └─ gpu0 … gpu3  pcie4, 25.0 GB/s
gpu0 – gpu1, gpu3  nvlink, 25.0 GB/s
gpu1 – gpu2        nvlink, 25.0 GB/s
gpu2 – gpu3        nvlink, 25.0 GB/s
)");
}

TEST_CASE("Sockets and GPUs that have no room are an ellipsis between the first and the last") {
  Node node = sockets_with_switches(6, 4);
  for (int socket = 0; socket < 5; ++socket) node.links.push_back({24 + socket, 25 + socket, 2, 1});
  CHECK(drawn(node, 200) == R"(
panel <>, <>: 200 x 156 rows bare edge #6b6b6b
  x <> 0..200: 0=
  y <> -156..0: 0=
  series <pcie4, 25.0 GB/s> #0072B2 line 1.4 (26.4901, -52) (26.4901, -80) (0, nan) (6.62252, -102) (6.62252,
      -130) (0, nan) (19.8675, -102) (19.8675, -130) (0, nan) (46.3576, -102) (46.3576, -130) (0, nan)
      (88.7417, -52) (88.7417, -80) (0, nan) (68.8742, -102) (68.8742, -130) (0, nan) (82.1192, -102)
      (82.1192, -130) (0, nan) (108.609, -102) (108.609, -130) (0, nan) (173.51, -52) (173.51, -80) (0, nan)
      (153.642, -102) (153.642, -130) (0, nan) (166.887, -102) (166.887, -130) (0, nan) (193.377, -102)
      (193.377, -130) (0, nan)
  series <upi, 20.0 GB/s> #D55E00 line 1.4 (26.4901, -30) (26.7564, -27.4932) (27.5507, -25.0293) (28.8594,
      -22.6505) (30.6601, -20.3974) (32.9221, -18.3086) (35.6066, -16.4198) (38.6677, -14.7634) (42.053,
      -13.3677) (45.7046, -12.2566) (49.5599, -11.4491) (53.5532, -10.959) (57.6159, -10.7947) (61.6786,
      -10.959) (65.6719, -11.4491) (69.5272, -12.2566) (73.1788, -13.3677) (76.5641, -14.7634) (79.6252,
      -16.4198) (82.3097, -18.3086) (84.5717, -20.3974) (86.3724, -22.6505) (87.6811, -25.0293) (88.4754,
      -27.4932) (88.7417, -30) (0, nan)
  series <> #E6BAD4 [0.794702..52.1854 x -52..-30] [63.0464..114.437 x -52..-30] [147.815..199.205 x -52..-30]
  series <> #D4D4D4 [0.794702..52.1854 x -102..-80] [63.0464..114.437 x -102..-80] [147.815..199.205 x
      -102..-80]
  series <GPU> #8CCBF0 [0.794702..12.4503 x -152..-130] [14.0397..25.6954 x -152..-130] [40.5298..52.1854 x
      -152..-130] [63.0464..74.702 x -152..-130] [76.2914..87.947 x -152..-130] [102.781..114.437 x
      -152..-130] [147.815..159.47 x -152..-130] [161.06..172.715 x -152..-130] [187.55..199.205 x -152..-130]
  label <cpu0> at (26.4901, -41) middle font 10
  label <plx0> at (26.4901, -91) middle font 10
  label <0> at (6.62252, -141) middle font 10
  label <1> at (19.8675, -141) middle font 10
  label <…> at (33.1126, -141) middle font 10
  label <3> at (46.3576, -141) middle font 10
  label <cpu1> at (88.7417, -41) middle font 10
  label <plx1> at (88.7417, -91) middle font 10
  label <4> at (68.8742, -141) middle font 10
  label <5> at (82.1192, -141) middle font 10
  label <…> at (95.3642, -141) middle font 10
  label <7> at (108.609, -141) middle font 10
  label <…> at (131.126, -41) middle font 10
  label <cpu5> at (173.51, -41) middle font 10
  label <plx5> at (173.51, -91) middle font 10
  label <…> at (180.132, -141) middle font 10
)");
  CHECK(told(node) == R"(
cpu0
└─ plx0            pcie4, 25.0 GB/s
   └─ gpu0 … gpu3  pcie4, 25.0 GB/s
cpu1 … cpu5        the same, with gpu4 … gpu23
cpu0 – cpu1        upi, 20.0 GB/s
cpu1 – cpu2        upi, 20.0 GB/s
cpu2 – cpu3        upi, 20.0 GB/s
cpu3 – cpu4        upi, 20.0 GB/s
cpu4 – cpu5        upi, 20.0 GB/s
)");
  CHECK(drawn(catalogue_node("gb200-nvl72"), 346) == R"(
panel <>, <>: 346 x 138 rows bare edge #6b6b6b
  x <> 0..346: 0=
  y <> -138..0: 0=
  series <nvlink-c2c, 352 GB/s> #0072B2 line 1.4 (11.457, -38) (11.457, -66) (0, nan) (34.3709, -38) (34.3709,
      -66) (0, nan) (119.152, -38) (119.152, -66) (0, nan) (142.066, -38) (142.066, -66) (0, nan) (265.801,
      -38) (265.801, -66) (0, nan) (288.715, -38) (288.715, -66) (0, nan)
  series <pcie5-x16, 55.0 GB/s> #D55E00 line 1.4 (57.2848, -38) (57.2848, -66) (0, nan) (80.1987, -38)
      (80.1987, -66) (0, nan) (164.98, -38) (164.98, -66) (0, nan) (187.894, -38) (187.894, -66) (0, nan)
      (311.629, -38) (311.629, -66) (0, nan) (334.543, -38) (334.543, -66) (0, nan) (45.8278, -4) (45.8278,
      -16) (0, nan) (153.523, -4) (153.523, -16) (0, nan) (300.172, -4) (300.172, -16) (0, nan) (45.8278, -4)
      (300.172, -4) (0, nan)
  series <18 x nvlink5, 756 GB/s> #009E73 line 1.4 (11.457, -88) (11.457, -112) (0, nan) (34.3709, -88)
      (34.3709, -112) (0, nan) (119.152, -88) (119.152, -112) (0, nan) (142.066, -88) (142.066, -112) (0, nan)
      (265.801, -88) (265.801, -112) (0, nan) (288.715, -88) (288.715, -112) (0, nan)
  series <> #E6BAD4 [1.37483..90.2808 x -38..-16] [109.07..197.976 x -38..-16] [255.719..344.625 x -38..-16]
  series <GPU> #8CCBF0 [1.37483..21.5391 x -88..-66] [24.2887..44.453 x -88..-66] [109.07..129.234 x -88..-66]
      [131.984..152.148 x -88..-66] [255.719..275.883 x -88..-66] [278.633..298.797 x -88..-66]
  series <network card> #F5EA7A [47.2026..67.3669 x -88..-66] [70.1166..90.2808 x -88..-66] [154.898..175.062
      x -88..-66] [177.812..197.976 x -88..-66] [301.547..321.711 x -88..-66] [324.461..344.625 x -88..-66]
  series <> #9AD9BE [1.37483..298.797 x -134..-112]
  label <cpu0> at (45.8278, -27) middle font 10
  label <0> at (11.457, -77) middle font 10
  label <1> at (34.3709, -77) middle font 10
  label <0> at (57.2848, -77) middle font 10
  label <1> at (80.1987, -77) middle font 10
  label <cpu1> at (153.523, -27) middle font 10
  label <2> at (119.152, -77) middle font 10
  label <3> at (142.066, -77) middle font 10
  label <2> at (164.98, -77) middle font 10
  label <3> at (187.894, -77) middle font 10
  label <…> at (226.848, -27) middle font 10
  label <cpu35> at (300.172, -27) middle font 10
  label <70> at (265.801, -77) middle font 10
  label <71> at (288.715, -77) middle font 10
  label <70> at (311.629, -77) middle font 10
  label <71> at (334.543, -77) middle font 10
  label <nvswitch> at (150.086, -123) middle font 10
)");
}

TEST_CASE("A machine of the catalogue is drawn with its cards and switches") {
  CHECK(drawn(catalogue_node("dgx-a100-80gb"), 346) == R"(
panel <>, <>: 346 x 188 rows bare edge #6b6b6b
  x <> 0..346: 0=
  y <> -188..0: 0=
  series <pcie4-x16, 26.0 GB/s> #0072B2 line 1.4 (39.7701, -38) (39.7701, -66) (0, nan) (9.94253, -88)
      (9.94253, -116) (0, nan) (29.8276, -88) (29.8276, -116) (0, nan) (49.7126, -88) (49.7126, -116) (0, nan)
      (69.5977, -88) (69.5977, -116) (0, nan) (126.27, -38) (126.27, -66) (0, nan) (96.4425, -88) (96.4425,
      -116) (0, nan) (116.328, -88) (116.328, -116) (0, nan) (136.213, -88) (136.213, -116) (0, nan) (156.098,
      -88) (156.098, -116) (0, nan) (219.73, -38) (219.73, -66) (0, nan) (189.902, -88) (189.902, -116) (0,
      nan) (209.787, -88) (209.787, -116) (0, nan) (229.672, -88) (229.672, -116) (0, nan) (249.557, -88)
      (249.557, -116) (0, nan) (306.23, -38) (306.23, -66) (0, nan) (276.402, -88) (276.402, -116) (0, nan)
      (296.287, -88) (296.287, -116) (0, nan) (316.172, -88) (316.172, -116) (0, nan) (336.057, -88) (336.057,
      -116) (0, nan)
  series <3 x xgmi, 86.4 GB/s> #D55E00 line 1.4 (83.0201, -4) (83.0201, -16) (0, nan) (262.98, -4) (262.98,
      -16) (0, nan) (83.0201, -4) (262.98, -4) (0, nan)
  series <12 x nvlink3, 276 GB/s> #009E73 line 1.4 (9.94253, -138) (9.94253, -162) (0, nan) (29.8276, -138)
      (29.8276, -162) (0, nan) (96.4425, -138) (96.4425, -162) (0, nan) (116.328, -138) (116.328, -162) (0,
      nan) (189.902, -138) (189.902, -162) (0, nan) (209.787, -138) (209.787, -162) (0, nan) (276.402, -138)
      (276.402, -162) (0, nan) (296.287, -138) (296.287, -162) (0, nan)
  series <> #E6BAD4 [1.1931..164.847 x -38..-16] [181.153..344.807 x -38..-16]
  series <> #D4D4D4 [1.1931..78.3471 x -88..-66] [87.6931..164.847 x -88..-66] [181.153..258.307 x -88..-66]
      [267.653..344.807 x -88..-66]
  series <GPU> #8CCBF0 [1.1931..18.692 x -138..-116] [21.0782..38.577 x -138..-116] [87.6931..105.192 x
      -138..-116] [107.578..125.077 x -138..-116] [181.153..198.652 x -138..-116] [201.038..218.537 x
      -138..-116] [267.653..285.152 x -138..-116] [287.538..305.037 x -138..-116]
  series <network card> #F5EA7A [40.9632..58.4621 x -138..-116] [60.8483..78.3471 x -138..-116]
      [127.463..144.962 x -138..-116] [147.348..164.847 x -138..-116] [220.923..238.422 x -138..-116]
      [240.808..258.307 x -138..-116] [307.423..324.922 x -138..-116] [327.308..344.807 x -138..-116]
  series <> #9AD9BE [1.1931..305.037 x -184..-162]
  label <cpu0> at (83.0201, -27) middle font 10
  label <plx0> at (39.7701, -77) middle font 10
  label <0> at (9.94253, -127) middle font 10
  label <1> at (29.8276, -127) middle font 10
  label <0> at (49.7126, -127) middle font 10
  label <1> at (69.5977, -127) middle font 10
  label <plx1> at (126.27, -77) middle font 10
  label <2> at (96.4425, -127) middle font 10
  label <3> at (116.328, -127) middle font 10
  label <2> at (136.213, -127) middle font 10
  label <3> at (156.098, -127) middle font 10
  label <cpu1> at (262.98, -27) middle font 10
  label <plx2> at (219.73, -77) middle font 10
  label <4> at (189.902, -127) middle font 10
  label <5> at (209.787, -127) middle font 10
  label <4> at (229.672, -127) middle font 10
  label <5> at (249.557, -127) middle font 10
  label <plx3> at (306.23, -77) middle font 10
  label <6> at (276.402, -127) middle font 10
  label <7> at (296.287, -127) middle font 10
  label <6> at (316.172, -127) middle font 10
  label <7> at (336.057, -127) middle font 10
  label <nvswitch> at (153.115, -173) middle font 10
)");
  CHECK(told(catalogue_node("dgx-a100-80gb")) == R"(
cpu0
├─ plx0                 pcie4-x16, 26.0 GB/s
│  ├─ gpu0, gpu1        pcie4-x16, 26.0 GB/s
│  └─ nic0, nic1        pcie4-x16, 26.0 GB/s
└─ plx1                 pcie4-x16, 26.0 GB/s
   ├─ gpu2, gpu3        pcie4-x16, 26.0 GB/s
   └─ nic2, nic3        pcie4-x16, 26.0 GB/s
cpu1
├─ plx2                 pcie4-x16, 26.0 GB/s
│  ├─ gpu4, gpu5        pcie4-x16, 26.0 GB/s
│  └─ nic4, nic5        pcie4-x16, 26.0 GB/s
└─ plx3                 pcie4-x16, 26.0 GB/s
   ├─ gpu6, gpu7        pcie4-x16, 26.0 GB/s
   └─ nic6, nic7        pcie4-x16, 26.0 GB/s
gpu0 … gpu7 – nvswitch  12 x nvlink3, 276 GB/s
cpu0 – cpu1             3 x xgmi, 86.4 GB/s
)");
}

TEST_CASE("Pods and their cores are told with what goes up from each") {
  const auto fabric = [](const std::string& shape, int nodes) {
    const YamlNode document = parse_yaml(
        "cluster: { node: dgx-a100-80gb, nodes: " + std::to_string(nodes) + ", network: { fabric: { kind: fat_tree, " +
            shape + " } } }\nworkload: { collective: { operation: all_reduce, size: 1 MB } }\n",
        "test.yaml");
    return "\n" + fabric_text(read_scenario(document, "test").cluster);
  };
  CHECK(fabric("nodes_per_leaf: 4, nodes_per_pod: 16, pod_oversubscription: 3", 64) == R"(
  32 core switches; spine to core: 8533 Gbit/s from a pod
  128 spines, 32 in each pod of 16 machines; leaf to spines: 32 x 200 Gbit/s
  16 leaves, 4 machines on each; card to leaf: 200 Gbit/s
  64 x dgx-a100-80gb, 8 cards of 200 Gbit/s each
)");
  CHECK(fabric("nodes_per_leaf: 4, nodes_per_pod: 8, rails: true, pod_oversubscription: 100", 32) == R"(
  4 core switches; spine to core: 128 Gbit/s from a pod
  16 spines, 4 in each pod of 8 machines; leaf to spines: 4 x 200 Gbit/s
  64 leaves, one a rail, 4 machines on each; card to leaf: 200 Gbit/s
  32 x dgx-a100-80gb, 8 cards of 200 Gbit/s each
)");
}

}  // namespace foretrain::test
