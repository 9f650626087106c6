#include "instruction.hpp"

#include <cstring>

namespace patchbay::amx_by_hand {
namespace {

// C4, then R X B and the map, then W vvvv L and the prefix that is implied; all but map, W, L and prefix are inverted.
struct Vex {
    explicit Vex(const uint8_t* at)
        : opcode(at[3]), prefix(at[2] & 3), panel((~at[2] >> 3) & 15), r(!(at[1] & 0x80)), x(!(at[1] & 0x40)),
          b(!(at[1] & 0x20)), fits((at[1] & 31) == kMap0f38 && (at[2] & 0x84) == 0) {}

    static constexpr int kMap0f38 = 2;
    int opcode, prefix, panel;
    bool r, x, b;
    bool fits; // W and L are 0
};
enum Prefix { kNo, k66, kF3, kF2 };

struct ModRm {
    explicit ModRm(uint8_t byte) : mod(byte >> 6), reg(byte >> 3 & 7), rm(byte & 7) {}
    int mod, reg, rm;
};

// Adds the operand at ModRM, and its length, to the instruction.
void add_memory(Instruction& to, const uint8_t* at, const Vex& vex) {
    const ModRm modrm(at[0]);
    int length = 1;
    bool has_32_bits = modrm.mod == 2;
    if (modrm.rm == 4) {
        const int index = (at[1] >> 3 & 7) | vex.x << 3, base = at[1] & 7;
        length = 2;
        to.shift = at[1] >> 6;
        if (index != 4) to.index = index;
        if (modrm.mod == 0 && base == 5) has_32_bits = true;
        else to.base = base | vex.b << 3;
    } else if (modrm.mod == 0 && modrm.rm == 5) { // from the next instruction on
        has_32_bits = true;
        to.offset = reinterpret_cast<int64_t>(at) + 5;
    } else {
        to.base = modrm.rm | vex.b << 3;
    }
    if (modrm.mod == 1) {
        to.offset += static_cast<int8_t>(at[length]);
        length += 1;
    } else if (has_32_bits) {
        int32_t offset;
        std::memcpy(&offset, at + length, sizeof offset);
        to.offset += offset;
        length += 4;
    }
    to.length += length;
}

Instruction configuration(const uint8_t* at, const Vex& vex, const ModRm& modrm) {
    Instruction out{.length = 4};
    if (modrm.mod == 3) {
        if (vex.prefix == kNo && at[4] == 0xc0) out.op = Op::kRelease, out.name = "tilerelease";
        if (vex.prefix == kF2 && modrm.rm == 0 && !vex.r) out.op = Op::kZero, out.name = "tilezero";
        out.tile = modrm.reg;
        out.length += 1;
        return out;
    }
    if (modrm.reg != 0) return out;
    if (vex.prefix == kNo) out.op = Op::kLoadConfiguration, out.name = "ldtilecfg";
    if (vex.prefix == k66) out.op = Op::kStoreConfiguration, out.name = "sttilecfg";
    add_memory(out, at + 4, vex);
    return out;
}

Instruction transfer(const uint8_t* at, const Vex& vex, const ModRm& modrm) {
    Instruction out{.length = 4, .tile = modrm.reg};
    if (modrm.mod == 3 || modrm.rm != 4 || vex.r) return out; // rows need a place for an index
    if (vex.prefix == kF2) out.op = Op::kLoad, out.name = "tileloadd";
    if (vex.prefix == k66) out.op = Op::kLoadPast, out.name = "tileloaddt1";
    if (vex.prefix == kF3) out.op = Op::kStore, out.name = "tilestored";
    add_memory(out, at + 4, vex);
    return out;
}

Instruction product(const Vex& vex, const ModRm& modrm) {
    Instruction out{.length = 5, .tile = modrm.reg, .rows = modrm.rm, .panel = vex.panel};
    if (modrm.mod != 3 || vex.r || vex.b || vex.panel > 7) return out;
    if (vex.opcode == 0x5c) {
        if (vex.prefix == kF3) out.op = Op::kMultiplyBf16, out.name = "tdpbf16ps";
        return out;
    }
    constexpr Op kOps[] = {Op::kMultiplyUnsignedUnsigned, Op::kMultiplyUnsignedSigned, Op::kMultiplySignedUnsigned,
                           Op::kMultiplySignedSigned};
    constexpr const char* kNames[] = {"tdpbuud", "tdpbusd", "tdpbsud", "tdpbssd"};
    out.op = kOps[vex.prefix];
    out.name = kNames[vex.prefix];
    return out;
}

}  // namespace

Instruction decode(const uint8_t* at) {
    if (at[0] != 0xc4) return {};
    const Vex vex(at);
    const ModRm modrm(at[4]);
    if (!vex.fits) return {};
    if (vex.opcode == 0x5c || vex.opcode == 0x5e) return product(vex, modrm);
    if (vex.panel != 0) return {};
    if (vex.opcode == 0x49) return configuration(at, vex, modrm);
    if (vex.opcode == 0x4b) return transfer(at, vex, modrm);
    return {};
}

}  // namespace patchbay::amx_by_hand
