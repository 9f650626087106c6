// The body of a request to the admin address: POST /swap or, after a first byte 's', POST /set: read or refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "serve/admin_orders.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace patchbay::serve;
    std::string text(reinterpret_cast<const char*>(data), size);
    const bool set = text.starts_with('s');
    if (set) text.erase(0, 1);
    const auto body = parse_body(text);
    if (!body) return body.error().empty() ? abort(), 0 : 0;
    if (set) {
        const ReadSwap got = read_set(*body);
        if (got.refusal && got.refusal->failure.text.empty()) abort();
        return 0;
    }
    const ReadSwaps got = read_swaps(*body);
    if (got.refusal) return got.refusal->failure.text.empty() ? abort(), 0 : 0;
    std::set<patchbay::engine::SwapSlot> slots;
    for (const ReadSwap& swap : got.swaps)
        if (!slots.insert(swap.slot).second) abort(); // each of another slot
    if (slots.empty()) abort();
    return 0;
}
