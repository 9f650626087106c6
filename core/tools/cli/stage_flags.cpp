#include "cli/stage_flags.hpp"

#include <algorithm>

#include "cli/flag_checks.hpp"

namespace patchbay::cli {

void add_stage_flags(CLI::App& app, engine::SamplingParams& s, std::vector<std::string>& dry_breakers) {
    using S = engine::SamplingParams;
    const auto ranged = [&](const char* flag, float S::*field, const char* description) {
        const auto& all = engine::kSamplingRanges;
        const auto range = std::find_if(all.begin(), all.end(), [&](const auto& r) { return r.field == field; });
        app.add_option(flag, s.*field, description)
            ->check(within<float>(range->low, range->high))
            ->capture_default_str();
    };
    ranged("--top-n-sigma", &S::top_n_sigma, "sample among logits so many standard deviations below the highest");
    ranged("--typical", &S::typical_p, "sample among those of typical surprisal that make up p (1: off)");
    ranged("--xtc-probability", &S::xtc_probability, "chance that all but the last of the top choices are excluded");
    ranged("--xtc-threshold", &S::xtc_threshold, "probability from which on a token is a top choice");
    ranged("--dry-multiplier", &S::dry_multiplier, "above 0: less of what would go on with a repetition (0: off)");
    ranged("--dry-base", &S::dry_base, "the penalty's factor for each further repeated token");
    app.add_option("--dry-allowed-length", s.dry_allowed_length, "tokens that may repeat without a penalty")
        ->check(within<uint32_t>(0))
        ->capture_default_str();
    app.add_option("--dry-penalty-last-n", s.dry_range, "tokens of prompt and output looked back at (0: all)")
        ->check(within<uint32_t>(0));
    dry_breakers = {"\n", ":", "\"", "*"};
    app.add_option("--dry-sequence-breaker", dry_breakers,
                   "text that no repetition reaches across; may be given several times (default: newline : \" *)")
        ->allow_extra_args(false);
    app.add_option("--mirostat", s.mirostat, "2: cut by a surprisal that follows the output's (0: off)")
        ->check(CLI::IsMember({0, 2}));
    ranged("--mirostat-ent", &S::mirostat_tau, "surprisal to keep to, in bits");
    ranged("--mirostat-lr", &S::mirostat_eta, "share of an error that is made up for with the next token");
}

std::vector<text::TokenId> tokens_with(const text::Tokenizer& tokenizer, const std::vector<std::string>& texts) {
    std::vector<text::TokenId> out;
    for (text::TokenId t = 0; static_cast<uint32_t>(t) < tokenizer.vocab_size(); ++t) {
        const std::string_view bytes = tokenizer.token_bytes(t);
        const auto in_it = [&](const std::string& text) {
            return !text.empty() && bytes.find(text) != std::string_view::npos;
        };
        if (std::any_of(texts.begin(), texts.end(), in_it)) out.push_back(t);
    }
    return out;
}

}  // namespace patchbay::cli
