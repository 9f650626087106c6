// A tile instruction on the tiles of this thread.
#pragma once
#include "instruction.hpp"

namespace patchbay::amx_by_hand {

void permit(); // tiles, to this process

// `at`: where it lies, which is said where it is refused.
void carry_out(const Instruction& instruction, const Registers& registers, const uint8_t* at);

}  // namespace patchbay::amx_by_hand
