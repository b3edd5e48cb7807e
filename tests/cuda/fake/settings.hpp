// Settings of the stand-ins for CUDA, from FORETRAIN_FAKE_GPU: "devices=2,memory=1000000000,ecc_at=40".
//   driver=none|old   no driver, or one that is too old
//   devices=N         how many GPUs there are (1)
//   capability=75     of another compute capability than 9.0
//   memory=BYTES      what each GPU has (80 GB)
//   busy=1            another process has the GPU to itself
//   others=1          another process also uses it
//   throttle=1        clocks are lowered by heat
//   call_us=N         a call takes the host so long (1)
//   away_at=N         from the n-th launch on each takes the host 30 ms,
//   away_for=N        for so many launches
//   slow=N            a wait takes so many milliseconds of real time
//   ecc_at=N          an ECC error at the n-th launch, which stays
//   hang_at=N         the first wait after the n-th launch does not return
//   crash_at=N        the process dies at the n-th launch
//   nccl=error        every NCCL operation fails
//   once=PATH         a fault happens only if this file is not there yet, and makes it
//   plans=PATH        cuDNN adds a line for every plan that it makes
#pragma once

#include <cstdlib>
#include <string>

namespace fake {

inline std::string setting(const std::string& name) {
  const char* all = std::getenv("FORETRAIN_FAKE_GPU");
  const std::string text = std::string(",") + (all == nullptr ? "" : all) + ",";
  const std::size_t at = text.find("," + name + "=");
  if (at == std::string::npos) return "";
  const std::size_t start = at + name.size() + 2;
  return text.substr(start, text.find(',', start) - start);
}

inline long number(const std::string& name, long fallback) {
  const std::string text = setting(name);
  return text.empty() ? fallback : std::atol(text.c_str());
}

}  // namespace fake
