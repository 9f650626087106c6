#include "cli/sampling_flags.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "cli/flag_checks.hpp"
#include "cli/stage_flags.hpp"

namespace patchbay::cli {
namespace {

using S = engine::SamplingParams;

void add_bias(S& s, const std::string& item) {
    std::istringstream in(item);
    int32_t token = 0;
    char colon = 0;
    float bias = 0;
    if (!(in >> token >> colon >> bias) || colon != ':' || in.peek() != EOF || token < 0)
        throw CLI::ValidationError("--logit-bias", "got '" + item + "', expected TOKEN:BIAS such as 50:-2.5");
    s.logit_bias[token] = bias;
}

void add_draws(CLI::App& app, const std::shared_ptr<SamplingFlags>& flags) {
    S& s = flags->sampling;
    app.add_option("--top-k", s.top_k, "sample among the k most likely (0: off)")->check(within<int32_t>(0));
    const auto ranged = [&](const char* flag, float S::*field, const char* description) {
        const auto& all = engine::kSamplingRanges;
        const auto range = std::find_if(all.begin(), all.end(), [&](const auto& r) { return r.field == field; });
        return app.add_option(flag, s.*field, description)->check(within<float>(range->low, range->high));
    };
    ranged("--length-penalty", &S::length_penalty,
           "beam search orders by log-probability / tokens ^ penalty: above 0 for longer ones")
        ->capture_default_str();
    ranged("--temperature", &S::temperature, "0: greedy")->capture_default_str();
    ranged("--top-p", &S::top_p, "sample among the most likely that make up p (1: off)");
    ranged("--min-p", &S::min_p, "sample among those at least min-p times as likely as the first (0: off)");
    ranged("--repetition-penalty", &S::repetition_penalty, "above 1: less of what prompt and output have (1: off)");
    ranged("--presence-penalty", &S::presence_penalty, "above 0: less of what the output has (0: off)");
    ranged("--frequency-penalty", &S::frequency_penalty, "the same, for each time it appeared (0: off)");
    add_stage_flags(app, s, flags->dry_breakers);
    app.add_option_function<std::vector<std::string>>(
           "--logit-bias",
           [flags](const std::vector<std::string>& items) {
               for (const auto& item : items) add_bias(flags->sampling, item);
           },
           "TOKEN:BIAS, may be given several times")
        ->allow_extra_args(false);
    app.add_option("--bad-word", s.bad_words, "text that the output does not have; may be given several times")
        ->allow_extra_args(false);
    app.add_option_function<std::vector<int32_t>>(
           "--allowed-token-ids", [flags](const std::vector<int32_t>& ids) { flags->sampling.allowed_token_ids = ids; },
           "tokens that may be sampled, a list")
        ->delimiter(',')
        ->check(within<int32_t>(0));
    app.add_option("--seed", s.seed, "seed of every prompt's draws")->check(within<uint64_t>(0));
}

void add_ends(CLI::App& app, S& s) {
    app.add_option("--min-tokens", s.min_tokens, "output tokens before any stop")->check(within<uint32_t>(0));
    app.add_option("--stop", s.stop, "text that ends the output; may be given several times")->allow_extra_args(false);
    app.add_flag("--include-stop", s.include_stop_str_in_output, "keep the stop text");
    app.add_flag("--ignore-eos", s.ignore_eos, "go on after the end-of-text token");
    app.add_option("--repetition-max-pattern", s.repetition_detection.max_pattern_size,
                   "end an output that repeats a pattern of up to so many tokens (0: off)");
    app.add_option("--repetition-min-pattern", s.repetition_detection.min_pattern_size, "of at least so many tokens")
        ->capture_default_str();
    app.add_option("--repetition-min-count", s.repetition_detection.min_count, "so many times")->capture_default_str();
}

void add_several(CLI::App& app, S& s) {
    const auto most = within<uint32_t>(1, engine::kMaxOutputs);
    app.add_option("--n", s.n, "outputs of each prompt, with draws of their own (needs a temperature above 0)")
        ->check(most);
    app.add_option("--best-of", s.best_of, "outputs that are made, of which the n most likely are shown")->check(most);
    app.add_option("--beam-width", s.beam_width, "beam search with so many beams, whose n best are shown")->check(most);
    app.add_option("--early-stopping", s.early_stopping, "when beam search ends: false, true or never")
        ->transform(CLI::CheckedTransformer(std::map<std::string, engine::EarlyStopping>{
            {"false", engine::EarlyStopping::kNo},
            {"true", engine::EarlyStopping::kYes},
            {"never", engine::EarlyStopping::kNever}}));
}

void add_reports(CLI::App& app, S& s) {
    app.add_option("--logprobs", s.logprobs,
                   "log-probabilities of each token and of so many of the highest (-1: all), in --output-format jsonl")
        ->check(within<int32_t>(-1));
    app.add_flag("--logits-statistics", s.logits_statistics,
                 "entropy, maximum and the first token's share of the logits, in --output-format jsonl and metrics");
    app.add_option("--prompt-logprobs", s.prompt_logprobs, "those of the prompt's tokens, likewise")
        ->check(within<int32_t>(-1));
}

void add_structure(CLI::App& app, const std::shared_ptr<SamplingFlags>& flags) {
    app.add_option("--json-schema", flags->schema_file, "the output is JSON that the schema in this file allows");
    app.add_option("--grammar", flags->grammar_file, "the output is a text of the grammar in this file, GBNF or Lark");
    app.add_option("--structural-tag", flags->structural_tag_file,
                   "parts of the output have a form, from triggers on, as the JSON in this file says");
    const auto structure = [flags]() -> grammar::StructuredOutputs& {
        auto& asked = flags->sampling.structured_outputs;
        return asked ? *asked : asked.emplace();
    };
    app.add_option_function<std::string>(
        "--regex", [=](const std::string& pattern) { structure().regex = pattern; },
        "the output matches this regular expression");
    app.add_option_function<std::vector<std::string>>(
           "--choice", [=](const std::vector<std::string>& texts) { structure().choice = texts; },
           "the output is one of these texts, a list")
        ->delimiter(',');
    app.add_flag_callback("--json-object", [=] { structure().json_object = true; }, "the output is a JSON object");
    app.add_flag_callback("--disable-any-whitespace", [=] { structure().disable_any_whitespace = true; },
                          "no white space between the parts of JSON");
}

}  // namespace

void add_sampling_flags(CLI::App& app, const std::shared_ptr<SamplingFlags>& flags) {
    add_draws(app, flags);
    add_ends(app, flags->sampling);
    add_several(app, flags->sampling);
    add_reports(app, flags->sampling);
    add_structure(app, flags);
}

Result<engine::SamplingParams> read_sampling(const SamplingFlags& flags) {
    S out = flags.sampling;
    auto& asked = out.structured_outputs;
    if (!flags.schema_file.empty()) {
        if (!asked) asked.emplace();
        PB_TRY(asked->json, read_file("--json-schema", flags.schema_file));
    }
    if (!flags.grammar_file.empty()) {
        if (!asked) asked.emplace();
        PB_TRY(asked->grammar, read_file("--grammar", flags.grammar_file));
    }
    if (!flags.structural_tag_file.empty()) {
        if (!asked) asked.emplace();
        PB_TRY(asked->structural_tag, read_file("--structural-tag", flags.structural_tag_file));
    }
    return out;
}

Result<std::string> read_file(const char* flag, const std::string& name) {
    std::ifstream in(name, std::ios::binary);
    std::string text;
    char part[1 << 14];
    while (in && (in.read(part, sizeof part) || in.gcount() > 0)) text.append(part, static_cast<size_t>(in.gcount()));
    if (!in.is_open() || in.bad()) return fail(flag + (" " + name) + ": " + std::strerror(errno));
    return text;
}

}  // namespace patchbay::cli
