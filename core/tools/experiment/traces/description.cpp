#include "experiment/traces/description.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_set>

#include "experiment/run_metrics.hpp"

namespace patchbay::experiment {
namespace {

constexpr uint32_t kTokensOfBlock = 16; // of token ids, as the engine's prefix cache has them

LengthSummary summary_of(std::string name, std::string unit, std::vector<double> values) {
    LengthSummary s{std::move(name), std::move(unit), 0, {}};
    s.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    for (int q = 0; q <= 100; ++q) s.quantiles.push_back(quantile(values, q / 100.0));
    return s;
}

void describe_times(const Trace& trace, uint32_t parts, TraceDescription& out) {
    std::vector<double> at;
    for (const TraceRow& r : trace.rows)
        if (!r.follows) at.push_back(static_cast<double>(r.at_ns) * 1e-9);
    if (!trace.timed || at.size() < 2 || at.back() <= 0) return;
    out.seconds = at.back();
    const auto gaps = static_cast<double>(at.size() - 1);
    out.mean_rate = gaps / out.seconds;
    double squares = 0;
    for (size_t i = 1; i < at.size(); ++i) squares += std::pow(at[i] - at[i - 1], 2);
    out.gap_cv = std::sqrt(std::max(0.0, squares / gaps * out.mean_rate * out.mean_rate - 1));
    parts = std::clamp<uint32_t>(static_cast<uint32_t>(at.size() / 4), 1, parts); // of few requests a rate says little
    out.rates.assign(parts, 0);
    for (size_t i = 1; i < at.size(); ++i) { // of gaps, as the mean is: each counts where it ends
        const auto ends_in = static_cast<size_t>(std::max(1.0, std::ceil(at[i] / out.seconds * parts)));
        out.rates[std::min<size_t>(parts, ends_in) - 1] += parts / out.seconds;
    }
}

void describe_lengths(const Trace& trace, TraceDescription& out) {
    std::vector<double> prompt, output, declared;
    bool texts = false;
    for (const TraceRow& r : trace.rows) {
        const bool text = r.content == PromptContent::kText;
        texts |= text;
        prompt.push_back(text ? static_cast<double>(trace.texts[r.first].size()) : r.prompt_tokens);
        output.push_back(text && r.has_answer ? static_cast<double>(trace.texts[r.first + 1].size()) : r.output_tokens);
        if (r.max_tokens > 0) declared.push_back(r.max_tokens);
    }
    const char* unit = texts ? "bytes" : "tokens";
    out.lengths.push_back(summary_of("prompt", unit, std::move(prompt)));
    out.lengths.push_back(summary_of("output", unit, std::move(output)));
    if (!declared.empty()) out.lengths.push_back(summary_of("max_tokens", "tokens", std::move(declared)));
}

// Tokens of the beginning of a prompt that earlier prompts had too, by the hashes of all blocks up to each.
class SeenPrefixes {
  public:
    template <class Block> // the i-th block's content as a number
    uint64_t shared(uint32_t blocks, uint32_t tokens_of_block, uint32_t tokens, Block&& block) {
        uint64_t hash = 0xcbf29ce484222325, found = 0;
        bool still = true;
        for (uint32_t i = 0; i < blocks; ++i) {
            hash = (hash ^ block(i)) * 0x100000001b3;
            hash ^= hash >> 29;
            still &= !seen_.insert(hash).second;
            if (still) found += std::min<uint64_t>(tokens_of_block, tokens - uint64_t{i} * tokens_of_block);
        }
        return found;
    }

  private:
    std::unordered_set<uint64_t> seen_;
};

void describe_sharing(const Trace& trace, TraceDescription& out) {
    SeenPrefixes blocks, ids;
    std::map<uint64_t, uint32_t> prefixes; // the longest so far
    for (const TraceRow& r : trace.rows) {
        if (r.content == PromptContent::kBlocks) {
            out.shared_tokens += blocks.shared(r.count, trace.block_tokens, r.prompt_tokens,
                                               [&](uint32_t i) { return trace.blocks[r.first + i]; });
        } else if (r.content == PromptContent::kIds) {
            out.shared_tokens += ids.shared(r.count / kTokensOfBlock, kTokensOfBlock, r.count, [&](uint32_t i) {
                uint64_t hash = 0;
                for (uint32_t k = 0; k < kTokensOfBlock; ++k)
                    hash = (hash ^ static_cast<uint64_t>(trace.ids[r.first + i * kTokensOfBlock + k])) * 0x100000001b3;
                return hash;
            });
        } else if (r.content == PromptContent::kPrefix) {
            uint32_t& longest = prefixes[r.first];
            out.shared_tokens += std::min(longest, r.count);
            longest = std::max(longest, r.count);
        } else {
            continue;
        }
        out.known_tokens += r.prompt_tokens;
    }
}

void describe_classes(const Trace& trace, TraceDescription& out) {
    if (trace.labels.size() < 2) return;
    std::vector<ClassSummary> all(trace.labels.size());
    for (const TraceRow& r : trace.rows) {
        ClassSummary& c = all[r.label];
        c.requests += 1;
        c.prompt_mean += (r.prompt_tokens - c.prompt_mean) / static_cast<double>(c.requests);
        c.output_mean += (r.output_tokens - c.output_mean) / static_cast<double>(c.requests);
    }
    for (size_t i = 0; i < all.size(); ++i) all[i].name = i == 0 ? "(none)" : trace.labels[i];
    std::erase_if(all, [](const ClassSummary& c) { return c.requests == 0; });
    std::ranges::stable_sort(all, std::greater<>(), &ClassSummary::requests);
    out.classes = std::move(all);
}

}  // namespace

TraceDescription describe(const Trace& trace, uint32_t parts) {
    TraceDescription out;
    out.format = name_of(trace.format);
    out.requests = trace.rows.size();
    out.left_out = trace.left_out;
    std::unordered_set<uint32_t> sessions;
    for (const TraceRow& r : trace.rows) {
        if (r.session == 0) continue;
        sessions.insert(r.session);
        out.turns += 1;
    }
    out.sessions = sessions.size();
    describe_times(trace, parts, out);
    describe_lengths(trace, out);
    describe_sharing(trace, out);
    describe_classes(trace, out);
    return out;
}

nlohmann::ordered_json json_of(const TraceDescription& d) {
    const auto list = nlohmann::ordered_json::array();
    nlohmann::ordered_json out = {{"format", d.format},
                                  {"requests", d.requests},
                                  {"left_out", d.left_out},
                                  {"sessions", d.sessions},
                                  {"turns", d.turns},
                                  {"seconds", d.seconds},
                                  {"mean_rate", d.mean_rate},
                                  {"gap_cv", d.gap_cv},
                                  {"rates", d.rates},
                                  {"lengths", list},
                                  {"known_tokens", d.known_tokens},
                                  {"shared_tokens", d.shared_tokens},
                                  {"classes", list}};
    for (const LengthSummary& l : d.lengths)
        out["lengths"].push_back({{"name", l.name}, {"unit", l.unit}, {"mean", l.mean}, {"quantiles", l.quantiles}});
    for (const ClassSummary& c : d.classes)
        out["classes"].push_back({{"name", c.name},
                                  {"requests", c.requests},
                                  {"prompt_mean", c.prompt_mean},
                                  {"output_mean", c.output_mean}});
    return out;
}

}  // namespace patchbay::experiment
