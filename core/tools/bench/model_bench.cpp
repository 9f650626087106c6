#include "bench/model_bench.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <utility>

#include "bench/times.hpp"
#include "engine/simulation.hpp"
#include "parallel/launch.hpp"
#include "parallel/world.hpp"
#include "patchbay/sdk/philox.hpp"
#include "service/run_to_end.hpp"

namespace patchbay::bench {
namespace {

constexpr uint32_t kMaxStepTokens = 8192; // of a batch's prompts, unless one prompt's step is to have more

void begin_peak() { std::ofstream("/proc/self/clear_refs") << "5"; } // see proc(5): resets VmHWM

ProcessMemory process_memory() {
    ProcessMemory out;
    std::ifstream in("/proc/self/status");
    for (std::string line; std::getline(in, line);) { // "VmRSS:   12345 kB"
        uint64_t* const to = line.starts_with("VmRSS:") ? &out.now : line.starts_with("VmHWM:") ? &out.peak : nullptr;
        const size_t digit = line.find_first_of("0123456789");
        if (!to || digit == line.npos) continue;
        std::from_chars(line.data() + digit, line.data() + line.size(), *to);
        *to *= 1024;
    }
    return out;
}

double median(std::vector<double> values) { return at_share(std::move(values), 0.5); }

double seconds_of(const engine::StepReport& r) { return static_cast<double>(r.end_ns - r.start_ns) * 1e-9; }

// A step takes no more of a prompt than it would while serving. Yet all prompts of a case go through few steps, so that
// its requests decode together.
void size_engine(config::EngineConfig& c, const std::vector<Case>& cases) {
    config::EngineSettings& e = c.engine;
    const uint32_t chunk = e.max_num_batched_tokens, asked = e.long_prefill_token_threshold;
    e.long_prefill_token_threshold = asked > 0 ? std::min(asked, chunk) : chunk;
    e.enable_prefix_caching = false; // random prompts, and no time for hashing them
    e.max_model_len = e.num_blocks = e.max_num_batched_tokens = e.max_num_seqs = 1;
    for (const Case& one : cases) {
        const uint32_t length = one.prompt + one.output;
        e.max_model_len = std::max(e.max_model_len, length);
        e.max_num_seqs = std::max(e.max_num_seqs, one.batch);
        const uint64_t all = uint64_t{one.prompt} * one.batch;
        const uint32_t prompts = one.batch == 1 ? 0 : static_cast<uint32_t>(std::min<uint64_t>(all, kMaxStepTokens));
        e.max_num_batched_tokens =
            std::max({e.max_num_batched_tokens, std::min(one.prompt, chunk), prompts, one.batch});
        e.num_blocks = std::max(e.num_blocks, one.batch * ((length + e.block_size - 1) / e.block_size + 1));
    }
    e.watermark = 0;
    c.model.tokenizer = "none";
}

// How many groups a model has is known when it is loaded.
Result<std::unique_ptr<engine::Engine>> engine_with_room(config::EngineConfig config, const host::Registry& registry,
                                                         Clock& clock, parallel::World& world) {
    const uint32_t length = std::exchange(config.engine.max_model_len, 0);
    PB_TRY(auto engine, engine::Engine::create(config, registry, clock, nullptr, &world));
    const uint32_t groups = engine->facts().kv.groups + engine->facts().kv.state_groups;
    if (groups <= 1 && length <= engine->facts().max_model_len) return engine;
    engine.reset();
    config.engine.max_model_len = length;
    config.engine.num_blocks *= groups;
    return engine::Engine::create(config, registry, clock, nullptr, &world);
}

// Steps of `batch` equal requests from the first to the last.
Result<std::vector<engine::StepReport>> serve(engine::Engine& e, uint32_t batch, uint32_t prompt, uint32_t output) {
    std::optional<Failure> failed;
    for (uint32_t i = 0; i < batch; ++i) {
        engine::Request request;
        for (uint32_t t = 0; t < prompt; ++t)
            request.prompt.push_back(
                static_cast<int32_t>(draw(i, t, Stream::kTest, 0)[0] % e.facts().model.vocab_size));
        request.sampling.temperature = 0;
        request.sampling.ignore_eos = true;
        request.sampling.max_tokens = output;
        request.on_output = [&](const engine::RequestOutput& out) {
            if (out.finish == engine::FinishReason::kError) failed = fail(out.error_code, out.stop_reason);
        };
        PB_CHECK([&]() -> Result<> {
            const auto id = e.add_request(std::move(request));
            if (!id) return id.failure();
            return {};
        }());
    }
    std::vector<engine::StepReport> steps;
    PB_CHECK(service::run_to_end(e, {.go_on = {}, .on_step = [&](engine::StepReport& r) { steps.push_back(r); }}));
    if (failed) return *failed;
    return steps;
}

struct Work { // of one forward pass
    double bytes, flop;
};

struct NewTokens { // of a sequence in one pass
    double before, count; // tokens whose KV is there before

