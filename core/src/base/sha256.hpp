// SHA-256 of bytes, as 64 hexadecimal digits: the identity of plugins and model files.
#pragma once
#include <string>
#include <string_view>

namespace patchbay {

std::string sha256_hex(std::string_view bytes);

}  // namespace patchbay
