// A signal costs 2 µs, and 10 where a hypervisor looks at illegal instructions first. So an instruction that was met
// becomes a jump to code that carries it out. Loaded code is written to, as a debugger does that sets a breakpoint; the
// file stays as it is.
#pragma once
#include "instruction.hpp"

namespace patchbay::amx_by_hand {

// Whether threads can be notified that code has changed. Once, before lay_shortcut().
bool prepare_shortcuts();

// Where there is no memory in reach, nothing changes. Not by two threads at once. Meanwhile those that come by meet a
// breakpoint.
void lay_shortcut(uint8_t* at, const Instruction& instruction);

bool is_shortcut(const uint8_t* at); // of some instruction that is no longer there

}  // namespace patchbay::amx_by_hand
