// Any bytes as an experiment's specification: refused with its faults, or read. Files that it names are not opened.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "experiment/outline.hpp"
#include "experiment/spec_load.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace patchbay;
    const config::DocumentLimits limits{.bytes = 1 << 14, .nodes = 2000};
    const auto document = config::parse_yaml({reinterpret_cast<const char*>(data), size}, "fuzz.yaml", limits);
    if (!document) return document.error().empty() ? abort(), 0 : 0;
    const auto spec = experiment::spec_from(*document, "fuzz");
    if (!spec) return spec.error().empty() ? abort(), 0 : 0;
    if (spec->variants.empty() || spec->baseline >= spec->variants.size()) abort();
    return 0;
}
