#include "cli/commands.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <utility>

#include "base/clock.hpp"
#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "cli/admin_flags.hpp"
#include "cli/engine_flags.hpp"
#include "cli/flag_checks.hpp"
#include "cli/interruption.hpp"
#include "cli/plugin_dirs.hpp"
#include "cli/sampling_flags.hpp"
#include "cli/step_file_flags.hpp"
#include "cli/token_ids.hpp"
#include "config/load.hpp"
#include "engine/engine.hpp"
#include "engine/metrics/engine_metrics.hpp"
#include "engine/simulation.hpp"
#include "engine/trace/step_files.hpp"
#include "metrics/server.hpp"
#include "parallel/world.hpp"
#include "service/run_to_end.hpp"

namespace patchbay::cli {
namespace {

using nlohmann::ordered_json;

enum class OutputFormat { kText, kJsonLines };
enum class PromptKind { kText, kFile, kIds };

struct GenerateOptions {
    EngineFlags engine;
    std::vector<std::string> prompts, prompt_files, prompt_ids;
    std::function<std::vector<PromptKind>()> order; // in which the three were given; once the command line was read
    std::vector<int32_t> priorities;
    std::vector<uint32_t> deadlines_ms;
    std::string cache_salt;
    engine::StepFilePaths files;
    SamplingFlags flags;
    OutputFormat format = OutputFormat::kText;
    std::optional<uint32_t> max_tokens;
    bool stats = false;
    int metrics_port = -1;
    AdminFlags admin;
};

// The outputs of all prompts in order: the first unfinished one streams, later ones are kept until their turn.
class ConsolePrinter {
  public:
    explicit ConsolePrinter(std::vector<std::string> prompts)
        : prompts_(std::move(prompts)), text_(prompts_.size()), done_(prompts_.size()) {}

    void begin() { // prints the prompt whose turn it is
        if (turn_ >= prompts_.size()) return;
        if (prompts_.size() > 1) std::cout << "[" << turn_ + 1 << "] ";
        std::cout << prompts_[turn_] << text_[turn_] << std::flush;
    }

    void add(size_t i, const engine::RequestOutput& out) {
        if (i == turn_) std::cout << out.text << std::flush;
        else text_[i] += out.text;
        if (out.finish == engine::FinishReason::kNone) return;
        done_[i] = true;
        while (turn_ < prompts_.size() && done_[turn_]) {
            std::cout << '\n';
            turn_ += 1;
            begin();
        }
        std::cout << std::flush;
    }

  private:
    std::vector<std::string> prompts_, text_;
    std::vector<bool> done_;
    size_t turn_ = 0;
};

// Outputs as lines of JSON, an object each, when they have ended: all that the engine knows of them.
class JsonLines {
  public:
    explicit JsonLines(std::ostream& out) : out_(out) {}
    void add(size_t prompt, const engine::RequestOutput& delta); // writes it if it is the last one

