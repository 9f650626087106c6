#include "machine.hpp"

namespace patchbay {

CpuMachine::CpuMachine(kernels::Isa isa, const pb_host& host)
    : pool_(host), machine_{isa, {}, &scratch_, &matrices_} {
    machine_.workers.threads = pool_.threads();
    machine_.workers.ctx = &pool_;
    machine_.workers.run = [](void* ctx, uint32_t count, void (*task)(void* arg, uint32_t index), void* arg) {
        static_cast<const Pool*>(ctx)->run(count, [&](uint32_t i) { task(arg, i); });
    };
}

}  // namespace patchbay
