// A signal costs 2 µs, and 10 where a hypervisor handles illegal instructions first. So an instruction that was met
// is replaced by a jump to code that carries it out. Loaded code is written to, as a debugger sets a breakpoint; the
// file does not change.
#pragma once
#include "instruction.hpp"

namespace patchbay::amx_by_hand {

// Whether threads can be notified that code has changed. Once, before lay_shortcut().
bool prepare_shortcuts();

// If there is no memory in reach, nothing changes. Threads must not call this at once. Other threads may meet a
// breakpoint meanwhile.
void lay_shortcut(uint8_t* at, const Instruction& instruction);

bool is_shortcut(const uint8_t* at); // of some instruction that is no longer there

}  // namespace patchbay::amx_by_hand
