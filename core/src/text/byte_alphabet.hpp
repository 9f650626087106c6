// The alphabet in which byte-level vocabularies are spelled: each byte is one printable character, so that "Ġthe" is
// the five bytes " the". Source: GPT-2, Radford et al. 2019, `bytes_to_unicode`.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace patchbay::text {

std::string spell_byte(unsigned char);                              // the UTF-8 of its character
std::optional<std::string> spelled_bytes(std::string_view spelled); // none: a character outside the alphabet

}  // namespace patchbay::text
