#include "scenario/outputs.hpp"

#include <algorithm>

#include "engine/speculation/draft_tree.hpp"
#include "host/function_proposer.hpp"
#include "patchbay/sdk/proposer.hpp"

namespace patchbay::scenario {

void write_output(const Step& output, const Requests& requests, std::span<const execution::ScriptedRows> rows,
                  Course& course) {
    for (const auto& [name, tokens] : std::get<step::Output>(output.what).tokens) {
        const engine::RequestId id = requests.id_of(name);
        const auto at = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.id == id; });
        if (at == rows.end())
            return course.differ(output, "output", text_of(Value(Texts{{name, tokens}})),
                                 "no token is sampled for " + name + " in this step");
        // Drafts are accepted while they are what is sampled; a step makes one token more.
        size_t accepted = engine::common_length(at->drafts, tokens);
        for (const auto& b : at->branches)
            accepted = std::max<size_t>(accepted, engine::common_length(b.drafts, tokens));
        if (tokens.size() != accepted + 1)
            return course.differ(output, "output", text_of(Value(Texts{{name, tokens}})),
                                 std::to_string(accepted + 1) + " of them, as the drafts are " +
                                     text_of(Value(Texts{{name, Tokens(at->drafts.begin(), at->drafts.end())}})));
        std::copy_n(tokens.begin(), std::min(tokens.size(), at->tokens.size()), at->tokens.begin());
        for (const auto& b : at->branches) // row j stands after so many drafts more than its first one
            for (size_t j = 0, after = b.drafts.size() - b.tokens.size() + 1; j < b.tokens.size(); ++j)
                if (after + j < tokens.size()) b.tokens[j] = tokens[after + j];
    }
}

void NextDrafts::take(Course& course, const Requests& requests) {
    if (course.over()) return;
    const auto* draft = std::get_if<step::Draft>(&course.now().what);
    if (!draft) return;
    of_ = &course.now();
    for (const auto& [name, paths] : draft->paths) by_id_[requests.id_of(name)] = paths;
    course.advance();
}

void NextDrafts::check_all_taken(const Requests& requests, Course& course) const {
    if (by_id_.empty()) return;
    for (const auto& [name, paths] : std::get<step::Draft>(of_->what).paths)
        if (by_id_.contains(requests.id_of(name)))
            return course.differ(*of_, "draft", "the proposer is asked for " + name, "it is not asked");
}

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
