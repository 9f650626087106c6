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

}  // namespace patchbay
