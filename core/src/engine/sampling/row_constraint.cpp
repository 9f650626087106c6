#include "engine/sampling/row_constraint.hpp"

#include <algorithm>

#include "engine/request/sequence.hpp"

namespace patchbay::engine {

void Constraints::mask(const PathRows& path, std::vector<MaskWords>& memory, RowConstraint::Unsatisfiable& rows) {
    memory.resize(all_.size());
    for (size_t i = 0; i < all_.size(); ++i)
        if (all_[i]->applies(path.sequence)) all_[i]->mask(path, memory[i], rows);
}

void Constraints::mask(const PathRows& path) {
    if (!applies(path.sequence)) return;
    Record& r = records_.of(path.sequence.id);
    r.unsatisfiable.clear();
    mask(path, r.memory, r.unsatisfiable);
}

void Constraints::mask_branch(const PathRows& path, std::vector<MaskWords>& memory) {
    if (applies(path.sequence)) mask(path, memory, records_.of(path.sequence.id).unsatisfiable);
}

Result<> Constraints::accept(const Sequence& s, TokenId token, uint32_t row, const std::string& sampler) {
    if (const Record* r = records_.find(s.id)) {
        const auto at = std::ranges::find(r->unsatisfiable, row, &std::pair<uint32_t, std::string>::first);
        if (at != r->unsatisfiable.end()) return fail(StatusCode::kInvalid, at->second);
    }
    for (RowConstraint* c : all_)
        if (c->applies(s)) PB_CHECK(c->accept(s, token, sampler));
    return {};
}

bool Constraints::is_complete(const Sequence& s) const {
    return std::ranges::any_of(all_, [&](const RowConstraint* c) { return c->applies(s) && c->is_complete(s); });
}

bool Constraints::applies(const Sequence& s) const {
    return std::ranges::any_of(all_, [&](const RowConstraint* c) { return c->applies(s); });
}

uint32_t Constraints::count_allowed(const Sequence& s, std::span<const TokenId> drafts) {
    uint32_t allowed = static_cast<uint32_t>(drafts.size());
    for (RowConstraint* c : all_)
        if (c->applies(s)) allowed = std::min(allowed, c->count_allowed(s, drafts.first(allowed)));
    return allowed;
}

void Constraints::inherit(const Sequence& from, const Sequence& to) {
    for (RowConstraint* c : all_) c->inherit(from, to);
}

void Constraints::erase(const Sequence& s) {
    for (RowConstraint* c : all_) c->erase(s);
    records_.erase(s.id);
}

}  // namespace patchbay::engine
