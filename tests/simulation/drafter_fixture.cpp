#include "simulation/drafter_fixture.hpp"

#include "host/function_proposer.hpp"
#include "patchbay/sdk/proposer.hpp"

namespace patchbay::engine::testing {
namespace {

// A draft hangs on none that is before it.
void spoil_parents(Drafting& drafting, ProposeBatch& b, uint32_t i) {
    const uint32_t count = b.raw.counts[i], at = drafting.below(count);
    const auto to = static_cast<int32_t>(at + drafting.below(9));
    if (count > 0) b.raw.parents[size_t{i} * b.raw.max_drafts + at] = to;
}

pb_status propose(Drafting& drafting, pb_propose_batch& batch) {
    ProposeBatch b(batch);
    if (drafting.below(50) == 0) return PB_FAILED;
    for (uint32_t i = 0; i < b.size(); ++i) {
        const pb_propose_row& row = b.row(i);
        b.propose(i, {});
        for (uint32_t paths = b.max_paths(i); paths > 0; --paths) {
            std::vector<int32_t> drafts;
            for (uint32_t n = drafting.below(row.max_drafts + 1); drafts.size() < n;) {
                const int32_t token = drafting.what_comes(row.id, row.token_count + drafts.size());
                drafts.push_back(drafting.below(4) == 0 ? token ^ 1 : token);
            }
            b.add_path(i, drafts);
        }
        if (b.max_paths(i) > 1 && drafting.below(50) == 0) spoil_parents(drafting, b, i);
    }
    return PB_OK;
}

}  // namespace

Result<host::Proposer> drafter(Drafting& drafting) {
    return host::function_proposer([&drafting](pb_propose_batch& batch) { return propose(drafting, batch); });
}

}  // namespace patchbay::engine::testing
