// Decodes tile instructions from memory.
#pragma once
#include <cstdint>

namespace patchbay::amx_by_hand {

enum class Op {
    kNone, // not a tile instruction
    kLoadConfiguration, kStoreConfiguration, kRelease, kZero, kLoad, kLoadPast, kStore,
    kMultiplyBf16, kMultiplySignedSigned, kMultiplySignedUnsigned, kMultiplyUnsignedSigned, kMultiplyUnsignedUnsigned
};

using Registers = uint64_t[16]; // rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 … r15: as instructions count them

struct Instruction {
    static constexpr int kNoRegister = -1;

    Op op = Op::kNone;
    const char* name = "";
    int length = 0;                    // bytes
    int tile = 0, rows = 0, panel = 0; // tile: also the sum
    int base = kNoRegister, index = kNoRegister, shift = 0;
    int64_t offset = 0;

    uint8_t* address(const Registers& registers) const { // without the index
        return reinterpret_cast<uint8_t*>(static_cast<uint64_t>(offset) + (base < 0 ? 0 : registers[base]));
    }
    int64_t scaled_index(const Registers& registers) const {
        return index < 0 ? 0 : static_cast<int64_t>(registers[index] << shift);
    }
};

// Reads no bytes after the instruction.
Instruction decode(const uint8_t* at);

}  // namespace patchbay::amx_by_hand