    // Keys that they see, added up; a token sees itself and at most the window's tokens. 0: all.
    double keys_seen(double window) const {
        const double all = window > 0 ? std::clamp(window - before, 0.0, count) : count; // those that see all
        return all * (before + (all + 1) / 2) + (count - all) * window;
    }
    // Keys that any of them sees.
    double keys_read(double window) const {
        const double all = before + count;
        return window > 0 ? std::min(all, window + count - 1) : all;
    }
};

// `sequences` equal ones, with `rows` that give logits in all; each reads its KV once. Of all ranks that share the
// cores whose limits were measured; a simulated device is that of one.
Work work_of(const engine::EngineFacts& f, double sequences, const NewTokens& tokens, double rows) {
    const runner::ModelWork& w = f.model.work;
    const double all = sequences * tokens.count;
    const double ranks = f.device_computes ? parallel::ranks_on_these_cores(f.tensor_parallel_size) : 1;
    double keys_read = 0, attention_flop = 0;
    for (const uint32_t window : f.kv.windows) keys_read += tokens.keys_read(window);
    for (const runner::AttentionWork& a : w.attention)
        attention_flop += tokens.keys_seen(a.window) * static_cast<double>(a.flop);
    const double kv_bytes = keys_read * static_cast<double>(f.kv.page_bytes) / f.kv.block_size;
    return {ranks * (w.bytes_of_pass(all) + sequences * kv_bytes),
            ranks * (2 * (all * w.params_of_token() + rows * static_cast<double>(w.head_params)) +
                     sequences * attention_flop)};
}

// Of passes after one another, each of which takes what the slower limit allows it.
void set_limit(Speed& speed, const std::vector<Work>& passes, const Machine& machine, const std::string& matmul) {
    const double multiply = machine[matmul];
    double bound[2] = {}; // seconds of the passes that memory, and that multiplications bound
    Machine::Read slowest{0, "memory_read"};
    for (const Work& work : passes) {
        const Machine::Read memory = machine.read_of(work.bytes);
        const double compute = multiply > 0 ? work.flop / multiply : 0;
        bound[compute > memory.seconds] += std::max(memory.seconds, compute);
        if (memory.seconds > slowest.seconds) slowest = memory;
    }
    speed.limit_seconds = bound[0] + bound[1];
    speed.bound_by = bound[0] >= bound[1] ? slowest.limit : matmul;
}

// A prompt's steps, each of which sees the tokens of those before it.
std::vector<Work> work_of_prefill(const engine::EngineFacts& f, const std::vector<uint32_t>& steps) {
    std::vector<Work> out;
    double before = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
        const double tokens = steps[i];
        out.push_back(work_of(f, 1, {before, tokens}, i + 1 == steps.size()));
        before += tokens;
    }
    return out;
}

// Limits drift while a bench runs: what holds in its middle.
Machine between(const Machine& before, const Machine& after) {
    Machine out = before;
    for (Limit& limit : out.limits) limit.value = (limit.value + after[limit.name]) / 2;
    return out;
}

// Which limit multiplications with such weights have: "float32", "bfloat16", "int4 g32".
std::string matmul_limit(const std::string& weights, const Machine& machine) {
    if (weights == "float32") return "matmul_f32";
    for (const auto& [kind, limit] : {std::pair("int8", "matmul_i8"), {"int4", "matmul_i4"}, {"fp8", "matmul_fp8"}})
        if (weights.starts_with(kind) && machine[limit] > 0) return limit;
    return "matmul_bf16"; // what weights without one of their own are widened to
}

Result<CaseResult> run_case(engine::Engine& e, const Case& asked, uint32_t repeats,
                            const std::function<void(const std::string&)>& progress) {
    std::vector<double> prefills, steps, overheads;
    double replayed = 0;
    std::vector<uint32_t> prefill_steps;
    const std::string name = "batch " + std::to_string(asked.batch) + ", prompt " + std::to_string(asked.prompt);
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        progress(name + ", repeat " + std::to_string(repeat + 1) + " of " + std::to_string(repeats));
        PB_TRY(const auto alone, serve(e, 1, asked.prompt, 1));
        double prefill = 0;
        prefill_steps.clear();
        for (const engine::StepReport& r : alone) {
            prefill += seconds_of(r);
            if (r.work.prefill_tokens > 0) prefill_steps.push_back(r.work.prefill_tokens);
        }
        prefills.push_back(prefill);
        PB_TRY(const auto all, serve(e, asked.batch, asked.prompt, asked.output));
        for (const engine::StepReport& r : all) {
            if (r.work.prefill_tokens > 0 || r.work.decode_tokens != asked.batch) continue;
            steps.push_back(seconds_of(r));
            replayed += r.graph.replayed;
            const uint64_t inside = r.calls.forward.model_forward + r.calls.forward.device_launch + r.calls.sample_ns;
            if (!r.sync_reason.empty()) overheads.push_back(seconds_of(r) - 1e-9 * static_cast<double>(inside));
        }
    }
    CaseResult out{asked, {}, std::move(prefill_steps), {}, median(overheads)};
    out.prefill.step_seconds = median(prefills);
    out.prefill.tokens = asked.prompt;
    out.decode.step_seconds = median(steps);
    out.decode.tokens = steps.empty() ? 0 : asked.batch;
    if (!steps.empty()) {
        const auto count = static_cast<double>(steps.size());
        out.replayed = replayed / count;
        out.in_flight = 1 - static_cast<double>(overheads.size()) / count;
    }
    return out;
}

}  // namespace

