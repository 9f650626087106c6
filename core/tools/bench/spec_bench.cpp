#include "bench/spec_bench.hpp"

#include <nlohmann/json.hpp>

#include "base/refusals.hpp"
#include "bench/times.hpp"
#include "host/registry.hpp"
#include "patchbay/sdk/philox.hpp"
#include "service/run_to_end.hpp"

namespace patchbay::bench {
namespace {

using engine::Engine;
using engine::StepReport;
using text::TokenId;

struct Served {
    std::vector<std::vector<TokenId>> outputs;
    std::vector<StepReport> steps;
};

Result<std::vector<std::vector<TokenId>>> prompts_of(const Engine& e, const SpecCase& asked, uint32_t pass) {
    if (asked.prompts.empty()) return random_prompts(asked, e.facts().model.vocab_size, pass);
    std::vector<std::vector<TokenId>> out;
    if (!e.tokenizer()) return unsupported("prompts are texts, but the model has no tokenizer");
    for (const std::string& text : asked.prompts) {
        std::string all;
        for (uint32_t i = 0; i < asked.copies; ++i) all += text;
        out.push_back(e.tokenizer()->encode(all));
    }
    return out;
}

// All prompts, so many at once.
Result<Served> serve(Engine& e, const std::vector<std::vector<TokenId>>& prompts, const SpecCase& asked,
                     uint32_t pass) {
    Served out;
    out.outputs.resize(prompts.size());
    std::optional<Failure> failed;
    size_t next = 0, running = 0;
    Result<> added;
    const auto fill = [&] {
        for (; added && next < prompts.size() && running < asked.batch; ++next) {
            engine::Request request;
            request.prompt = prompts[next];
            request.sampling.temperature = asked.temperature;
            request.sampling.seed = uint64_t{pass} * prompts.size() + next;
            request.sampling.ignore_eos = true;
            request.sampling.max_tokens = asked.output;
            request.on_output = [&, to = next](const engine::RequestOutput& o) {
                out.outputs[to].insert(out.outputs[to].end(), o.tokens.begin(), o.tokens.end());
                if (o.finish == engine::FinishReason::kError) failed = fail(o.error_code, o.stop_reason);
                running -= o.finish != engine::FinishReason::kNone;
            };
            if (const auto id = e.add_request(std::move(request)); !id) added = id.failure();
            running += 1;
        }
        return static_cast<bool>(added);
    };
    PB_CHECK(service::run_to_end(e, {fill, [&](StepReport& r) { out.steps.push_back(r); }}));
    PB_CHECK(added);
    if (failed) return *failed;
    return out;
}

struct Passes { // of one engine, each the sum of its decoding steps
    std::vector<double> seconds, tokens, steps, sequences;
    double proposing = 0, length = 0, computed = 0;

