#include "engine/request/parameters.hpp"
#include "engine/request/sampling_params.hpp"

#include <charconv>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace patchbay::engine {
namespace {

using P = SamplingParams;
using Wire = pb_sampling_params;
using Row = ParameterRow<P>;
constexpr bool kShown = true; // the default, in a flag's help

std::vector<Row> draw_rows() {
    return {
        {&P::temperature, {.name = "temperature", .flag = {"--temperature", "0: greedy", kShown},
                           .key_help = "0: greedy", .sampler = &Wire::temperature, .recommended = true}},
        {&P::top_k, {.name = "top_k", .low = 0, .flag = {"--top-k", "sample among the k most likely (0: off)"},
                     .key_help = "sample among the k most likely; 0: off", .sampler = &Wire::top_k,
                     .refused_with_beams = true, .recommended = true}},
        {&P::top_p, {.name = "top_p", .flag = {"--top-p", "sample among the most likely that make up p (1: off)"},
                     .key_help = "sample among the most likely that make up p; 1: off", .sampler = &Wire::top_p,
                     .refused_with_beams = true, .recommended = true}},
        {&P::min_p, {.name = "min_p",
                     .flag = {"--min-p", "sample among those at least min-p times as likely as the first (0: off)"},
                     .key_help = "sample among those at least min_p times as likely as the first; 0: off",
                     .sampler = &Wire::min_p, .refused_with_beams = true, .recommended = true}},
        {&P::repetition_penalty,
         {.name = "repetition_penalty",
          .flag = {"--repetition-penalty", "above 1: penalise tokens that occur in prompt or output (1: off)"},
          .key_help = "above 1: penalise tokens that occur in prompt or output", .sampler = &Wire::repetition_penalty,
          .refused_with_beams = true, .recommended = true}},
        {&P::presence_penalty,
         {.name = "presence_penalty",
          .flag = {"--presence-penalty", "above 0: penalise tokens that occur in the output (0: off)"},
          .key_help = "above 0: penalise tokens that occur in the output", .sampler = &Wire::presence_penalty,
          .refused_with_beams = true}},
        {&P::frequency_penalty,
         {.name = "frequency_penalty",
          .flag = {"--frequency-penalty", "the same, once per occurrence (0: off)"},
          .key_help = "the same, once per occurrence", .sampler = &Wire::frequency_penalty,
          .refused_with_beams = true}},
        {&P::seed, {.name = "seed", .flag = {"--seed", "seed of the random draws for each prompt"}}},
    };
}

std::vector<Row> stage_rows() {
    return {
        {&P::top_n_sigma,
         {.name = "top_n_sigma",
          .flag = {"--top-n-sigma", "sample among logits at most this many standard deviations below the top", kShown},
          .key_help = "sample among logits at most this many standard deviations below the top; 0: off",
          .sampler = &Wire::top_n_sigma, .refused_with_beams = true}},
        {&P::typical_p,
         {.name = "typical_p",
          .flag = {"--typical", "sample among those of typical surprisal that make up p (1: off)", kShown},
          .key_help = "sample among those of typical surprisal that make up p; 1: off", .sampler = &Wire::typical_p,
          .refused_with_beams = true}},
        {&P::xtc_probability,
         {.name = "xtc_probability",
          .flag = {"--xtc-probability", "chance that all but the last of the top choices are excluded", kShown},
          .key_help = "chance that all but the last of the top choices are excluded; 0: off",
          .sampler = &Wire::xtc_probability, .refused_with_beams = true}},
        {&P::xtc_threshold,
         {.name = "xtc_threshold",
          .flag = {"--xtc-threshold", "minimum probability of a top choice", kShown},
          .key_help = "minimum probability of a top choice", .sampler = &Wire::xtc_threshold}},
        {&P::dry_multiplier,
         {.name = "dry_multiplier",
          .flag = {"--dry-multiplier", "above 0: penalise tokens that would continue a repetition (0: off)", kShown},
          .key_help = "above 0: penalise tokens that would continue a repetition", .sampler = &Wire::dry_multiplier,
          .refused_with_beams = true}},
        {&P::dry_base,
         {.name = "dry_base",
          .flag = {"--dry-base", "the penalty's factor for each further repeated token", kShown},
          .key_help = "the penalty's factor for each further repeated token", .sampler = &Wire::dry_base}},
        {&P::dry_allowed_length,
         {.name = "dry_allowed_length", .low = 0, .unit = "tokens",
          .flag = {"--dry-allowed-length", "tokens that may repeat without a penalty", kShown},
          .key_help = "that may repeat", .sampler = &Wire::dry_allowed_length}},
        {&P::dry_range,
         {.name = "dry_range",
          .flag = {"--dry-penalty-last-n", "tokens of prompt and output looked back at (0: all)"},
          .sampler = &Wire::dry_range}},
        {&P::dry_breakers,
         {.name = "dry_breakers", .json = InJson::kNo,
          .flag = {"--dry-sequence-breaker", "text that no repetition reaches across; may be given several times "
                                             "(default: newline : \" *)"}}},
        {&P::mirostat,
         {.name = "mirostat", .low = 0, .high = 2, .only = {0, 2},
          .flag = {"--mirostat", "2: limit the surprisal of each token so that the output's stays near tau (0: off)"},
          .key_help = "2: limit the surprisal of each token so that the output's stays near tau; 0: off",
          .refused_with_beams = true}},
        {&P::mirostat_tau,
         {.name = "mirostat_tau", .unit = "bits",
          .flag = {"--mirostat-ent", "target surprisal (tau), in bits", kShown}, .key_help = "target surprisal (tau)"}},
        {&P::mirostat_eta,
         {.name = "mirostat_eta",
          .flag = {"--mirostat-lr", "learning rate (eta)", kShown},
          .key_help = "learning rate (eta)", .sampler = &Wire::mirostat_eta}},
    };
}

std::vector<Row> outputs_rows() {
    return {
        {&P::n,
         {.name = "n", .low = 1, .high = kMaxOutputs, .unit = "outputs",
          .flag = {"--n", "outputs for each prompt, each with its own random draws (needs a temperature above 0)"},
          .key_help = "of a request"}},
        {&P::best_of,
         {.name = "best_of", .low = 0, .high = kMaxOutputs, .unit = "outputs",
          .flag = {"--best-of", "sequences to generate, of which the n most likely are printed", false, 1},
          .key_help = "to generate, of which the n most likely are returned; 0: n", .refused_with_beams = true,
          .of_the_model = true}},
        {&P::beam_width,
         {.name = "beam_width", .low = 0, .high = kMaxOutputs, .unit = "beams",
          .json = InJson::kNo, // "use_beam_search" and "n"
          .flag = {"--beam-width", "beam search: number of beams; the n best are printed", false, 1},
          .key_help = "of a beam search; 0: none", .of_the_model = true}},
        {&P::length_penalty,
         {.name = "length_penalty",
          .flag = {"--length-penalty",
                   "beam search ranks by log-probability / tokens ^ penalty: above 0 favours longer ones", kShown},
          .key_help = "of a beam search: above 0 favours longer outputs"}},
        {&P::early_stopping,
         {.name = "early_stopping", .json = InJson::kOwnReader, // only with "use_beam_search"
          .flag = {"--early-stopping", "when beam search ends: false, true or never"},
          .key_help = "when a beam search with beam_width complete sequences ends"}},
    };
}

std::vector<Row> report_rows() {
    return {
        {&P::logprobs,
         {.name = "logprobs", .low = -1, .json = InJson::kOwnReader, // chats have it as a switch
          .flag = {"--logprobs", "log-probabilities of each sampled token and of this many most likely tokens "
                                 "(-1: all), in --output-format jsonl"},
          .of_the_model = true}},
        {&P::prompt_logprobs,
         {.name = "prompt_logprobs", .low = -1,
          .flag = {"--prompt-logprobs", "those of the prompt's tokens, likewise"}, .of_the_model = true}},
        {&P::skip_reading_prefix_cache, {.name = "skip_reading_prefix_cache", .json = InJson::kNo}},
        {&P::logits_statistics,
         {.name = "logits_statistics", .json = InJson::kNo,
          .flag = {"--logits-statistics", "entropy, highest logit and probability of the most likely token, in "
                                          "--output-format jsonl and metrics"},
          .key_help = "in metrics; costs a pass over each row", .refused_with_beams = true, .of_the_model = true}},
    };
}

std::vector<Row> token_rows() {
    return {
        {&P::logit_bias, {.name = "logit_bias", .flag = {"--logit-bias", "TOKEN:BIAS, may be given several times"},
                          .refused_with_beams = true}},
        {&P::allowed_token_ids,
         {.name = "allowed_token_ids", .flag = {"--allowed-token-ids", "tokens that may be sampled, a list"},
          .refused_with_beams = true, .of_the_model = true}},
        {&P::bad_words,
         {.name = "bad_words",
          .flag = {"--bad-word", "text that must not appear in the output; may be given several times"},
          .key_help = "texts that must not appear in an output", .refused_with_beams = true, .of_the_model = true}},
    };
}

std::vector<Row> end_rows() {
    return {
        {&P::max_tokens, {.name = "max_tokens", .json = InJson::kOwnReader}}, // defaults differ by route and command
        {&P::min_tokens, {.name = "min_tokens", .flag = {"--min-tokens", "output tokens before any stop"}}},
        {&P::stop, {.name = "stop", .json = InJson::kOwnReader, // one or several
                    .flag = {"--stop", "text that ends the output; may be given several times"},
                    .key_help = "texts that end an output"}},
        {&P::stop_token_ids, {.name = "stop_token_ids"}},
        {&P::include_stop_str_in_output,
         {.name = "include_stop_str_in_output", .flag = {"--include-stop", "keep the stop text"}}},
        {&P::skip_special_tokens, {.name = "skip_special_tokens"}},
        {&P::ignore_eos, {.name = "ignore_eos", .flag = {"--ignore-eos", "continue after the end-of-text token"}}},
    };
}

std::vector<Row> form_rows() {
    return {
        {&P::structured_outputs,
         {.name = "structured_outputs", .key_help = "the form of the output", .refused_with_beams = true,
          .of_the_model = true}},
        {&P::repetition_detection,
         {.name = "repetition_detection", .key_help = "ends an output that repeats a pattern",
          .refused_with_beams = true}},
    };
}

// The number that is meant: 0.001 for the float nearest to it.
double decimal(float x) {
    char digits[32];
    *std::to_chars(digits, digits + sizeof digits - 1, x).ptr = '\0';
    return std::strtod(digits, nullptr);
}

void set_range(Row& row) {
    const auto* const field = std::get_if<float P::*>(&row.field);
    for (const SamplingRange& range : kSamplingRanges) {
        if (!field || range.field != *field) continue;
        row.info.low = decimal(range.low);
        row.info.high = decimal(range.high);
    }
}

template <class V>
bool is_used(const V& value, const V& default_value) { return value != default_value; }
bool is_used(int32_t value, int32_t default_value) { return value > default_value; }
bool is_used(const RepetitionDetection& value, const RepetitionDetection&) { return value.max_pattern_size > 0; }
using Form = std::optional<grammar::StructuredOutputs>;
bool is_used(const Form& value, const Form&) { return value.has_value(); }

}  // namespace

