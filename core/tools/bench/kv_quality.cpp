#include "bench/kv_quality.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/refusals.hpp"
#include "base/thread_pool.hpp"
#include "bench/times.hpp"
#include "execution/load_model.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::bench {
namespace {

constexpr uint32_t kChunk = 64; // tokens a pass: so much memory for logits

// −ln p of `next` under one row of logits.
double nats_of(std::span<const float> logits, int32_t next) {
    const double max_logit = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float x : logits) sum += std::exp(x - max_logit);
    return std::log(sum) + max_logit - logits[static_cast<size_t>(next)];
}

class Scorer {
  public:
    Scorer(runner::ModelRunner& runner, uint32_t block_size)
        : runner_(runner), vocab_(runner.model().facts().vocab_size),
          cache_(runner.kv().pages().count(), block_size, kv::PrefixCaching::kOff, "", runner.kv().grouping().groups) {}

    Result<> add(std::span<const int32_t> window) {
        kv::BlockTable table;
        if (!cache_.tables().grow(table, static_cast<uint32_t>(window.size())))
            return invalid("a window of " + std::to_string(window.size()) + " tokens does not fit the KV cache");
        const Result<> done = chunks(window, table);
        cache_.tables().release(table);
        return done;
    }

    double nats = 0;
    std::vector<int32_t> likeliest;

  private:
    Result<> chunks(std::span<const int32_t> window, const kv::BlockTable& table) {
        for (size_t from = 0; from + 1 < window.size(); from += kChunk) {
            const auto count = static_cast<uint32_t>(std::min<size_t>(kChunk, window.size() - 1 - from));
            batch_.clear(runner_.kv().batch_form());
            batch_.add({window.subspan(from, count), static_cast<uint32_t>(from), count, table});
            batch_.finish();
            PB_TRY(const std::span<float> logits, runner_.passes().forward(batch_));
            for (uint32_t row = 0; row < count; ++row) {
                const auto at = logits.subspan(size_t{row} * vocab_, vocab_);
                nats += nats_of(at, window[from + row + 1]);
                likeliest.push_back(static_cast<int32_t>(std::max_element(at.begin(), at.end()) - at.begin()));
            }
        }
        return {};
    }

    runner::ModelRunner& runner_;
    const size_t vocab_;
    kv::KvCache cache_;
    runner::Batch batch_;
};

}  // namespace

double TextScores::perplexity() const { return std::exp(nats); }

double agreement(const TextScores& a, const TextScores& b) {
    size_t same = 0;
    for (size_t i = 0; i < a.likeliest.size(); ++i) same += a.likeliest[i] == b.likeliest[i];
    return static_cast<double>(same) / static_cast<double>(a.likeliest.size());
}

Result<TextScores> score_text(const config::EngineConfig& asked, const host::Registry& registry,
                              std::span<const int32_t> tokens, uint32_t window) {
    if (tokens.size() < 2 || window < 2) return invalid("a text and windows of 2 tokens at least are needed");
    config::EngineConfig c = asked;
    c.engine.max_num_batched_tokens = kChunk;
    c.engine.max_num_seqs = 1;
    ThreadPool pool(execution::choose_threads(c.engine));
    const host::Services services{&pool.service(), nullptr, nullptr};
    PB_TRY(execution::ModelParts parts, execution::choose_parts(c, registry, services));
    if (!parts.device_info.computes)
        return unsupported("device '" + c.device.plugin + "' computes nothing, so no text can be scored on it");
    parts.model.source.read_with(pool);
    RealClock clock;
    PB_TRY(const auto runner, execution::load_runner(c, parts, nullptr, clock));
    const auto vocab = static_cast<int32_t>(runner->model().facts().vocab_size);
    if (std::any_of(tokens.begin(), tokens.end(), [&](int32_t t) { return t < 0 || t >= vocab; }))
        return invalid("the text has tokens past the model's vocabulary of " + std::to_string(vocab));
    if (window > runner->model().facts().max_position)
        return invalid("windows of " + std::to_string(window) + " tokens are longer than the model's " +
                       std::to_string(runner->model().facts().max_position));
    Scorer scorer(*runner, c.engine.block_size);
    for (size_t from = 0; from + 1 < tokens.size(); from += window)
        PB_CHECK(scorer.add(tokens.subspan(from, std::min<size_t>(window, tokens.size() - from))));
    TextScores out;
    out.kv_dtype = runner::text_of(parts.model.kv_dtypes);
    out.bytes_per_token = static_cast<double>(runner->kv().page_bytes()) * runner->kv().batch_form().token_groups /
                          c.engine.block_size;
    out.nats = scorer.nats / static_cast<double>(scorer.likeliest.size());
    out.likeliest = std::move(scorer.likeliest);
    return out;
}

std::string table_of(std::span<const TextScores> all) {
    std::string out = printed("%zu predicted tokens\n\n%-32s %12s %12s %10s %12s\n", all[0].likeliest.size(),
                              "kv_cache_dtype", "bytes/token", "perplexity", "change", "same choice");
    for (const TextScores& s : all) {
        const double change = s.perplexity() / all[0].perplexity() - 1;
        out += printed("%-32s %12.0f %12.4f %+9.3f%% %11.2f%%\n", s.kv_dtype.c_str(), s.bytes_per_token, s.perplexity(),
                       100 * change, 100 * agreement(s, all[0]));
    }
    return out;
}

std::string json_of(std::span<const TextScores> all) {
    nlohmann::json out = {{"predicted_tokens", all[0].likeliest.size()}, {"types", nlohmann::json::array()}};
    for (const TextScores& s : all)
        out["types"].push_back({{"kv_dtype", s.kv_dtype},
                                {"kv_bytes_per_token", s.bytes_per_token},
                                {"nats_per_token", s.nats},
                                {"perplexity", s.perplexity()},
                                {"same_choice", agreement(s, all[0])}});
    return out.dump(2);
}

}  // namespace patchbay::bench
