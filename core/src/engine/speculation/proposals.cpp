#include "engine/speculation/proposals.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>

namespace patchbay::engine {

Proposals::Proposals(const Parts& parts, host::Proposer proposer, DraftModel* draft_model)
    : p_(parts), slot_("proposer", host::UnreadState::kStartsEmpty, parts.clock), draft_model_(draft_model) {
    if (!proposer) return;
    const host::Identity identity = host::Registry::identity(*proposer.component);
    slot_.install(std::move(proposer.component), identity);
    forget_acceptance();
}

Proposals::~Proposals() { release_lingering(); }

void Proposals::forget_acceptance() {
    if (p_.speculation.mode == config::DraftMode::kAdaptive) length_.emplace(p_.settings.num_speculative_tokens);
}

bool Proposals::roll_back(const std::string& phase, const std::string& reason) {
    if (!slot_.previous()) return false;
    p_.journal.note(slot_.roll_back(p_.context.step, phase, reason));
    forget_acceptance();
    return true;
}

// One on probation has lost its slot by it.
void Proposals::note_fault(Fault fault, const std::string& why, const char* what_follows) {
    if (roll_back("propose", why)) return;
    if (faults_++ == 0) spdlog::warn("{}: {}", why, what_follows);
    p_.context.report.proposer_faults += 1;
    p_.context.report.proposer_breaches += fault == Fault::kContract ? 1 : 0;
}

uint32_t Proposals::choose_length() {
    const auto running = p_.sequences.running();
    const auto decoding = std::ranges::count_if(running, [](const Sequence* s) { return s->decoding(); });
    if (length_ && decoding > 0) length_->choose(static_cast<uint32_t>(decoding));
    return p_.context.report.draft_length = length_ ? length_->chosen() : p_.settings.num_speculative_tokens;
}

std::vector<Proposals::Row> Proposals::rows_to_draft(uint32_t length) {
    std::vector<Row> out;
    const auto running = p_.sequences.running();
    for (Sequence* s : running) {
        if (p_.aborts.has(*s)) continue;
        if (s->is_beam()) continue; // a draft continues one beam, and each step takes up others
        if (!s->decoding() || s->drafts > 0) continue; // drafts that were not verified in this step still stand
        if (s->samples_by_surprisal()) continue;
        const uint32_t left = s->request.sampling.max_tokens - s->outputs(); // at least 1, made by the step itself
        const uint32_t room = p_.max_model_len - s->confirmed();
        uint32_t count = std::min({length, left - 1, room > 0 ? room - 1 : 0});
        if (count > 0 && draft_model_) count = draft_model_->make_room(*s, count, running.size());
        if (count == 0) continue;
        if (s->tokens.capacity() < s->tokens.size() + length) s->tokens.reserve(2 * s->tokens.size() + length);
        out.push_back({s, {s->id, s->tokens.data(), s->confirmed(), count, p_.speculation.max_paths, 0}});
    }
    return out;
}

void Proposals::propose() {
    const std::vector<Row> rows = rows_to_draft(choose_length());
    const uint64_t start = p_.clock.now_ns();
    if (!rows.empty()) asked_in_ = p_.context.step;
    Result<> done;
    if (draft_model_) done = draft_with_model(rows);
    else if (!rows.empty()) done = ask(rows);
    if (draft_model_ || !rows.empty()) p_.context.report.propose_ns = p_.clock.now_ns() - start;
    if (!done) note_fault(Fault::kError, done.error(), "this step goes on without drafts");
}

// The model goes on with what the target has computed, also of sequences that are not drafted for.
Result<> Proposals::draft_with_model(std::span<const Row> rows) {
    std::vector<DraftModel::Row> wanted;
    for (const Row& row : rows) wanted.push_back({row.sequence, row.wire.max_drafts});
    std::vector<Sequence*> all;
    for (const auto& s : lingering_) all.push_back(s.get());
    const auto running = p_.sequences.running();
    all.insert(all.end(), running.begin(), running.end());
    PB_CHECK(p_.copies.flush()); // of pages that were taken for drafts
    draft_model_->begin(wanted, all);
    const Result<> proposed = rows.empty() ? Result<>() : ask(rows);
    const Result<> followed = draft_model_->end();
    StepReport& report = p_.context.report;
    report.draft_passes = draft_model_->work().passes;
    report.draft_pass_tokens = draft_model_->work().tokens;
    report.draft_pass_ns = draft_model_->work().ns;
    for (Sequence* s : running)
        p_.kv.tables().free_outside_window(s->table,
                                           std::min(draft_model_->computed_by_both(*s), p_.beams.needed_from(*s)));
    release_lingering();
    return proposed ? followed : proposed;
}

Result<> Proposals::ask(std::span<const Row> rows) {
    const uint32_t k = p_.settings.num_speculative_tokens * p_.speculation.max_paths; // room of a row
    std::vector<pb_propose_row> wire;
    for (const Row& row : rows) wire.push_back(row.wire);
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
    PB_CHECK(host::checked<&pb_proposer::propose>(slot_.current(), &b));
    for (size_t i = 0; i < rows.size(); ++i) {
        Sequence& s = *rows[i].sequence;
        const uint32_t max_drafts = rows[i].wire.max_drafts;
        const std::span<const TokenId> given = std::span(drafts).subspan(i * k, k);
        if (parents.empty()) {
            keep_chain(s, given.first(std::min(counts[i], max_drafts)), i * k, drawn);
            continue;
        }
        const size_t count = std::min(counts[i], k);
        keep_tree(s, tree_of(given.first(count), std::span(parents).subspan(i * k, count),
                             {max_drafts, p_.speculation.max_paths, p_.vocab_size}));
    }
    return {};
}

void Proposals::keep_chain(Sequence& s, std::span<const TokenId> drafts, size_t first_draft,
                           std::span<const uint8_t> drawn) {
    for (size_t j = 0; j < drafts.size(); ++j) {
        if (drafts[j] < 0 || static_cast<uint32_t>(drafts[j]) >= p_.vocab_size) break; // the rest hangs on it
        const std::span<const float> all = drawn_from_;
        const size_t at = first_draft + j;
        keep(s, drafts[j], drawn[at] != 0 ? all.subspan(at * p_.vocab_size, p_.vocab_size) : all.first(0));
    }
    cut_disallowed(s);
}

void Proposals::keep(Sequence& s, TokenId token, std::span<const float> from) {
    DraftRecord& r = p_.drafts.of(s);
    if (s.drafts == 0) r = {};
    s.tokens.push_back(token);
    s.drafts += 1;
    if (!p_.verification.is_by_rejection()) return;
    const bool drawn = !from.empty() && from[static_cast<size_t>(token)] > 0; // else it cannot have been drawn
    r.drawn.push_back(drawn);
    if (drawn) r.probs.insert(r.probs.end(), from.begin(), from.end());
    else r.probs.resize(r.probs.size() + p_.vocab_size);
}

// From the first draft on that its constraints do not allow. One that was drawn is judged like any other: to leave it
// out would make others more likely.
void Proposals::cut_disallowed(Sequence& s) {
    if (!p_.constraints.applies(s)) return;
    uint32_t allowed = p_.constraints.count_allowed(s, std::span<const TokenId>(s.tokens).last(s.drafts));
    if (allowed < s.drafts && p_.verification.is_by_rejection() && p_.drafts.of(s).drawn[allowed]) allowed += 1;
    p_.context.report.cut_drafts += s.drafts - allowed;
    s.tokens.resize(s.confirmed() + allowed);
    s.drafts = allowed;
}

// What a proposer writes into parents may be wrong: that is its fault, and what hangs on it is no draft.
void Proposals::keep_tree(Sequence& s, DraftTree tree) {
    if (!tree.sound)
        note_fault(Fault::kContract,
                   slot_.current().label() + std::string(" gave a draft that hangs on no draft before it"),
                   "it is cut, with what follows");
    std::vector<DraftPath> paths;
    for (DraftPath& path : tree.paths) {
        const uint32_t allowed = p_.constraints.count_allowed(s, path);
        p_.context.report.cut_drafts += static_cast<uint32_t>(path.size()) - allowed;
        path.resize(allowed);
        add_path(paths, std::move(path), p_.speculation.max_paths);
    }
    if (paths.empty()) return;
    for (const TokenId token : paths.front()) keep(s, token, {});
    p_.drafts.of(s).branches.assign(std::make_move_iterator(paths.begin() + 1), std::make_move_iterator(paths.end()));
}

void Proposals::observe(const Sequence& s, uint32_t verified, uint32_t accepted) {
    if (verified == 0 || !any()) return;
    slot_.each([&](const host::Component& c) {
        if (host::table_of<pb_proposer>(c).observe) host::call<&pb_proposer::observe>(c, s.id, verified, accepted);
    });
}

void Proposals::free_outside_window(Sequence& s) {
    if (!draft_model_) p_.kv.tables().free_outside_window(s.table, std::min(s.computed, p_.beams.needed_from(s)));
}

// It ends in the step that computed its prompt, whose blocks may be shared from now on: by both models.
bool Proposals::lingers(const Sequence& s) const {
    if (!draft_model_ || !draft_model_->keeps_kv()) return false;
    const size_t shared = s.table.keys.size() * p_.kv.shape().block_size(); // tokens
    const DraftKv& known = p_.draft_kv.of(s);
    return !known.lost && shared > known.computed;
}

void Proposals::release_lingering() {
    for (const auto& s : lingering_) {
        p_.kv.tables().release(s->table);
        p_.draft_kv.erase(*s);
    }
    lingering_.clear();
}

void Proposals::finished(const Sequence& s) {
    if (any())
        slot_.each([&](const host::Component& c) {
            if (host::table_of<pb_proposer>(c).finished) host::call<&pb_proposer::finished>(c, s.id);
        });
    p_.drafts.erase(s);
    if (s.table.held == 0) p_.draft_kv.erase(s);
}

}  // namespace patchbay::engine
