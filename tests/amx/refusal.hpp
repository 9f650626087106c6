// What becomes of a tile instruction that hardware would refuse: a line on standard error, and the end of the process.
#pragma once

namespace patchbay::amx_by_hand {

// The instruction that this thread is about to carry out; its name lives for ever.
void begin_instruction(const char* name, const void* at);

[[noreturn, gnu::format(printf, 1, 2)]] void refuse(const char* format, ...);

}  // namespace patchbay::amx_by_hand
