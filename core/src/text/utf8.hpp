// Bytes that become text, whole characters at a time.
#pragma once
#include <string>

namespace patchbay::text {

enum class Rest { kKeep, kReplace };
// Moves what is complete from the front of `bytes` to `out`, ill-formed parts as U+FFFD. An unfinished character at the
// end stays, or becomes U+FFFD.
void drain_utf8(std::string& bytes, std::string& out, Rest);

}  // namespace patchbay::text
