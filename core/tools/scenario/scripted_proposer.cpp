#include "scenario/scripted_proposer.hpp"

#include "host/function_proposer.hpp"
#include "patchbay/sdk/proposer.hpp"

namespace patchbay::scenario {

Result<host::Proposer> scripted_proposer(DraftsById& drafts) {
    return host::function_proposer([&drafts](pb_propose_batch& batch) {
        ProposeBatch b(batch);
        for (uint32_t i = 0; i < b.size(); ++i) {
            b.propose(i, {});
            const auto paths = drafts.extract(b.row(i).id);
            if (paths.empty()) continue;
            for (const Tokens& path : paths.mapped()) b.add_path(i, path);
        }
        return PB_OK;
    });
}

}  // namespace patchbay::scenario
