// A tile instruction that hardware would refuse: prints a line on standard error, and ends the process.
#pragma once

namespace patchbay::amx_by_hand {

// The instruction that this thread is about to carry out; its name is never freed.
void begin_instruction(const char* name, const void* at);

[[noreturn, gnu::format(printf, 1, 2)]] void refuse(const char* format, ...);

}  // namespace patchbay::amx_by_hand
