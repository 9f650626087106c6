#include "experiment/sampling_table.hpp"

namespace patchbay::experiment {

using config::Bounds;

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
             "sample among those of typical surprise that make up p; 1: off")
        .key("xtc_probability", &P::xtc_probability, Bounds{0, 1, ""},
             "chance that all but the last of the top choices are excluded; 0: off")
        .key("xtc_threshold", &P::xtc_threshold, Bounds{0, 1, ""}, "probability from which on a token is a top choice")
        .key("dry_multiplier", &P::dry_multiplier, Bounds{0, 100, ""},
             "above 0: less of what would go on with a repetition")
        .key("dry_base", &P::dry_base, Bounds{1, 100, ""}, "the penalty's factor for each further repeated token")
        .key("dry_allowed_length", &P::dry_allowed_length, Bounds{0, {}, "tokens"}, "that may repeat")
        .key("mirostat", &P::mirostat, Bounds{0, 2, ""}, "2: cut by a surprise that follows the output's; 0: off")
        .key("mirostat_tau", &P::mirostat_tau, Bounds{1e-3, 100, "bits"}, "surprise to keep to")
        .key("mirostat_eta", &P::mirostat_eta, Bounds{0, 10, ""}, "share of an error made up for with the next token")
        .key("best_of", &P::best_of, Bounds{0, engine::kMostOutputs, "outputs"},
             "that are made, of which the likeliest is the request's; 0: one")
        .key("beam_width", &P::beam_width, Bounds{0, engine::kMostOutputs, "beams"}, "of a beam search; 0: none")
        .key("length_penalty", &P::length_penalty, Bounds{-10, 10, ""}, "of a beam search: above 0 for longer ones")
        .key("logits_statistics", &P::logits_statistics, "in metrics; costs a pass over each row")
        .values("bad_words", &P::bad_words, Bounds{}, "texts that an output does not have")
        .values("stop", &P::stop, Bounds{}, "texts that end an output");
    return t;
}

}  // namespace patchbay::experiment
