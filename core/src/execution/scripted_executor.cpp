#include "execution/scripted_executor.hpp"

#include <utility>

namespace patchbay::execution {

// What is not scripted has no text, which might end an output.
ScriptedExecutor::ScriptedExecutor(std::unique_ptr<runner::ModelRunner> runner, std::unique_ptr<runner::Ranks> ranks,
                                   std::vector<int32_t> eos, Script& script, const text::Tokenizer* vocabulary)
    : SimulatedExecutor(std::move(runner), std::move(ranks), std::move(eos)), script_(script),
      source_(vocabulary ? TokenSource::kMadeUpText : TokenSource::kMadeUp) {
    if (!vocabulary) return;
    std::vector<int32_t> spelled;
    for (int32_t t = 0; static_cast<uint32_t>(t) < vocabulary->vocab_size(); ++t)
        if (!vocabulary->token_bytes(t).empty()) spelled.push_back(t);
    avoid(std::move(spelled));
}

void ScriptedExecutor::answer(std::span<const RowPath> paths, std::span<int32_t> tokens) {
    std::vector<ScriptedRows> rows;
    for (const RowPath& path : paths) {
        const std::span<int32_t> own = tokens.subspan(path.first_row, path.rows);
        if (!path.is_branch) {
            rows.push_back({path.sequence, path.drafts, own});
            continue;
        }
        for (ScriptedRows& r : rows)
            if (r.id == path.sequence) r.branches.push_back({path.drafts, own});
    }
    script_.sampled(rows);
}

}  // namespace patchbay::execution