template <>
const std::vector<Row>& rows_of() {
    static const std::vector<Row> rows = [] {
        std::vector<Row> out;
        for (auto* const group : {draw_rows, stage_rows, outputs_rows, report_rows, token_rows, end_rows, form_rows})
            for (Row& row : group()) out.push_back(std::move(row));
        for (Row& row : out) set_range(row);
        return out;
    }();
    return rows;
}

template <>
const std::vector<ParameterRow<RepetitionDetection>>& rows_of() {
    using R = RepetitionDetection;
    static const std::vector<ParameterRow<R>> rows{
        {&R::max_pattern_size,
         {.name = "max_pattern_size", .low = 0, .high = kMaxPattern, .unit = "tokens",
          .flag = {"--repetition-max-pattern", "end an output that repeats a pattern of up to N tokens (0: off)"},
          .key_help = "of the pattern; 0: off"}},
        {&R::min_pattern_size,
         {.name = "min_pattern_size", .low = 0, .high = kMaxPattern, .unit = "tokens",
          .flag = {"--repetition-min-pattern", "minimum length of the pattern, in tokens", kShown},
          .key_help = "of the pattern; 0: 1"}},
        {&R::min_count,
         {.name = "min_count", .low = 2, .high = 1e6, .unit = "times",
          .flag = {"--repetition-min-count", "copies of the pattern that end the output", kShown},
          .key_help = "that it stands at the end of the output"}}};
    return rows;
}

const char* first_used(const SamplingParams& p, bool ParameterInfo::*property) {
    static const SamplingParams defaults;
    for (const Row& row : rows_of<P>())
        if (row.info.*property &&
            std::visit([&](auto field) { return is_used(p.*field, defaults.*field); }, row.field))
            return row.info.name;
    return nullptr;
}

void copy_numbers(const SamplingParams& p, pb_sampling_params& out) {
    const auto copy = [&](auto from, auto to) {
        if constexpr (!std::is_same_v<decltype(to), std::monostate>)
            if constexpr (std::is_same_v<std::decay_t<decltype(p.*from)>, std::decay_t<decltype(out.*to)>>)
                out.*to = p.*from;
    };
    for (const Row& row : rows_of<P>()) std::visit(copy, row.field, row.info.sampler);
}

}  // namespace patchbay::engine
