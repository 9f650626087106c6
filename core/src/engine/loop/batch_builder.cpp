#include "engine/loop/batch_builder.hpp"

#include "engine/loop/step_context.hpp"
#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"
#include "engine/speculation/draft_kv.hpp"
#include "engine/step_report.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

void BatchBuilder::build(std::span<Placed> step) {
    StepReport& report = p_.context.report;
    batch_.clear(p_.form);
    add_copies();
    for (const kv::PageCopy& page : p_.kv.copies().copies()) {
        report.kv.copied_pages += page.way == kv::Way::kWithin;
        report.preemption.pages_to_host += page.way == kv::Way::kToHost;
        report.preemption.pages_to_device += page.way == kv::Way::kToDevice;
    }
    rows_.clear();
    p_.pooling.begin_step();
    placeholders_.reserve(step.size());
    for (Placed& item : step) add(item);
    for (Branch& b : p_.branches.all()) add(b, step[b.item]);
    batch_.finish();
    report.work.scheduled_seqs = static_cast<uint32_t>(step.size());
    report.work.scheduled_tokens = batch_.tokens();
}

void BatchBuilder::add_copies() {
    batch_rows_.clear();
    placeholders_.clear();
    for (const kv::PageCopy& page : p_.kv.copies().copies()) batch_.copy(page);
}

void BatchBuilder::add(Placed& item) {
    const Sequence& s = *item.sequence;
    const uint32_t begin = s.computed + s.in_flight.tokens;
    const bool follows_placeholder = s.in_flight.placeholders > 0;
    std::span<const TokenId> tokens = std::span(s.tokens).subspan(begin, follows_placeholder ? 0 : item.tokens);
    if (follows_placeholder) { // reserved for all: no pointer moves
        placeholders_.push_back(-1 - static_cast<TokenId>(s.in_flight.placeholder_row));
        tokens = std::span(placeholders_).last(1);
    }
    p_.draft_kv.computes(s, {begin, item.tokens, batch_.tokens()});
    p_.pooling.want(s, begin, item.tokens, batch_);
    batch_rows_.push_back({tokens, begin, item.prompt_rows + item.rows, s.kv.table});
    batch_.add(batch_rows_.back());
    p_.prompt_logprobs.add_rows(s, begin + item.tokens - item.rows - item.prompt_rows, item.prompt_rows, rows_);
    item.first_row = rows_.count();
    for (uint32_t j = 0; j < item.rows; ++j) // row j sees the drafts before it as accepted
        rows_.add(p_.rows.row(s, item.confirmed - s.confirmed() + j), s.request->sampling.logits_statistics);
    p_.constraints.mask({s, s.tokens, item.confirmed, 0, item.first_row, std::span(rows_.rows).last(item.rows)});
}

void BatchBuilder::add(Branch& b, const Placed& item) {
    const Sequence& s = *item.sequence;
    b.first_token = batch_.tokens();
    batch_rows_.push_back({std::span(b.tokens).subspan(s.computed), s.computed, b.rows(), b.table});
    batch_.add(batch_rows_.back());
    b.first_row = rows_.count();
    for (uint32_t depth = b.shared + 1; depth <= b.drafts; ++depth) {
        pb_sample_row row = p_.rows.row(s, depth);
        row.prompt = b.tokens.data();
        row.output = b.tokens.data() + s.prompt_count;
        row.output_count = item.confirmed - s.prompt_count + depth;
        rows_.add(row, s.request->sampling.logits_statistics);
    }
    p_.constraints.mask_branch({s, b.tokens, item.confirmed, b.shared + 1, b.first_row,
                                std::span(rows_.rows).last(b.rows())},
                               b.masks);
}

void BatchBuilder::build_copies() {
    batch_.clear(p_.form);
    add_copies();
    batch_.finish();
}

execution::StepInput BatchBuilder::input() const {
    execution::StepInput in{.batch = batch_, .rows = batch_rows_, .copies = p_.kv.copies().copies()};
    if (batch_.tokens() > 0) in.samples = rows_.batch(nullptr, p_.vocab_size);
    return in;
}

std::vector<execution::RowPath> BatchBuilder::paths(std::span<const Placed> step) const {
    std::vector<execution::RowPath> out;
    out.reserve(step.size() + p_.branches.all().size());
    for (const Placed& item : step) {
        if (item.rows == 0) continue;
        const Sequence& s = *item.sequence;
        const auto drafts = std::span(s.tokens).subspan(item.rows > 1 ? item.confirmed : 0, item.rows - 1);
        out.push_back({s.id, item.first_row, item.rows, false, drafts, s.request->sampling.stop_token_ids});
    }
    for (const Branch& b : p_.branches.all()) {
        const Sequence& s = *step[b.item].sequence;
        out.push_back({s.id, b.first_row, b.rows(), true, b.path(), s.request->sampling.stop_token_ids});
    }
    return out;
}

}  // namespace patchbay::engine