    void add(const std::vector<StepReport>& reports) {
        for (std::vector<double>* each : {&seconds, &tokens, &steps, &sequences}) each->push_back(0);
        for (const StepReport& r : reports) {
            if (r.work.prefill_tokens > 0 || r.work.decode_tokens == 0) continue;
            seconds.back() += static_cast<double>(r.end_ns - r.start_ns) * 1e-9;
            tokens.back() += r.work.sampled_tokens;
            steps.back() += 1;
            sequences.back() += r.work.scheduled_seqs;
            proposing += static_cast<double>(r.drafts.propose_ns) * 1e-9;
            length += r.drafts.length;
            computed += r.work.scheduled_tokens;
        }
    }
    SpecSpeed speed() const {
        std::vector<double> rates, each, of_one;
        for (size_t i = 0; i < seconds.size(); ++i) {
            if (steps[i] == 0) continue;
            rates.push_back(tokens[i] / seconds[i]);
            each.push_back(seconds[i] / steps[i]);
            of_one.push_back(tokens[i] / sequences[i]);
        }
        return {at_share(rates, 0.5), at_share(each, 0.5), at_share(of_one, 0.5)};
    }
    static double sum(const std::vector<double>& values) {
        double out = 0;
        for (const double v : values) out += v;
        return out;
    }
};

}  // namespace

std::vector<std::vector<TokenId>> random_prompts(const SpecCase& asked, uint32_t vocab_size, uint32_t pass) {
    std::vector<std::vector<TokenId>> out;
    for (uint32_t r = 0; r < asked.requests; ++r) {
        const uint64_t key = uint64_t{pass} * asked.requests + r;
        std::vector<TokenId>& prompt = out.emplace_back();
        for (uint32_t i = 0; i < asked.prompt_tokens * asked.copies; ++i)
            prompt.push_back(
                static_cast<TokenId>(draw(key, i % asked.prompt_tokens, Stream::kWorkload, 0)[0] % vocab_size));
    }
    return out;
}

Result<SpecResult> bench_spec(const config::EngineConfig& config, const host::Registry& registry, const SpecCase& asked,
                              Clock& clock, const std::function<void(const std::string&)>& progress) {
    if (!config.proposer) return invalid("nothing to compare: name a proposer (--proposer, --num-speculative-tokens)");
    config::EngineConfig plain = config;
    plain.proposer.reset();
    plain.engine.num_speculative_tokens = 0;
    plain.speculative = {};
    config::EngineConfig half = config; // both are in the device's memory at once, with as many pages
    half.engine.gpu_memory_utilization /= 2;
    PB_TRY(const auto with, Engine::create(half, registry, clock));
    if (half.engine.gpu_memory_utilization > 0) plain.engine.num_blocks = with->facts().kv.num_blocks;
    PB_TRY(const auto without, Engine::create(plain, registry, clock));
    SpecResult out{};
    out.facts = with->facts();
    Passes plain_passes, passes;
    const auto served = [&](const std::string& when, uint32_t pass, bool speculates) -> Result<Served> {
        progress(when + (speculates ? ", with" : ", without"));
        PB_TRY(const auto prompts, prompts_of(*with, asked, pass));
        return serve(speculates ? *with : *without, prompts, asked, pass);
    };
    for (const bool speculates : {false, true}) {
        PB_TRY([[maybe_unused]] const Served not_counted, served("warm-up", asked.repeats, speculates));
    }
    for (uint32_t repeat = 0; repeat < asked.repeats; ++repeat) {
        const std::string when = "repeat " + std::to_string(repeat + 1) + " of " + std::to_string(asked.repeats);
        const bool with_first = repeat % 2 == 1; // a machine that drifts favours neither
        PB_TRY(Served a, served(when, repeat, with_first));
        PB_TRY(Served b, served(when, repeat, !with_first));
        if (with_first) std::swap(a, b);
        plain_passes.add(a.steps);
        passes.add(b.steps);
        for (size_t i = 0; i < a.outputs.size(); ++i) out.outputs += 1, out.same += a.outputs[i] == b.outputs[i];
        for (const StepReport& r : b.steps) {
            out.verified += r.drafts.drafted_tokens;
            out.right += r.drafts.accepted_tokens;
            out.by_branch += r.drafts.branch_tokens;
            for (size_t i = 0; i < out.drafted.size(); ++i)
                out.drafted[i] += r.drafts.drafted_at[i], out.accepted[i] += r.drafts.accepted_at[i];
        }
    }
    out.without = plain_passes.speed();
    out.with = passes.speed();
    if (out.without.tokens_per_second == 0 || out.with.tokens_per_second == 0)
        return invalid("no step only decoded: outputs are too short");
    out.propose_share = passes.proposing / Passes::sum(passes.seconds);
    out.draft_length = passes.length / Passes::sum(passes.steps);
    out.computed = passes.computed / Passes::sum(passes.tokens);
    return out;
}

std::string table_of(const SpecResult& r, const config::EngineConfig& config, const SpecCase& asked) {
    std::string out = r.facts.device_name + ", " + std::to_string(r.facts.threads) + " threads; " +
                      r.facts.model.architecture + " " + r.facts.model.weight_dtype + "; proposer " +
                      config.proposer->plugin + ", batch " + std::to_string(asked.batch) + "\n";
    if (r.facts.synthetic_acceptance)
        out += "drafts are accepted by synthetic_acceptance_rates: the texts are not the model's\n";
    out += printed("\n%-10s %12s %12s %14s\n", "", "tokens/s", "ms per step", "tokens per step");
    for (const auto& [name, s] : {std::pair("without", r.without), std::pair("with", r.with)}) {
        out += printed("%-10s %12.1f %12.3f %14.2f\n", name, s.tokens_per_second, s.step_seconds * 1e3,
                       s.tokens_per_step);
    }
    out += printed("\nspeed-up %.2f; %.1f drafts allowed a step; %.0f %% of the time for drafts\naccepted by position:",
                   r.speed_up(), r.draft_length, 100 * r.propose_share);
    for (size_t i = 0; i < r.drafted.size() && r.drafted[i] > 0; ++i) {
        out += printed("%s %.3f", i ? "," : "", static_cast<double>(r.accepted[i]) / static_cast<double>(r.drafted[i]));
    }
    out += r.drafted[0] == 0 ? " nothing was drafted\n" : "\n";
    if (r.verified > 0) {
        out += printed("accepted %.3f of %llu drafts, %.3f by branches; %.2f tokens computed for each made\n",
                       static_cast<double>(r.right) / static_cast<double>(r.verified),
                       static_cast<unsigned long long>(r.verified),
                       static_cast<double>(r.by_branch) / static_cast<double>(r.verified), r.computed);
    }
    if (!r.facts.synthetic_acceptance)
        out += "the same texts: " + std::to_string(r.same) + " of " + std::to_string(r.outputs) + "\n";
    return out;
}

std::string json_of(const SpecResult& r, const config::EngineConfig& config, const SpecCase& asked) {
    const auto speed = [](const SpecSpeed& s) {
        return nlohmann::json{{"tokens_per_second", s.tokens_per_second},
                              {"step_seconds", s.step_seconds},
                              {"tokens_per_step", s.tokens_per_step}};
    };
    nlohmann::json out = {{"device", r.facts.device_name},
                          {"threads", r.facts.threads},
                          {"architecture", r.facts.model.architecture},
                          {"weight_dtype", r.facts.model.weight_dtype},
                          {"proposer", config.proposer->plugin},
                          {"num_speculative_tokens", config.engine.num_speculative_tokens},
                          {"max_paths", config.speculative.max_paths},
                          {"verified", r.verified},
                          {"accepted", r.right},
                          {"accepted_by_branch", r.by_branch},
                          {"computed_per_token", r.computed},
                          {"synthetic_acceptance", r.facts.synthetic_acceptance},
                          {"batch", asked.batch},
                          {"without", speed(r.without)},
                          {"with", speed(r.with)},
                          {"speed_up", r.speed_up()},
                          {"propose_share", r.propose_share},
                          {"draft_length", r.draft_length},
                          {"outputs", r.outputs},
                          {"same_outputs", r.same},
                          {"acceptance", nlohmann::json::array()}};
    for (size_t i = 0; i < r.drafted.size() && r.drafted[i] > 0; ++i)
        out["acceptance"].push_back(static_cast<double>(r.accepted[i]) / static_cast<double>(r.drafted[i]));
    return out.dump(2);
}

}  // namespace patchbay::bench
