#include "engine/speculation/proposals.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "engine/loop/page_copies.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/request/sequence.hpp"
#include "engine/speculation/draft_model.hpp"
#include "engine/speculation/draft_records.hpp"
#include "engine/speculation/draft_verification.hpp"
#include "engine/swap/swap_journal.hpp"

namespace patchbay::engine {
namespace {

std::span<const float> row_of(std::span<const float> rows, size_t row, size_t width) { // empty, where there are none
    return rows.empty() ? rows : rows.subspan(row * width, width);
}

}  // namespace

Proposals::Proposals(const Parts& parts, host::Proposer proposer, DraftModel* draft_model)
    : p_(parts), slot_("proposer", host::UnreadState::kStartsEmpty, parts.clock), draft_model_(draft_model),
      selection_({parts.settings, parts.speculation, parts.max_model_len, parts.sequences, parts.aborts, parts.context,
                  draft_model}),
      appender_({parts.vocab_size, parts.speculation.max_paths, parts.constraints, parts.verification, parts.drafts,
                 parts.context}),
      lingering_(parts.kv, parts.draft_kv, draft_model) {
    if (!proposer) return;
    const host::Identity identity = host::Registry::identity(*proposer.component);
    slot_.install(std::move(proposer.component), identity);
    forget_acceptance();
}

bool Proposals::roll_back(const std::string& phase, const Failure& why) {
    if (!slot_.previous()) return false;
    p_.journal.note(slot_.roll_back(p_.context.step, phase, why));
    forget_acceptance();
    return true;
}

// One on probation has lost its slot by it.
void Proposals::note_fault(Fault fault, const std::string& why, const char* what_follows) {
    const SwapJournal::AfterCalls after(p_.journal); // its predecessor is not asked in this step
    if (roll_back("propose", fail(why))) return;
    if (faults_++ == 0) spdlog::warn("{}: {}", why, what_follows);
    p_.context.report.calls.proposer_faults += 1;
    p_.context.report.calls.proposer_breaches += fault == Fault::kContract ? 1 : 0;
}

void Proposals::propose() {
    const std::vector<DraftRow> rows = selection_.select();
    const uint64_t start = p_.clock.now_ns();
    if (!rows.empty()) asked_in_ = p_.context.step;
    Result<> done;
    if (draft_model_) done = draft_with_model(rows);
    else if (!rows.empty()) done = ask(rows);
    if (draft_model_ || !rows.empty()) p_.context.report.drafts.propose_ns = p_.clock.now_ns() - start;
    if (!done) note_fault(Fault::kError, done.error(), "this step goes on without drafts");
}

// The model goes on with what the target has computed, also of sequences that are not drafted for.
Result<> Proposals::draft_with_model(std::span<const DraftRow> rows) {
    std::vector<DraftModel::Row> wanted;
    for (const DraftRow& row : rows) wanted.push_back({row.sequence, row.wire.max_drafts});
    std::vector<Sequence*> all;
    for (const auto& s : lingering_.all()) all.push_back(s.get());
    const auto running = p_.sequences.running();
    all.insert(all.end(), running.begin(), running.end());
    PB_CHECK(p_.copies.flush()); // of pages that were taken for drafts
    draft_model_->begin(wanted, all);
    const Result<> proposed = rows.empty() ? Result<>() : ask(rows);
    const Result<> followed = draft_model_->end();
    StepReport& report = p_.context.report;
    report.drafts.passes = draft_model_->work().passes;
    report.drafts.pass_tokens = draft_model_->work().tokens;
    report.drafts.pass_ns = draft_model_->work().ns;
    for (Sequence* s : running)
        p_.kv.tables().free_outside_window(s->kv.table,
                                           std::min(draft_model_->computed_by_both(*s), p_.beams.needed_from(*s)));
    lingering_.release();
    return proposed ? followed : proposed;
}

Result<> Proposals::ask(std::span<const DraftRow> rows) {
    const uint32_t k = p_.settings.num_speculative_tokens * p_.speculation.max_paths; // room of a row
    std::vector<pb_propose_row> wire;
    for (const DraftRow& row : rows) wire.push_back(row.wire);
    std::vector<TokenId> drafts(rows.size() * k, -1);
    std::vector<uint32_t> counts(rows.size(), 0);
    std::vector<uint8_t> drawn(rows.size() * k, 0);
    std::vector<int32_t> parents;
    for (size_t i = 0; p_.speculation.max_paths > 1 && i < drafts.size(); ++i)
        parents.push_back(static_cast<int32_t>(i % k) - 1);
    pb_propose_batch b{sizeof(pb_propose_batch), static_cast<uint32_t>(rows.size()), sizeof(pb_propose_row), k,
                       wire.data(), drafts.data(), counts.data(), parents.empty() ? nullptr : parents.data()};
    if (p_.verification.is_by_rejection()) {
        drawn_from_.resize(std::max(drawn_from_.size(), drawn.size() * p_.vocab_size));
        b.probs = drawn_from_.data();
        b.drawn = drawn.data();
        b.vocab_size = p_.vocab_size;
    }
    const uint64_t start = p_.clock.now_ns();
    const Result<> proposed = host::checked<&pb_proposer::propose>(slot_.current(), &b);
    p_.context.report.calls.propose_ns = p_.clock.now_ns() - start;
    PB_CHECK(proposed);
    for (size_t i = 0; i < rows.size(); ++i) {
        Sequence& s = *rows[i].sequence;
        const uint32_t max_drafts = rows[i].wire.max_drafts;
        const std::span<const TokenId> given = std::span(drafts).subspan(i * k, k);
        if (parents.empty()) {
            appender_.append_chain(s, given.first(std::min(counts[i], max_drafts)),
                                   {std::span(drawn).subspan(i * k, k), row_of(drawn_from_, i, k * p_.vocab_size)});
            continue;
        }
        const size_t count = std::min(counts[i], k);
        DraftTree tree = tree_of(given.first(count), std::span(parents).subspan(i * k, count),
                                 {max_drafts, p_.speculation.max_paths, p_.vocab_size});
        if (!tree.sound) // what a proposer writes into parents may be wrong: that is its fault
            note_fault(Fault::kContract,
                       slot_.current().label() + std::string(" gave a draft whose parent is not an earlier draft"),
                       "it is cut, with what follows");
        appender_.append_tree(s, std::move(tree.paths));
    }
    return {};
}

void Proposals::observe(const Sequence& s, uint32_t verified, uint32_t accepted) {
    if (verified == 0 || !any()) return;
    slot_.each([&](const host::Component& c) {
        if (host::table_of<pb_proposer>(c).observe) host::call<&pb_proposer::observe>(c, s.id, verified, accepted);
    });
}

void Proposals::free_outside_window(Sequence& s) {
    if (!draft_model_) p_.kv.tables().free_outside_window(s.kv.table, std::min(s.computed, p_.beams.needed_from(s)));
}

void Proposals::linger(std::unique_ptr<Sequence> s) { lingering_.add(std::move(s)); }

void Proposals::finished(const Sequence& s) {
    if (any())
        slot_.each([&](const host::Component& c) {
            if (host::table_of<pb_proposer>(c).finished) host::call<&pb_proposer::finished>(c, s.id);
        });
    p_.drafts.erase(s.id);
    if (s.kv.table.held == 0) p_.draft_kv.erase(s);
}

}  // namespace patchbay::engine
