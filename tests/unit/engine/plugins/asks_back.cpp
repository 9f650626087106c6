// A proposer that has its model go back, try another chain, and go back again, and that fails where an answer is not
// what it was. For greedy requests.
#include <algorithm>
#include <string>
#include <vector>

#include "patchbay/sdk/draft_model.hpp"
#include "patchbay/sdk/proposer.hpp"

namespace {

class AsksBack {
  public:
    static constexpr pb_param kParams[] = {patchbay::param::text("model", "", "the draft model's folder")};
    explicit AsksBack(const patchbay::Context& context) : model_(load(context)) {}

    void propose(patchbay::ProposeBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i) {
            if (batch.row(i).max_drafts < 3) continue;
            const uint64_t id = batch.row(i).id;
            const Answer first = ask(id, {});
            if (first.token < 0) continue; // the model has not computed so far
            if (first.top[0] != first.token) fail("the likeliest token", first.top[0], first.token);
            if (first.logprob > 0 || first.top_logprobs[1] > first.top_logprobs[0]) fail("a log-probability");
            const Answer second = ask(id, {first.token});
            if (second.token < 0) continue;
            const Answer other = ask(id, {first.top[1], second.token});
            const Answer third = ask(id, {first.token, second.token});
            if (const Answer again = ask(id, {}); again.token != first.token || again.logprob != first.logprob)
                fail("the first token again", again.token, first.token);
            if (const Answer again = ask(id, {first.top[1], second.token}); again.token != other.token)
                fail("the other chain again", again.token, other.token);
            if (const Answer again = ask(id, {first.token}); again.token != second.token)
                fail("the second token again", again.token, second.token);
            std::vector<int32_t> chain = {first.token, second.token, third.token};
            chain.erase(std::find(chain.begin(), chain.end(), -1), chain.end());
            batch.propose(i, chain);
        }
    }

  private:
    struct Answer {
        int32_t token = -1, top[2] = {-1, -1};
        float logprob = 0, top_logprobs[2] = {0, 0};
    };

    static patchbay::DraftModel load(const patchbay::Context& context) {
        const std::string path = context.get<std::string>("model");
        return patchbay::DraftModel(context, {{patchbay::str("path"), patchbay::str(path)}});
    }

    [[noreturn]] static void fail(const std::string& what, int32_t got = 0, int32_t expected = 0) {
        throw patchbay::Error(PB_FAILED,
                              what + " is " + std::to_string(got) + ", expected " + std::to_string(expected));
    }

    Answer ask(uint64_t id, const std::vector<int32_t>& chain) const {
        const pb_runner_row row{id, chain.data(), static_cast<uint32_t>(chain.size()), 0};
        Answer out;
        pb_runner_batch batch{};
        batch.struct_size = sizeof batch;
        batch.model = model_.facts().model;
        batch.row_count = 1;
        batch.row_stride = sizeof row;
        batch.rows = &row;
        batch.tokens = &out.token;
        batch.logprobs = &out.logprob;
        batch.top_count = 2;
        batch.top_tokens = out.top;
        batch.top_logprobs = out.top_logprobs;
        model_.forward(batch);
        return out;
    }

    patchbay::DraftModel model_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::proposer<AsksBack>(
    {.name = "asks_back", .version = "1.0.0", .summary = "for the engine's tests"}))
