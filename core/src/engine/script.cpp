#include "engine/script.hpp"

#include "engine/state.hpp"

namespace patchbay::engine {

Result<> Engine::follow(Script& script, host::Proposer proposer, std::shared_ptr<const text::Tokenizer> vocabulary) {
    State& s = *state_;
    if (!s.facts.simulated) return fail("a script on device '" + s.facts.device_name + "', which computes");
    s.script = &script;
    if (vocabulary) {
        s.tokenizer = std::move(vocabulary);
        s.make_grammars();
        for (TokenId t = 0; static_cast<uint32_t>(t) < s.tokenizer->vocab_size(); ++t)
            if (!s.tokenizer->token_bytes(t).empty()) s.spelled.push_back(t);
    }
    if (!proposer) return {};
    s.proposer = std::move(proposer);
    if (s.in_turn.empty()) s.in_turn = "proposer"; // drafts follow from tokens that are back
    return {};
}

View Engine::view() const {
    state_->update_hints();
    const State& s = *state_;
    View out;
    const auto queue = s.waiting.records();
    out.waiting.assign(queue.begin(), queue.end());
    for (const auto& [arrival_ns, id] : s.pending)
        if (arrival_ns <= s.clock.now_ns())
            out.waiting.push_back(record_of(*s.sequences.at(id), {}, s.kv->block_size()));
    for (const Sequence* r : s.running) out.running.push_back(record_of(*r, {}, s.kv->block_size()));
    for (uint32_t i = 0; i < s.plan_out.preempt_count; ++i) out.preempted.push_back(s.preempts[i].id);
    out.free_blocks = s.kv->pool().free();
    out.cached_blocks = s.kv->pool().cached();
    out.total_blocks = s.kv->pool().total();
    out.free_swap_blocks = s.kv->swap_space().free();
    out.total_swap_blocks = s.kv->swap_space().total();
    out.report = s.report;
    return out;
}

const kv::KvCache& Engine::kv() const { return *state_->kv; }

const kv::BlockTable* Engine::table_of(RequestId id) const {
    const auto at = state_->sequences.find(id);
    return at == state_->sequences.end() ? nullptr : &at->second->table;
}

void Engine::State::tell_script() {
    if (!script) return;
    std::vector<pb_plan_item> plan;
    for (const Scheduled& item : scheduled) plan.push_back({item.sequence->id, item.tokens, 0});
    script->planned(plan);
}

void Engine::State::ask_script() {
    if (!script) return;
    std::vector<ScriptedRows> rows;
    for (const Scheduled& item : scheduled) {
        if (item.rows == 0) continue;
        const std::span<const TokenId> tokens(item.sequence->tokens);
        rows.push_back({item.sequence->id, tokens.subspan(item.rows > 1 ? item.confirmed : 0, item.rows - 1),
                        std::span(sampled).subspan(item.first_row, item.rows)});
        for (const Branch& b : branches)
            if (&scheduled[b.item] == &item)
                rows.back().branches.push_back({b.path(), std::span(sampled).subspan(b.first_row, b.rows())});
    }
    script->sampled(rows);
}

}  // namespace patchbay::engine