  private:
    struct Whole {
        std::vector<text::TokenId> tokens;
        std::vector<engine::TokenLogprobs> logprobs, prompt_logprobs;
        std::string text;
    };
    std::ostream& out_;
    std::map<std::pair<size_t, uint32_t>, Whole> unfinished_; // by prompt and index
};

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

ordered_json json_of(const std::vector<engine::TokenLogprobs>& all) {
    ordered_json out = ordered_json::array();
    for (const engine::TokenLogprobs& token : all) {
        ordered_json top = ordered_json::array();
        for (const auto& [id, logprob] : token.top) top.push_back({id, logprob});
        out.push_back({{"logprob", token.sampled}, {"top", std::move(top)}});
    }
    return out;
}

void JsonLines::add(size_t prompt, const engine::RequestOutput& delta) {
    const auto at = unfinished_.try_emplace({prompt, delta.index}).first;
    Whole& whole = at->second;
    append(whole.tokens, delta.tokens);
    append(whole.logprobs, delta.logprobs);
    append(whole.prompt_logprobs, delta.prompt_logprobs);
    whole.text += delta.text;
    if (delta.finish == engine::FinishReason::kNone) return;
    ordered_json line{{"prompt", prompt},
                      {"index", delta.index},
                      {"text", whole.text},
                      {"token_ids", whole.tokens},
                      {"finish_reason", name_of(delta.finish)},
                      {"stop_reason", delta.stop_reason},
                      {"cached_tokens", delta.cached_tokens},
                      {"preemptions", delta.preemptions}};
    if (delta.cumulative_logprob) line["cumulative_logprob"] = *delta.cumulative_logprob;
    if (delta.beam_score) line["beam_score"] = *delta.beam_score;
    if (!whole.logprobs.empty()) line["logprobs"] = json_of(whole.logprobs);
    if (!whole.prompt_logprobs.empty()) line["prompt_logprobs"] = json_of(whole.prompt_logprobs);
    if (delta.logits)
        line["logits"] = {{"entropy", delta.logits->entropy},
                          {"max_logit", delta.logits->max_logit},
                          {"first_share", delta.logits->first_share}};
    // A stop string can cut a character.
    out_ << line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << std::endl;
    unfinished_.erase(at);
}

struct Prompt {
    std::string text;
    std::vector<text::TokenId> ids{}; // given in place of a text
};

Result<Prompt> prompt_of(const GenerateOptions& o, PromptKind kind, size_t i) {
    switch (kind) {
        case PromptKind::kText: return Prompt{o.prompts[i]};
        case PromptKind::kFile: {
            PB_TRY(std::string text, read_file("--prompt-file", o.prompt_files[i]));
            return Prompt{std::move(text)};
        }
        case PromptKind::kIds: break;
    }
    PB_TRY(auto ids, read_token_ids(o.prompt_ids[i]));
    return Prompt{"", std::move(ids)};
}

// In the order in which they were given.
Result<std::vector<Prompt>> prompts_of(const GenerateOptions& o) {
    std::vector<Prompt> prompts;
    std::map<PromptKind, size_t> taken;
    for (const PromptKind kind : o.order()) {
        PB_TRY(Prompt prompt, prompt_of(o, kind, taken[kind]++));
        prompts.push_back(std::move(prompt));
    }
    return prompts;
}

// Texts become ids, and ids texts, which are shown.
Result<> tokenize(std::vector<Prompt>& prompts, const text::Tokenizer* tokenizer) {
    for (Prompt& prompt : prompts) {
        if (!tokenizer && prompt.ids.empty())
            return unsupported("the model has no tokenizer for a prompt's text: name its folder or file by "
                               "--tokenizer, or give --prompt-ids");
        if (prompt.ids.empty()) prompt.ids = tokenizer->encode(prompt.text);
        else if (tokenizer) prompt.text = tokenizer->decode(prompt.ids);
    }
    return {};
}

// Where the flag is not given: a page of text, or what the model has room for.
uint32_t default_max_tokens(size_t prompt_tokens, uint32_t max_model_len) {
    constexpr size_t kPage = 128;
    const size_t room = max_model_len - std::min<size_t>(prompt_tokens, max_model_len);
    return static_cast<uint32_t>(std::clamp<size_t>(room, 1, kPage)); // 1: the engine says that nothing fits
}

// What one flag alone cannot tell.
void check_usage(const GenerateOptions& o) {
    const size_t prompts = o.prompts.size() + o.prompt_files.size() + o.prompt_ids.size();
    if (prompts == 0)
        throw CLI::ValidationError("no prompt", "give --prompt TEXT, --prompt-file FILE or --prompt-ids IDS");
    if (!o.priorities.empty() && o.priorities.size() != prompts)
        throw CLI::ValidationError("--priority", "given " + std::to_string(o.priorities.size()) + " times for " +
                                                     std::to_string(prompts) + " prompts");
    if (!o.deadlines_ms.empty() && o.deadlines_ms.size() != prompts)
        throw CLI::ValidationError("--deadline-ms", "given " + std::to_string(o.deadlines_ms.size()) + " times for " +
                                                        std::to_string(prompts) + " prompts");
    check(o.admin);
}

void print_stats(const std::vector<engine::StepReport>& steps, const engine::EngineFacts& facts) {
    uint64_t tokens = 0, made = 0, drafted = 0, accepted = 0, hits = 0;
    std::array<uint64_t, engine::DraftReport::kPositions> drafted_at{}, accepted_at{};
    for (const engine::StepReport& r : steps) {
        tokens += r.work.scheduled_tokens;
        made += r.work.sampled_tokens;
        drafted += r.drafts.drafted_tokens;
        accepted += r.drafts.accepted_tokens;
        hits += r.kv.prefix_hit_tokens;
        for (size_t i = 0; i < drafted_at.size(); ++i) {
            drafted_at[i] += r.drafts.drafted_at[i];
            accepted_at[i] += r.drafts.accepted_at[i];
        }
    }
    const double seconds = static_cast<double>(steps.back().end_ns - steps.front().start_ns) * 1e-9;
    std::fprintf(stderr, "\n%s, %u threads, %s %s\n", printable(facts.device_name).c_str(), facts.threads,
                 printable(facts.model.architecture).c_str(), facts.model.weight_dtype.c_str());
    std::fprintf(stderr,
                 "%llu tokens in %.3f s: %.1f tokens/s; %zu steps, %llu tokens computed, %llu from the prefix cache\n",
                 static_cast<unsigned long long>(made), seconds, static_cast<double>(made) / seconds, steps.size(),
                 static_cast<unsigned long long>(tokens), static_cast<unsigned long long>(hits));
    if (drafted == 0) return;
    std::string by_position;
    for (size_t i = 0; i < drafted_at.size() && drafted_at[i] > 0; ++i)
        by_position +=
            (i ? ", " : "") + std::to_string((100 * accepted_at[i] + drafted_at[i] / 2) / drafted_at[i]) + " %";
    std::fprintf(stderr, "drafts: %llu verified, %llu accepted (%.1f %%); by position %s\n",
                 static_cast<unsigned long long>(drafted), static_cast<unsigned long long>(accepted),
                 100.0 * static_cast<double>(accepted) / static_cast<double>(drafted), by_position.c_str());
}

Result<> generate(const GenerateOptions& o, std::vector<Prompt> prompts, engine::SamplingParams sampling,
                  const config::Loaded& loaded, const host::Registry& registry) {
    PB_TRY(const auto time, engine::clock_for(loaded.config, registry));
    Clock& clock = *time;
    metrics::Metrics all;
    engine::PluginMetrics plugin_metrics(all);
    parallel::World world;
    PB_TRY(const auto engine, engine::Engine::create(loaded.config, registry, clock, &plugin_metrics, &world));
    const auto tokenizer = engine->tokenizer();
    PB_CHECK(tokenize(prompts, tokenizer.get()));
    if (!tokenizer && o.format == OutputFormat::kText)
        return unsupported("without a tokenizer there is no text to print: give --output-format jsonl for token ids");

    engine::EngineMetrics metrics(all, engine->facts(), PATCHBAY_VERSION);
    engine->observe(metrics);
    std::unique_ptr<metrics::Server> server;
    if (o.metrics_port >= 0) {
        server = std::make_unique<metrics::Server>(static_cast<uint16_t>(o.metrics_port), all);
        std::cerr << "metrics: http://127.0.0.1:" << server->port() << "/metrics\n";
    }

    PB_CHECK(engine->files().write(o.files));
    PB_TRY(const auto control,
           start_control(o.admin, o.engine.plugin_dirs, loaded.config, "generate", [] {}, *engine, all));
    if (control && o.admin.named()) std::cerr << "admin address: " << control->address().text() << '\n';
    std::vector<std::string> shown; // an output each
    for (const Prompt& prompt : prompts) shown.insert(shown.end(), sampling.n, prompt.text);
    ConsolePrinter screen(std::move(shown));
    JsonLines lines(std::cout);
    if (sampling.dry_multiplier > 0 && tokenizer)
        sampling.dry_breakers = tokens_with(*tokenizer, engine->facts().model.vocab_size, o.flags.dry_breakers);
    std::vector<engine::RequestId> ids;
    std::optional<Failure> failed;
    for (size_t i = 0; i < prompts.size(); ++i) {
        engine::Request request;
        request.prompt = prompts[i].ids;
        request.sampling = sampling;
        request.cache_salt = o.cache_salt;
        request.sampling.max_tokens =
            o.max_tokens.value_or(default_max_tokens(request.prompt.size(), engine->facts().max_model_len));
        if (!o.priorities.empty()) request.priority = o.priorities[i];
        request.arrival_ns = clock.now_ns();
        if (!o.deadlines_ms.empty() && o.deadlines_ms[i] > 0)
            request.deadline_ns = request.arrival_ns + uint64_t{1'000'000} * o.deadlines_ms[i];
        request.on_output = [&, i](const engine::RequestOutput& out) {
            metrics.on_output(out);
            if (out.finish == engine::FinishReason::kError) failed = fail(out.error_code, out.stop_reason);
            if (o.format == OutputFormat::kJsonLines) lines.add(i, out);
            else screen.add(i * sampling.n + out.index, out);
        };
        const auto count = static_cast<uint32_t>(request.prompt.size());
        const uint64_t arrival = request.arrival_ns;
        auto id = engine->add_request(std::move(request));
        if (!id) return prefixed("prompt " + std::to_string(i + 1), id.failure());
        metrics.on_request(*id, arrival, count, sampling.n);
        ids.push_back(*id);
    }
    catch_interrupts();
    if (o.format == OutputFormat::kText) screen.begin();

    std::vector<engine::StepReport> steps;
    const auto between_steps = [&] {
        if (control) control->between_steps();
        if (interrupted())
            for (const engine::RequestId id : ids) engine->abort(id);
        return true;
    };
    const auto note = [&](const engine::StepReport& report) {
        if (o.stats) steps.push_back(report);
    };
    PB_CHECK(service::run_to_end(*engine, {between_steps, note}));
    PB_CHECK(engine->files().close());
    if (failed) return *failed;
    if (o.stats && !steps.empty()) print_stats(steps, engine->facts());
    if (interrupted()) return fail(StatusCode::kCancelled, "interrupted");
    return {};
}

Result<> load_and_generate(const GenerateOptions& o) {
    PB_TRY(auto prompts, in_one_line(prompts_of(o)));
    PB_TRY(engine::SamplingParams sampling, in_one_line(read_sampling(o.flags)));
    PB_TRY(const auto registry, registry_of(o.engine.plugin_dirs));
    PB_TRY(const auto loaded, load_engine(o.engine, registry));
    print_warnings(loaded);
    return in_one_line(generate(o, std::move(prompts), std::move(sampling), loaded, registry));
}

}  // namespace

void add_generate_command(Commands& commands) {
    CLI::App* app = commands.app.add_subcommand("generate", "Continue prompts with a model; streams the text");
    app->footer(
        "Examples:\n"
        "  patchbay generate --model models/demo-target --prompt \"Once upon a time\" --max-tokens 100\n"
        "  patchbay generate --model DIR --prompt \"One\" --prompt \"Two\" --priority 1 --priority 0 --scheduler "
        "priority\n"
        "  patchbay generate --model DIR --prompt \"Is it so? \" --choice yes,no\n"
        "  patchbay generate --model DIR --prompt \"To be\" --temperature 0.8 --top-p 0.95 --seed 7 --metrics-port "
        "8001");
    auto o = std::make_shared<GenerateOptions>();
    add_engine_flags(*app, std::shared_ptr<EngineFlags>(o, &o->engine));
    const CLI::Option* text = app->add_option("--prompt", o->prompts, "text to continue; may be given several times")
                                  ->allow_extra_args(false);
    const CLI::Option* file =
        app->add_option("--prompt-file", o->prompt_files, "file whose text is a prompt; may be given several times")
            ->allow_extra_args(false);
    const CLI::Option* ids =
        app->add_option("--prompt-ids", o->prompt_ids,
                        "a prompt as token ids, such as 15,27,3; may be given several times")
            ->allow_extra_args(false)
            ->check(token_ids());
    o->order = [app, kinds = std::map<const CLI::Option*, PromptKind>{
                         {text, PromptKind::kText}, {file, PromptKind::kFile}, {ids, PromptKind::kIds}}] {
        std::vector<PromptKind> out;
        for (const CLI::Option* given : app->parse_order())
            if (const auto at = kinds.find(given); at != kinds.end()) out.push_back(at->second);
        return out;
    };
    app->add_option("--priority", o->priorities, "priority of each prompt in the order given, lower first")
        ->allow_extra_args(false)
        ->transform(within(std::numeric_limits<int32_t>::lowest()));
    app->add_option("--deadline-ms", o->deadlines_ms,
                    "for --scheduler edf: deadline of each prompt in the order given, after the start; 0: none")
        ->allow_extra_args(false)
        ->transform(within<uint32_t>(0));
    app->add_option("--max-tokens", o->max_tokens, "output tokens at most (default: 128, or fewer if fewer fit)")
        ->transform(within<uint32_t>(1));
    add_sampling_flags(*app, std::shared_ptr<SamplingFlags>(o, &o->flags));
    app->add_option("--cache-salt", o->cache_salt, "prompts share cached KV blocks only with prompts of the same salt");
    add_step_file_flags(*app, std::shared_ptr<engine::StepFilePaths>(o, &o->files));
    add_choice<OutputFormat>(*app, "--output-format", o->format,
                             "text as it comes, or jsonl: one object per finished output",
                             {{"text", OutputFormat::kText}, {"jsonl", OutputFormat::kJsonLines}});
    app->add_option("--metrics-port", o->metrics_port,
                    "serve /metrics on 127.0.0.1:PORT while working (0: any free port)")
        ->transform(within(0, 65'535));
    add_admin_flags(*app, std::shared_ptr<AdminFlags>(o, &o->admin));
    app->add_flag("--stats", o->stats, "print speeds to standard error at the end");
    set_action(commands, app, o,
               {.run = load_and_generate,
                .check = check_usage,
                .parallel = [](const GenerateOptions& given) { return parallel_of(given.engine); }});
}

}  // namespace patchbay::cli
