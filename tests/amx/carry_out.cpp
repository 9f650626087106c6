#include "carry_out.hpp"

#include <atomic>

#include "refusal.hpp"
#include "tiles.hpp"

namespace patchbay::amx_by_hand {
namespace {

thread_local Tiles tiles_of_thread;
std::atomic<bool> permitted = false;

}  // namespace

void permit() { permitted = true; }

void carry_out(const Instruction& i, const Registers& registers, const uint8_t* at) {
    Tiles& tiles = tiles_of_thread;
    begin_instruction(i.name, at);
    if (!permitted) refuse("the permission to use tiles was not requested (arch_prctl)");
    uint8_t* const address = i.address(registers);
    const int64_t index = i.scaled_index(registers);
    const auto multiply = [&](Product product) { multiply_add(tiles, product, i.tile, i.rows, i.panel); };
    switch (i.op) {
        case Op::kNone: break;
        case Op::kLoadConfiguration: load_configuration(tiles, address + index); break;
        case Op::kStoreConfiguration: store_configuration(tiles, address + index); break;
        case Op::kRelease: release(tiles); break;
        case Op::kZero: zero(tiles, i.tile); break;
        case Op::kLoad:
        case Op::kLoadPast: load(tiles, i.tile, address, index); break;
        case Op::kStore: store(tiles, i.tile, address, index); break;
        case Op::kMultiplyBf16: multiply(Product::kBf16); break;
        case Op::kMultiplySignedSigned: multiply(Product::kSignedSigned); break;
        case Op::kMultiplySignedUnsigned: multiply(Product::kSignedUnsigned); break;
        case Op::kMultiplyUnsignedSigned: multiply(Product::kUnsignedSigned); break;
        case Op::kMultiplyUnsignedUnsigned: multiply(Product::kUnsignedUnsigned); break;
    }
}

}  // namespace patchbay::amx_by_hand
