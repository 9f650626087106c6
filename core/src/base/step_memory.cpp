#include "base/step_memory.hpp"

#if defined(__ELF__)
// The linker's: where the section begins and ends. Absent from a program that has none.
extern "C" [[gnu::weak, gnu::visibility("hidden")]] const std::byte __start_patchbay_step[];
extern "C" [[gnu::weak, gnu::visibility("hidden")]] const std::byte __stop_patchbay_step[];
#endif

namespace patchbay {

Memory step_text() {
#if defined(__ELF__)
    return {__start_patchbay_step, __stop_patchbay_step};
#else
    return {};
#endif
}

PB_STEP_TEXT void list_front(std::vector<Memory>& to, const void* array, size_t bytes) {
    constexpr size_t kMost = 2 * kCacheLine;
    to.emplace_back(static_cast<const std::byte*>(array), std::min(bytes, kMost));
}

}  // namespace patchbay
