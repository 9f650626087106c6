#include "experiment/quality.hpp"

#include <algorithm>
#include <cmath>

#include "base/json_file.hpp"
#include "base/refusals.hpp"
#include "base/sha256.hpp"
#include "experiment/conclusion.hpp"
#include "experiment/table_text.hpp"
#include "service/run_to_end.hpp"

namespace patchbay::experiment {
namespace {

using Tokens = std::vector<engine::TokenId>;

Result<Tokens> read_tokens(const engine::Engine& engine, const QualityCheck& check, std::string& sha256) {
    constexpr uint64_t kBytes = 1ull << 30, kBytesPerToken = 16;
    const auto tokenizer = engine.tokenizer();
    if (!tokenizer) return unsupported("quality: the model has no tokenizer for a text");
    PB_TRY(std::string text, read_whole_file(check.text, kBytes));
    sha256 = sha256_hex(text);
    text.resize(std::min<uint64_t>(text.size(), check.tokens * kBytesPerToken)); // more than so many tokens take
    Tokens tokens = tokenizer->encode(text);
    tokens.resize(std::min<size_t>(tokens.size(), check.tokens));
    if (tokens.size() < check.window)
        return invalid("quality: " + check.text.string() + " has " + std::to_string(tokens.size()) +
                       " tokens, fewer than a window of " + std::to_string(check.window));
    return tokens;
}

// Runs one request for each window; `take` gets its tokens and those of the prompt, as they come.
Result<> run_windows(engine::Engine& engine, const std::vector<Tokens>& prompts, const engine::SamplingParams& params,
                     const std::function<void(size_t, const engine::RequestOutput&)>& take) {
    Result<> done;
    for (size_t i = 0; i < prompts.size(); ++i) {
        engine::Request request;
        request.prompt = prompts[i];
        request.sampling = params;
        request.on_output = [&, i](const engine::RequestOutput& out) {
            if (out.finish == engine::FinishReason::kError && done) done = fail(out.error_code, out.stop_reason);
            take(i, out);
        };
        if (const auto added = engine.add_request(std::move(request)); !added)
            return prefixed("quality", added.failure());
    }
    PB_CHECK(service::run_to_end(engine, {}));
    return done ? done : prefixed("quality", done.failure());
}

Result<> predict(engine::Engine& engine, const std::vector<Tokens>& windows, QualityScores& scores) {
    engine::SamplingParams params;
    params.temperature = 0;
    params.max_tokens = 1;
    params.prompt_logprobs = 1;
    params.ignore_eos = true;
    std::vector<Tokens> choices(windows.size());
    scores.nats.assign(windows.size(), 0);
    const auto take = [&](size_t i, const engine::RequestOutput& out) {
        for (const engine::TokenLogprobs& token : out.prompt_logprobs) {
            scores.nats[i] -= static_cast<double>(token.sampled);
            choices[i].push_back(token.top.empty() ? -1 : token.top.front().first);
        }
    };
    PB_CHECK(run_windows(engine, windows, params, take));
    for (size_t i = 0; i < windows.size(); ++i) {
        if (choices[i].size() + 1 != windows[i].size())
            return fail("quality: the engine gave " + std::to_string(choices[i].size()) + " log-probabilities of " +
                        std::to_string(windows[i].size() - 1) + " tokens");
        scores.nats[i] /= static_cast<double>(choices[i].size());
        scores.likeliest.insert(scores.likeliest.end(), choices[i].begin(), choices[i].end());
    }
    return {};
}

Result<> go_on(engine::Engine& engine, const std::vector<Tokens>& windows, const QualityCheck& check,
               QualityScores& scores) {
    engine::SamplingParams params;
    params.temperature = 0;
    params.max_tokens = check.output_tokens;
    params.ignore_eos = true;
    std::vector<Tokens> prompts;
    for (size_t i = 0; i < std::min<size_t>(check.prompts, windows.size()); ++i)
        prompts.emplace_back(windows[i].begin(), windows[i].begin() + std::max(1u, check.window / 2));
    scores.outputs.resize(prompts.size());
    return run_windows(engine, prompts, params, [&](size_t i, const engine::RequestOutput& out) {
        scores.outputs[i].insert(scores.outputs[i].end(), out.tokens.begin(), out.tokens.end());
    });
}

double share(uint64_t n, uint64_t of) { return of > 0 ? static_cast<double>(n) / static_cast<double>(of) : 1; }

}  // namespace

Result<QualityScores> score_quality(engine::Engine& engine, const QualityCheck& check) {
    if (!engine.facts().device_computes)
        return unsupported("quality: the device computes nothing, so no text can be scored on it");
    QualityScores scores;
    PB_TRY(const Tokens tokens, read_tokens(engine, check, scores.text_sha256));
    std::vector<Tokens> windows;
    for (size_t from = 0; from + check.window <= tokens.size(); from += check.window) // whole ones, of one weight each
        windows.emplace_back(tokens.begin() + static_cast<std::ptrdiff_t>(from),
                             tokens.begin() + static_cast<std::ptrdiff_t>(from + check.window));
    PB_CHECK(predict(engine, windows, scores));
    PB_CHECK(go_on(engine, windows, check, scores));
    return scores;
}

std::vector<QualityResult> compare_quality(const std::vector<QualityScores>& scores, size_t baseline) {
    const QualityScores& base = scores[baseline];
    std::vector<QualityResult> out;
    for (const QualityScores& s : scores) {
        QualityResult& r = out.emplace_back();
        r.predicted = s.likeliest.size();
        r.perplexity = std::exp(estimate_of(s.nats).mean);
        r.outputs = s.outputs.size();
        std::vector<double> more; // nats, by window
        for (size_t i = 0; i < s.nats.size(); ++i) more.push_back(s.nats[i] - base.nats[i]);
        const Estimate difference = estimate_of(more);
        const Interval interval = interval_of(difference, kAlpha);
        r.ratio = std::exp(difference.mean);
        r.interval = {std::exp(interval.low), std::exp(interval.high)};
        uint64_t choices = 0, same = 0, tokens = 0, before = 0;
        for (size_t i = 0; i < s.likeliest.size(); ++i) choices += s.likeliest[i] == base.likeliest[i];
        r.same_choice = share(choices, s.likeliest.size());
        for (size_t i = 0; i < s.outputs.size(); ++i) {
            const Tokens &a = s.outputs[i], &b = base.outputs[i];
            same += a == b;
            tokens += b.size();
            const auto other = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
            before += static_cast<uint64_t>(other.second - b.begin());
        }
        r.same_outputs = share(same, s.outputs.size());
        r.same_tokens = share(before, tokens);
    }
    return out;
}

std::string quality_text(const std::vector<QualityResult>& results, const std::vector<std::string>& variants,
                          size_t baseline) {
    std::vector<std::vector<std::string>> rows{
        {"quality", "perplexity", "difference, 95 % interval", "same choice", "same outputs",
         "tokens before a difference"}};
    const auto percent = [](double of_one) { return shown(100 * of_one) + " %"; };
    const auto change = [](double ratio) {
        const double p = 100 * (ratio - 1);
        return (p > 0 ? "+" : "") + shown(p);
    };
    for (size_t v = 0; v < results.size(); ++v) {
        const QualityResult& r = results[v];
        rows.push_back({variants[v] + (v == baseline ? " *" : ""), shown(r.perplexity)});
        if (v == baseline) continue;
        const std::string interval = "(" + change(r.interval.low) + " … " + change(r.interval.high) + ")";
        for (std::string cell : {change(r.ratio) + " % " + interval,
                                 percent(r.same_choice), percent(r.same_outputs), percent(r.same_tokens)})
            rows.back().push_back(std::move(cell));
    }
    std::vector<size_t> widths(rows.front().size());
    for (const auto& row : rows)
        for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
    std::string out;
    for (const auto& row : rows) {
        std::string line;
        for (size_t i = 0; i < row.size(); ++i) line += (i ? "  " : "") + left(row[i], widths[i]);
        out += trimmed(line) + '\n';
    }
    return out;
}

}  // namespace patchbay::experiment
