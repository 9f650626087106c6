#include "engine/output/pooling.hpp"

#include <algorithm>
#include <cmath>

#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"

namespace patchbay::engine {

void Pooling::add(Sequence& s) {
    records_.add(s.id);
    if (s.request->pooling == PoolingType::kMean) s.kv.reads_prefixes = false;
}

void Pooling::erase(const Sequence& s) { records_.erase(s.id); }

void Pooling::want(const Sequence& s, uint32_t begin, uint32_t count, runner::Batch& batch) {
    if (!s.request->pooling) return;
    const uint32_t first = batch.tokens(), end = begin + count;
    if (*s.request->pooling == PoolingType::kLast) {
        if (end < s.prompt_count) return;
        begin = end - 1;
    }
    wanted_.push_back({s.id, begin, end - begin});
    batch.want_hidden({first + count - (end - begin), end - begin});
}

// What is computed a second time, after a preemption or by another model, begins with the first token that is wanted.
void Pooling::take(std::span<const float> hidden) {
    size_t rows = 0, at = 0;
    for (const Wanted& w : wanted_) rows += w.count;
    const size_t width = rows > 0 ? hidden.size() / rows : 0;
    for (const Wanted& w : wanted_) {
        const std::span<const float> states = hidden.subspan(at, w.count * width);
        at += states.size();
        Record* const r = records_.find(w.id);
        if (!r) continue; // it has ended
        if (w.begin != r->tokens || r->sum.size() != width) *r = {std::vector<double>(width), 0};
        for (size_t i = 0; i < states.size(); ++i) r->sum[i % width] += double{states[i]};
        r->tokens += w.count;
    }
}

std::optional<Ending> Pooling::finish(Sequence& s) const {
    if (!s.request->pooling || s.computed < s.prompt_count) return std::nullopt;
    const Record* const r = records_.find(s.id);
    const uint32_t expected = *s.request->pooling == PoolingType::kLast ? 1 : s.prompt_count;
    const uint32_t got = r && !r->sum.empty() ? r->tokens : 0; // none of a model that was exchanged for another
    if (got != expected)
        return Ending{FinishReason::kError,
                      "the model gave hidden states of " + std::to_string(got) + " tokens, expected " +
                          std::to_string(expected),
                      StatusCode::kFailed};
    if (!std::ranges::all_of(r->sum, [](double x) { return std::isfinite(x); }))
        return Ending{FinishReason::kError, "the model gave a hidden state that is not finite", StatusCode::kFailed};
    for (const double sum : r->sum) s.output.delta.embedding.push_back(static_cast<float>(sum / r->tokens));
    return Ending{FinishReason::kStop, ""};
}

}  // namespace patchbay::engine
