#include "expert_tables.hpp"

#include <algorithm>

#include "weights.hpp"

namespace patchbay {

const kernels::cuda::DeviceMatrix* ExpertTables::table(const pb_weight* const* experts, uint32_t count) {
    const std::vector<const pb_weight*> key(experts, experts + count);
    auto found = tables_.find(key);
    if (found == tables_.end()) {
        std::vector<kernels::cuda::DeviceMatrix> table;
        for (const pb_weight* e : key) table.push_back(e->matrix);
        GpuMemory memory(gpu_, table.size() * sizeof table[0]);
        if (gpu_.is_capturing()) gpu_.fill_now(memory.data(), table.data(), memory.bytes());
        else staging_.upload(memory.data(), table.data(), memory.bytes());
        found = tables_.emplace(key, std::move(memory)).first;
    }
    return static_cast<const kernels::cuda::DeviceMatrix*>(found->second.data());
}

void ExpertTables::forget(const pb_weight* weight) {
    std::erase_if(tables_, [&](const auto& one) {
        return std::find(one.first.begin(), one.first.end(), weight) != one.first.end();
    });
}

}  // namespace patchbay
