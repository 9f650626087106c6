#include "engine/groups/best_of.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <utility>

#include "engine/output/outputs.hpp"

namespace patchbay::engine {
namespace {

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

struct OutputsSoFar {
    std::vector<RequestOutput> all;
    size_t unfinished;
    std::vector<TokenLogprobs> prompt_logprobs;
};

bool better_output(const RequestOutput& a, const RequestOutput& b) {
    if (is_complete(a.finish) != is_complete(b.finish)) return is_complete(a.finish);
    const auto worth = [](std::optional<double> sum) { return sum && !std::isnan(*sum) ? *sum : -INFINITY; };
    return worth(a.cumulative_logprob) > worth(b.cumulative_logprob);
}

void take(RequestOutput& whole, const RequestOutput& delta) {
    RequestOutput next = delta; // whose other members are those of the latest
    next.tokens = std::move(whole.tokens);
    next.logprobs = std::move(whole.logprobs);
    next.text = std::move(whole.text) + delta.text;
    append(next.tokens, delta.tokens);
    append(next.logprobs, delta.logprobs);
    whole = std::move(next);
}

}  // namespace

std::function<void(const RequestOutput&)> best_of(uint32_t n, uint32_t made,
                                                  std::function<void(const RequestOutput&)> on_output) {
    auto kept = std::make_shared<OutputsSoFar>(OutputsSoFar{std::vector<RequestOutput>(made), made, {}});
    return [n, kept, tell = std::move(on_output)](const RequestOutput& delta) {
        append(kept->prompt_logprobs, delta.prompt_logprobs);
        take(kept->all.at(delta.index), delta);
        if (delta.finish == FinishReason::kNone || --kept->unfinished > 0) return;
        std::vector<RequestOutput> all = std::exchange(kept->all, {});
        const uint32_t cached = all[0].cached_tokens; // the others share the first one's prompt
        const uint64_t scheduled_ns = all[0].first_scheduled_ns;
        std::ranges::stable_sort(all, better_output);
        for (uint32_t i = 0; i < n; ++i) {
            all[i].index = i;
            all[i].time_ns = delta.time_ns;
            all[i].cached_tokens = cached;
            all[i].first_scheduled_ns = scheduled_ns;
            all[i].prompt_logprobs = i == 0 ? std::move(kept->prompt_logprobs) : std::vector<TokenLogprobs>();
            if (tell) tell(all[i]);
        }
    };
}

}  // namespace patchbay::engine
