#include "runner/kv_room.hpp"

#include <algorithm>
#include <string>

namespace patchbay::runner {

Result<> run_largest(Passes& passes, const KvMemory& kv, const RunnerSettings& settings) {
    const uint32_t tokens = settings.max_num_batched_tokens;
    const uint32_t sequences = std::clamp(settings.max_num_seqs, 1u, tokens);
    const uint32_t length = std::clamp(tokens / sequences, 1u, std::max(kv.max_seq_len(), 1u));
    const uint32_t blocks = (length + settings.block_size - 1) / settings.block_size;
    const BatchForm& form = kv.batch_form();
    kv::BlockTable table;
    table.pages.assign(form.token_groups + form.state_groups, std::vector<kv::BlockId>(blocks, 0));
    const std::vector<int32_t> ids(length);
    Batch largest;
    largest.clear(form);
    for (uint32_t s = 0; s < sequences; ++s)
        largest.add({ids, 0, std::min(settings.rows_per_sequence(), length), table, ids}); // hidden states: any will do
    if (passes.hidden_size() > 0) largest.want_hidden({0, largest.tokens()}); // for embeddings
    largest.finish();
    const uint64_t listed = uint64_t{sequences} * blocks * form.token_groups;
    PB_CHECK(passes.reserve({largest.tokens(), sequences, largest.arrays().logit_rows.size(), listed}));
    if (const auto done = passes.forward(largest); !done)
        return fail(StatusCode::kExhausted,
                    "gpu_memory_utilization, a pass over " + std::to_string(largest.tokens()) + " tokens: " +
                    done.error());
    return {};
}

Result<uint64_t> memory_left(const OpenDevice& device, double share) {
    pb_device_info now = sized<pb_device_info>();
    PB_CHECK(device.plugin.checked<&pb_device::info>(&now));
    const uint64_t used = now.memory_total - std::min(now.memory_total, now.memory_free);
    const auto its = static_cast<uint64_t>(static_cast<double>(now.memory_total) * share);
    return its - std::min(its, used);
}

}  // namespace patchbay::runner