Result<ModelBench> bench_model(config::EngineConfig config, const host::Registry& registry,
                               const std::vector<Case>& cases, uint32_t repeats,
                               const std::function<void(const std::string&)>& progress) {
    size_engine(config, cases);
    progress("measuring the machine");
    PB_TRY(Machine before, measure_machine(registry, config.device, config.engine.threads));
    progress("loading the model");
    PB_TRY(const auto clock, engine::clock_for(config, registry));
    parallel::World world;
    begin_peak();
    PB_TRY(const auto engine, engine_with_room(config, registry, *clock, world));
    const ProcessMemory memory = process_memory();
    progress("warming up");
    PB_CHECK([&]() -> Result<> { // touches every page of weights and KV
        const auto done = serve(*engine, config.engine.max_num_seqs, std::min(16u, config.engine.max_model_len - 1), 1);
        if (!done) return done.failure();
        return {};
    }());
    ModelBench out{engine->facts(), std::move(before), {}, {}, memory};
    for (const Case& one : cases) {
        PB_TRY(CaseResult result, run_case(*engine, one, repeats, progress));
        out.cases.push_back(std::move(result));
    }
    progress("measuring the machine again");
    PB_TRY(out.after, measure_machine(registry, config.device, config.engine.threads));
    const Machine machine = between(out.before, out.after);
    const std::string matmul = matmul_limit(out.facts.model.weight_dtype, machine);
    for (CaseResult& c : out.cases) {
        const double context = c.asked.prompt + c.asked.output / 2.0, batch = c.asked.batch;
        set_limit(c.prefill, work_of_prefill(out.facts, c.prefill_steps), machine, matmul);
        set_limit(c.decode, {work_of(out.facts, batch, {context - 1, 1}, batch)}, machine, matmul);
    }
    return out;
}

}  // namespace patchbay::bench
