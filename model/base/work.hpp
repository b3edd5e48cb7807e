// The work of a block, for executors that really do it: operators, copies, collectives and host work. Plain
// values of the standard library, shared by foretrain, which prices the work, and foretrain-gpu, which does it.
//
// Each kind has a word and lists its keys, by which validate/replay/graph_text.cpp writes it as a line of text and
// reads it back.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "model/base/quantity.hpp"

namespace foretrain {

/// An operator on the device, launched `count` times. `kind` and `fields` are those of `workload.operator`, or
/// `traffic` { read, written, flops, pattern, precision }: a kernel of which the model knows the bytes and the pattern.
struct KernelWork {
  static constexpr std::string_view word = "kernel";
  std::string name, kind;
  std::map<std::string, std::string> fields;
  int count = 1;
  Seconds predicted = {};  ///< of one

  template <typename Self, typename Line>
  static void keys(Self& self, Line& line) {
    line.text("kind", self.kind);
    line.count("count", self.count, 1);
    line.number("predicted", self.predicted);
    line.text("name", self.name);
    line.rest(self.fields);
  }
  bool operator==(const KernelWork&) const = default;
};

/// Between memories of devices: "gpu0", "cpu", "cpu1".
struct CopyWork {
  static constexpr std::string_view word = "copy";
  std::string from, to;
  Bytes size = {};
  bool pinned = true;  ///< memory of a host is pinned; pageable memory on a host is fresh, as frameworks have it

  template <typename Self, typename Line>
  static void keys(Self& self, Line& line) {
    line.place("from", self.from);
    line.place("to", self.to);
    line.bytes("bytes", self.size, 0);
    line.flag("pinned", self.pinned);
  }
  bool operator==(const CopyWork&) const = default;
};

/// An all-reduce of all GPUs of a data-parallel group. `method`: nccl | server_cpu | server_gpu; empty for another
/// collective, which no executor does.
struct CollectiveWork {
  static constexpr std::string_view word = "collective";
  static constexpr std::array methods = {"nccl", "server_cpu", "server_gpu"};
  std::string method = "nccl";
  Bytes size = {};  ///< as nccl-tests counts it
  int ranks = 1;
  int servers = 1;
  int count = 1;  ///< one after the other, `size` each

  template <typename Self, typename Line>
  static void keys(Self& self, Line& line) {
    line.one_of("method", self.method, methods);
    line.bytes("bytes", self.size, 1);
    line.all_gpus("ranks", self.ranks);
    line.count("servers", self.servers, 1, 1024);
    line.count("count", self.count, 1);
  }
  bool operator==(const CollectiveWork&) const = default;
};

/// On a host thread.
struct HostWork {
  static constexpr std::string_view word = "host";
  enum class Action {
    dispatch,  ///< hands `kernels` of the tasks that follow it to the device, as one CUDA graph where `graph` says so
    launch,    ///< a launch is on its way: nothing to do for an executor that really launches
    sleep,     ///< for `duration`
    wait,      ///< until what it depends on is done
    synchronize,  ///< until everything that the thread has launched is done
    format,       ///< turns `size` bytes that have arrived into text, for `duration`
    page_lock     ///< allocates `size` bytes of pinned memory
  };
  static constexpr std::array actions = {"dispatch", "launch", "sleep", "wait", "synchronize", "format", "page_lock"};
  Action action = Action::wait;
  Seconds duration = {};  ///< of a dispatch the prediction
  Bytes size = {};
  int kernels = 0;
  bool graph = false;

  template <typename Self, typename Line>
  static void keys(Self& self, Line& line) {
    line.one_of("action", self.action, actions);
    line.number("seconds", self.duration);
    line.bytes("bytes", self.size, 0);
    line.count("kernels", self.kernels, 0);
    line.flag("graph", self.graph);
  }
  bool operator==(const HostWork&) const = default;
};

using Work = std::variant<KernelWork, CopyWork, CollectiveWork, HostWork>;

}  // namespace foretrain
