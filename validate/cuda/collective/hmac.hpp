// Proofs that both ends of a connection know a secret, without telling it (HMAC-SHA256, RFC 2104), by OpenSSL's
// libcrypto. It is loaded when it is needed: machines that only measure need neither it nor its headers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace foretrain::gpu {

constexpr std::size_t hmac_bytes = 32;

/// Throws WorldError where there is no libcrypto.
std::string hmac_sha256(std::string_view key, std::string_view text);

/// Takes as long whatever is different.
bool same_bytes(std::string_view a, std::string_view b);

/// Bytes that nobody foresees.
std::string random_bytes(std::size_t count);

}  // namespace foretrain::gpu
