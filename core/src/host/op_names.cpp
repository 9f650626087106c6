#include "host/op_names.hpp"

#include "patchbay/sdk/op_list.hpp"

namespace patchbay::host {

#define PB_ONE(op) +1
static_assert(sizeof(pb_ops) == 2 * sizeof(uint32_t) + sizeof(void*) * (1 PB_EACH_OP(PB_ONE)), "op_list.hpp has all");
#undef PB_ONE

bool has_op(const pb_ops& ops, std::string_view name) {
#define PB_HAS_OP(op) \
    if (name == #op) return ops.op != nullptr;
    PB_EACH_OP(PB_HAS_OP)
#undef PB_HAS_OP
    return false;
}

}  // namespace patchbay::host
