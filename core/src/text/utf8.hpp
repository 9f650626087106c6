// Well-formedness of UTF-8, one character at a time. Ill-formed bytes are taken by maximal subparts (The Unicode
// Standard, section 3.9), so that what is replaced by U+FFFD does not depend on how the bytes were cut into chunks.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace patchbay::text {

enum class Utf8 { kCharacter, kInvalid, kUnfinished /* more bytes could complete it */ };

struct Utf8Step {
    Utf8 what;
    size_t bytes; // at least 1
};

Utf8Step utf8_step(std::string_view bytes);  // bytes: not empty
size_t valid_prefix(std::string_view bytes); // how many bytes from the front are whole, well-formed characters

enum class Rest { kKeep, kReplace };
// Moves what is complete from the front of `bytes` to `out`, ill-formed parts as U+FFFD. An unfinished character at the
// end stays, or becomes U+FFFD.
void drain_utf8(std::string& bytes, std::string& out, Rest);

}  // namespace patchbay::text
