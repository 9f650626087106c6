#include "experiment/sampling_table.hpp"

#include <memory>
#include <utility>

namespace patchbay::experiment {

using config::Bounds;
using engine::EarlyStopping;

namespace {

config::Table<grammar::StructuredOutputs> structure_table() {
    using S = grammar::StructuredOutputs;
    config::Table<S> t;
    t.key("json", &S::json, "text of a JSON Schema")
        .key("regex", &S::regex, "regular expression that the whole output matches")
        .values("choice", &S::choice, Bounds{}, "texts of which the output is one")
        .key("grammar", &S::grammar, "text of a grammar, GBNF or Lark")
        .key("structural_tag", &S::structural_tag, "text of JSON: triggers in free text, and the form from each on")
        .key("json_object", &S::json_object, "any JSON object")
        .key("disable_any_whitespace", &S::disable_any_whitespace, "no white space between the parts of JSON");
    return t;
}

void add_structure(config::Table<engine::SamplingParams>& t) {
    const auto table = std::make_shared<config::Table<grammar::StructuredOutputs>>(structure_table());
    config::KeyInfo info{.name = "structured_outputs",
                         .type = config::ValueType::kMap,
                         .description =
                             std::string("the form of the output: one of ") + grammar::StructuredOutputs::kForms,
                         .optional = true,
                         .children = table->keys()};
    t.custom(std::move(info), [table](const config::Node* given, engine::SamplingParams& out, config::Faults& faults) {
        if (!given || !config::is_section(*given, "'structured_outputs'", faults)) return config::Node{};
        grammar::StructuredOutputs asked;
        config::Node effective = table->read(*given, asked, faults);
        const int forms = asked.forms();
        if (forms == 0 && !asked.disable_any_whitespace) return effective; // none, as `config show` prints it
        if (forms != 1)
            faults.add(given->origin, "'structured_outputs' has " + std::to_string(forms) +
                                          " forms, expected one of " + asked.kForms);
        out.structured_outputs = std::move(asked);
        return effective;
    });
}

}  // namespace

config::Table<engine::SamplingParams> sampling_table() {
    using P = engine::SamplingParams;
    config::Table<P> t;
    t.key("temperature", &P::temperature, Bounds{0, 100, ""}, "0: greedy")
        .key("top_k", &P::top_k, Bounds{0, {}, ""}, "sample among the k most likely; 0: off")
        .key("top_p", &P::top_p, Bounds{1e-6, 1, ""}, "sample among the most likely that make up p; 1: off")
        .key("min_p", &P::min_p, Bounds{0, 1, ""},
             "sample among those at least min_p times as likely as the first; 0: off")
        .key("repetition_penalty", &P::repetition_penalty, Bounds{1e-3, 100, ""},
             "above 1: less of what prompt and output have")
        .key("presence_penalty", &P::presence_penalty, Bounds{-10, 10, ""}, "above 0: less of what the output has")
        .key("frequency_penalty", &P::frequency_penalty, Bounds{-10, 10, ""}, "the same, for each time it appeared")
        .key("top_n_sigma", &P::top_n_sigma, Bounds{0, 100, ""},
             "sample among logits so many standard deviations below the highest; 0: off")
        .key("typical_p", &P::typical_p, Bounds{1e-6, 1, ""},
             "sample among those of typical surprisal that make up p; 1: off")
        .key("xtc_probability", &P::xtc_probability, Bounds{0, 1, ""},
             "chance that all but the last of the top choices are excluded; 0: off")
        .key("xtc_threshold", &P::xtc_threshold, Bounds{0, 1, ""}, "probability from which on a token is a top choice")
        .key("dry_multiplier", &P::dry_multiplier, Bounds{0, 100, ""},
             "above 0: less of what would go on with a repetition")
        .key("dry_base", &P::dry_base, Bounds{1, 100, ""}, "the penalty's factor for each further repeated token")
        .key("dry_allowed_length", &P::dry_allowed_length, Bounds{0, {}, "tokens"}, "that may repeat")
        .key("mirostat", &P::mirostat, Bounds{0, 2, ""}, "2: cut by a surprisal that follows the output's; 0: off")
        .key("mirostat_tau", &P::mirostat_tau, Bounds{1e-3, 100, "bits"}, "surprisal to keep to")
        .key("mirostat_eta", &P::mirostat_eta, Bounds{0, 10, ""}, "share of an error made up for with the next token")
        .key("n", &P::n, Bounds{1, engine::kMaxOutputs, "outputs"}, "of a request")
        .key("best_of", &P::best_of, Bounds{0, engine::kMaxOutputs, "outputs"},
             "that are made, of which the n likeliest are the request's; 0: n")
        .key("beam_width", &P::beam_width, Bounds{0, engine::kMaxOutputs, "beams"}, "of a beam search; 0: none")
        .key("length_penalty", &P::length_penalty, Bounds{-10, 10, ""}, "of a beam search: above 0 for longer ones")
        .word("early_stopping", &P::early_stopping,
              {{"false", EarlyStopping::kNo}, {"true", EarlyStopping::kYes}, {"never", EarlyStopping::kNever}},
              "when a beam search ends that has beam_width complete sequences")
        .key("logits_statistics", &P::logits_statistics, "in metrics; costs a pass over each row")
        .values("bad_words", &P::bad_words, Bounds{}, "texts that an output does not have")
        .values("stop", &P::stop, Bounds{}, "texts that end an output");
    add_structure(t);
    config::Table<engine::RepetitionDetection> repetition;
    using R = engine::RepetitionDetection;
    repetition.key("max_pattern_size", &R::max_pattern_size, Bounds{0, 1024, "tokens"}, "of the pattern; 0: off")
        .key("min_pattern_size", &R::min_pattern_size, Bounds{0, 1024, "tokens"}, "of the pattern; 0: 1")
        .key("min_count", &R::min_count, Bounds{2, 1e6, "times"}, "that it stands at the output's end");
    t.section("repetition_detection", &P::repetition_detection, std::move(repetition),
              "ends an output that repeats a pattern");
    return t;
}

}  // namespace patchbay::experiment
