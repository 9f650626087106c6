// Carries out a tile instruction on the tiles of this thread.
#pragma once
#include "instruction.hpp"

namespace patchbay::amx_by_hand {

void permit(); // tiles, to this process

// `at`: its address, for the message of a refusal.
void carry_out(const Instruction& instruction, const Registers& registers, const uint8_t* at);

}  // namespace patchbay::amx_by_hand
