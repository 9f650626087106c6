#include "execution/simulated_executor.hpp"

#include <algorithm>
#include <utility>

#include "execution/synthetic_tokens.hpp"
#include "patchbay/sdk/philox.hpp"

namespace patchbay::execution {

Result<> SimulatedExecutor::submit(const StepInput& in) {
    StepInput time_only = in;
    time_only.sampler = nullptr;
    PB_CHECK(LocalExecutor::submit(time_only));
    const auto* rows = static_cast<const pb_sample_row*>(in.samples.rows);
    Rows& to_make = submitted_.emplace_back(
        Rows{{}, std::span(rows, in.samples.row_count), in.samples.max_logprobs, in.overlaps});
    if (!in.overlaps) return {};
    to_make.kept.assign(to_make.rows.begin(), to_make.rows.end());
    to_make.rows = to_make.kept;
    return {};
}

Result<StepOutput> SimulatedExecutor::wait(std::span<const RowPath> paths) {
    PB_CHECK(LocalExecutor::wait(paths));
    const Rows rows = std::move(submitted_.front());
    submitted_.pop_front();
    make(rows, paths);
    if (!rows.rows.empty() || rows.overlapped) answer(paths, tokens_);
    StepOutput out;
    out.sampled = {tokens_, top_tokens_, logprobs_, top_logprobs_, max_logprobs_, 0};
    out.is_sampled = true;
    return out;
}

void SimulatedExecutor::cancel() {
    submitted_.clear();
    LocalExecutor::cancel();
}

// Rows of sequences that have ended stay −1.
void SimulatedExecutor::make(const Rows& given, std::span<const RowPath> paths) {
    const size_t count = given.rows.size();
    max_logprobs_ = given.max_logprobs;
    tokens_.assign(count, -1);
    logprobs_.assign(count, 0);
    top_tokens_.assign(count * max_logprobs_, -1);
    top_logprobs_.assign(count * max_logprobs_, 0);
    for (const RowPath& path : paths) {
        std::vector<int32_t> all_avoided;
        std::span<const int32_t> avoided = path.stop_token_ids;
        if (!avoided_.empty()) {
            all_avoided = avoided_;
            all_avoided.insert(all_avoided.end(), avoided.begin(), avoided.end());
            avoided = all_avoided;
        }
        for (size_t i = path.first_row; i < path.first_row + path.rows; ++i) {
            const pb_sample_row& row = given.rows[i];
            const int32_t token = synthetic_token(row.seed, row.position, vocab_size(), eos_, avoided);
            tokens_[i] = row.allowed ? next_allowed(token, row.allowed, vocab_size()) : token;
            if (row.params->logprobs > 0) logprobs_[i] = synthetic_logprob(row.seed, row.position);
            if (row.params->logprobs > 1) make_candidates(row, path, i);
        }
    }
}

// Of a beam: the synthetic token before others, as if the model were nearly sure of it.
void SimulatedExecutor::make_candidates(const pb_sample_row& row, const RowPath& path, size_t i) {
    std::vector<std::pair<int32_t, float>> all = {{tokens_[i], -0.125f}};
    for (uint32_t k = 1; k + 1 < row.params->logprobs; ++k) {
        const uint64_t seed = row.seed + k;
        const int32_t token = synthetic_token(seed, row.position, vocab_size(), eos_, path.stop_token_ids);
        const auto far = static_cast<float>(uniform(draw(seed, row.position, Stream::kDraft, 0)[0]));
        if (std::ranges::none_of(all, [&](const auto& c) { return c.first == token; })) all.emplace_back(token, -far);
    }
    std::ranges::sort(all, [](const auto& a, const auto& b) { return a.second > b.second; });
    for (size_t k = 0; k < all.size(); ++k) {
        top_tokens_[i * max_logprobs_ + k] = all[k].first;
        top_logprobs_[i * max_logprobs_ + k] = all[k].second;
    }
}

void SimulatedExecutor::answer(std::span<const RowPath>, std::span<int32_t>) {}

}  // namespace patchbay::execution
