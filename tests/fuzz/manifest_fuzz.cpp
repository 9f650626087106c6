// <plugin>.plugin.json by an unknown hand: an error, or a manifest that is written and read the same again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "host/manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace patchbay::host;
    const auto manifest = parse_manifest({reinterpret_cast<const char*>(data), size}, "/tmp/fuzz.plugin.json");
    if (!manifest) return manifest.error().empty() ? __builtin_trap(), 0 : 0;
    const std::string text = manifest_text(*manifest);
    const auto again = parse_manifest(text, "/tmp/fuzz.plugin.json");
    if (!again || manifest_text(*again) != text) __builtin_trap();
    return 0;
}
