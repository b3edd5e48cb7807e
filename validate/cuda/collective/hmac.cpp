#include "validate/cuda/collective/hmac.hpp"

#include <dlfcn.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "validate/cuda/collective/world.hpp"

namespace foretrain::gpu {

namespace {

/// As openssl/hmac.h and openssl/evp.h declare them, the same since version 1.0.
struct Libcrypto {
  const void* (*sha256)() = nullptr;
  unsigned char* (*hmac)(const void* digest, const void* key, int key_bytes, const unsigned char* text,
                         std::size_t text_bytes, unsigned char* result, unsigned int* result_bytes) = nullptr;
};

const Libcrypto& libcrypto() {
  static const Libcrypto loaded = [] {
    Libcrypto found;
    for (const char* name : {"libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so"}) {
      void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) continue;
      found.sha256 = reinterpret_cast<decltype(found.sha256)>(dlsym(library, "EVP_sha256"));
      found.hmac = reinterpret_cast<decltype(found.hmac)>(dlsym(library, "HMAC"));
      if (found.sha256 != nullptr && found.hmac != nullptr) return found;
    }
    throw WorldError(
        "processes prove their FORETRAIN_TOKEN to each other by OpenSSL's libcrypto.so, which is not there; install "
        "openssl, or launch them by mpirun");
  }();
  return loaded;
}

}  // namespace

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::string result(hmac_bytes, '\0');
  unsigned int length = 0;
  const void* made = libcrypto().hmac(libcrypto().sha256(), key.data(), static_cast<int>(key.size()),
                                      reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                                      reinterpret_cast<unsigned char*>(result.data()), &length);
  if (made == nullptr || length != hmac_bytes) throw WorldError("libcrypto makes no HMAC-SHA256");
  return result;
}

bool same_bytes(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t done = 0; done < count;) {
    const ssize_t n = getrandom(bytes.data() + done, count - done, 0);
    if (n < 0 && errno != EINTR) throw WorldError("the system gives no random bytes");
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  return bytes;
}

}  // namespace foretrain::gpu
