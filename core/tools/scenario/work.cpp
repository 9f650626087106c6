#include "scenario/work.hpp"

#include <algorithm>

namespace patchbay::scenario {
namespace {

// How many of a kind take as long as a token that is computed.
constexpr uint64_t kPages = 128;      // counted where blocks are scarce
constexpr uint64_t kBeamLength = 64; // tokens and pages of a beam: each step copies them
constexpr uint64_t kBlocks = 256;     // looked through for one name
constexpr uint64_t kRecords = 64;     // looked through for one name

}  // namespace

uint64_t candidates_of(const Arrival& a, size_t eos_tokens) {
    const uint64_t ends = a.stop_token_ids.size() + (a.ignore_eos ? 0 : eos_tokens);
    return std::max<uint64_t>(2, 1 + ends) * a.beam_width + ends;
}

uint64_t work_of_grammar_row(const Vocabulary& vocabulary) {
    uint64_t bytes = 0; // each may be a step through the grammar
    for (const auto& [id, text] : vocabulary) bytes += text.size();
    return 16 + bytes;
}

uint64_t work_of_step(const engine::View& view, const Candidates& candidates) {
    uint64_t pages = 0, copied = 0, work = 0;
    const auto add = [&](const pb_sequence& s) {
        pages += s.pages;
        const auto at = candidates.find(s.id);
        if (at == candidates.end()) return;
        copied += uint64_t{s.prompt_tokens} + s.output_tokens + s.pages;
        work += at->second * (at->second + 256) / 1024; // each is made up, and held against those before it
    };
    std::ranges::for_each(view.running, add);
    std::ranges::for_each(view.waiting, add); // beams among them are compared, to know what they share
    return work + pages / kPages + copied / kBeamLength;
}

uint64_t work_of(const step::Expect& what, const engine::View& view, size_t requests) {
    const uint64_t sequences = view.waiting.size() + view.running.size();
    uint64_t work = sequences + view.preempted.size() + view.report.kv.residencies_ns.size() / kPages;
    for (const Expectation& e : what.expectations) {
        if (const auto* counts = std::get_if<Counts>(&e.value)) work += counts->size() * sequences / kRecords;
        if (const auto* totals = std::get_if<Totals>(&e.value))
            work += totals->size() * (sequences + requests) / kRecords;
        if (const auto* blocks = std::get_if<BlockCounts>(&e.value))
            work += blocks->counts.size() * view.total_pages / kBlocks;
        if (std::holds_alternative<BlockList>(e.value)) work += view.total_pages / kBlocks;
    }
    return work;
}

}  // namespace patchbay::scenario
