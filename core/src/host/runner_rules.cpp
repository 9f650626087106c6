#include "host/runner_rules.hpp"

#include <string>
#include <unordered_set>

#include "base/refusals.hpp"

namespace patchbay::host {
namespace {

Result<> check_row(const pb_runner_row& row, const RunnerRules& rules) {
    const std::string who = "row of sequence " + std::to_string(row.id);
    const auto max_drafts = rules.max_drafts(row.id);
    if (!max_drafts) return invalid(who + ", which is not a row of the propose() under way");
    if (row.draft_count >= *max_drafts)
        return invalid(who + " has " + std::to_string(row.draft_count) + " drafts already, expected less than its " +
                    "max_drafts of " + std::to_string(*max_drafts));
    if (row.draft_count > 0 && !row.drafts) return invalid(who + " gives no drafts, but counts them");
    if (row.flags != 0) return invalid(who + " has flags " + std::to_string(row.flags) + ", expected 0");
    for (uint32_t i = 0; i < row.draft_count; ++i)
        if (row.drafts[i] < 0 || static_cast<uint32_t>(row.drafts[i]) >= rules.vocab_size)
            return invalid(who + " has draft " + std::to_string(row.drafts[i]) + ", expected 0 to " +
                           std::to_string(rules.vocab_size - 1));
    return {};
}

}  // namespace

Result<> check_batch(const pb_runner_batch& batch, const RunnerRules& rules) {
    if (batch.model != rules.model) return invalid("there is no model " + std::to_string(batch.model));
    if (batch.row_count > 0 && (!batch.rows || !batch.tokens))
        return invalid("a batch without rows, or without tokens");
    constexpr size_t kLeast = offsetof(pb_runner_row, flags) + sizeof(uint32_t); // of the first revision
    if (batch.row_count > 0 && batch.row_stride < kLeast) return invalid("rows that are too short");
    if (batch.top_count > kMaxTopTokens)
        return invalid(std::to_string(batch.top_count) + " top tokens, expected at most " +
                       std::to_string(kMaxTopTokens));
    if (batch.top_count > 0 && (!batch.top_tokens || !batch.top_logprobs))
        return invalid("top tokens are asked for, but there is no room for them");
    std::unordered_set<uint64_t> seen;
    for (uint32_t i = 0; i < batch.row_count; ++i) {
        const pb_runner_row& row = row_of(batch, i);
        PB_CHECK(check_row(row, rules));
        if (!seen.insert(row.id).second) return invalid("sequence " + std::to_string(row.id) + " is twice in a pass");
    }
    return {};
}

}  // namespace patchbay::host
