#include "scenario/whole_file.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>
#include <variant>

#include "scenario/known_names.hpp"
#include "scenario/located_faults.hpp"

namespace patchbay::scenario {
namespace {

constexpr size_t kLongestId = 64;     // bytes
constexpr size_t kMaxEndTokens = 16; // of a request, and of the model: each token is held against them
constexpr size_t kMaxStops = 16, kMaxStopBytes = 256, kMaxGrammarBytes = 4096; // of a request

void too_many_end_tokens(LocatedFaults& faults, const char* key, size_t got) {
    faults.add("'" + std::string(key) + "' has " + std::to_string(got) + " tokens, expected at most " +
               std::to_string(kMaxEndTokens));
}

void check_model(const Model& m, const config::Node& root, LocatedFaults& faults) {
    if (m.eos.size() > kMaxEndTokens) {
        faults.move_to(root.at("model.eos_token_ids")->origin);
        too_many_end_tokens(faults, "eos_token_ids", m.eos.size());
    }
    const bool slides = std::ranges::find(m.layer_types, "sliding_attention") != m.layer_types.end();
    if (m.layer_types.empty() || slides == (m.sliding_window > 0)) return;
    faults.move_to(root.at("model.layer_types")->origin);
    faults.add(slides ? "'layer_types' has a layer of sliding_attention, and there is no sliding_window"
                      : "'layer_types' has no layer of sliding_attention for the sliding_window");
}

void check_block_counts(const Scenario& scenario, const config::Node& root, config::Faults& faults) {
    const config::EngineSettings& e = scenario.engine;
    if (!std::has_single_bit(e.block_size))
        faults.add(root.at("engine.block_size")->origin,
                   "'block_size' is " + std::to_string(e.block_size) + ", expected a power of two");
    for (const auto& [key, what, blocks] : {std::tuple("engine.num_blocks", "the blocks hold ", e.num_blocks),
                                            {"engine.num_swap_blocks", "those of host memory hold ",
                                             e.num_swap_blocks}}) {
        const uint64_t room = uint64_t{blocks} * e.block_size;
        const config::Node* given = root.at(key);
        if (room > scenario.limits.block_tokens)
            faults.add(given ? given->origin : root.origin,
                       what + std::to_string(room) + " tokens, expected at most " +
                           std::to_string(scenario.limits.block_tokens));
    }
}

// What the steps so far add up to, held against the limits of a file.
class FileTotals {
  public:
    FileTotals(const Limits& limits, LocatedFaults& faults) : limits_(limits), faults_(faults) {}

    void add(const Step& s) {
        uint64_t steps = 1;
        if (const auto* run = std::get_if<step::Run>(&s.what)) steps = run->steps;
        if (const auto* drain = std::get_if<step::Drain>(&s.what)) steps = drain->max_steps;
        add(steps_, steps, limits_.steps, "the file has", "steps, those of 'run' and 'drain' too,");
        if (const auto* wait = std::get_if<step::Wait>(&s.what))
            add(waited_, wait->ms, limits_.wait_ms, "the file waits for", "ms");
        if (std::holds_alternative<step::Swap>(s.what)) add(swaps_, 1, limits_.swaps, "the file has", "swaps");
    }
    void add(const Arrival& a) {
        add(sequences_, a.sequences(), limits_.sequences, "the requests have", "outputs and beams");
        add(prompt_tokens_, a.prompt.length() * a.sequences(), limits_.prompt_tokens,
            "the prompts of all outputs have", "tokens");
    }
    void add_grammar() {
        add(grammars_, 1, limits_.grammars, "the file has", "requests with structured_outputs");
    }
    bool too_many_sequences() const { return sequences_ > limits_.sequences; }

  private:
    // Reported where the sum goes beyond what is allowed, once.
    void add(uint64_t& sum, uint64_t more, uint64_t max, const std::string& who, const std::string& what) {
        const bool before = sum > max;
        sum += more;
        if (before || sum <= max) return;
        faults_.add(who + " " + std::to_string(sum) + " " + what + " up to here, expected at most " +
                    std::to_string(max));
    }

    const Limits& limits_;
    LocatedFaults& faults_;
    uint64_t prompt_tokens_ = 0, sequences_ = 0, steps_ = 0, waited_ = 0, swaps_ = 0, grammars_ = 0;
};

class WholeFile {
  public:
    WholeFile(const Scenario& s, config::Faults& faults)
        : scenario_(s), faults_(faults), names_(faults_), totals_(s.limits, faults_) {}

    void check(const config::Node& root, config::Faults& faults) {
        const config::EngineSettings& e = scenario_.engine;
        for (size_t i = 0; i < scenario_.steps.size(); ++i) {
            faults_.move_to(scenario_.steps[i].origin);
            totals_.add(scenario_.steps[i]);
            std::visit([this](const auto& what) { names_in(what); }, scenario_.steps[i].what);
            if (std::holds_alternative<step::Draft>(scenario_.steps[i].what)) draft(i);
            if (std::holds_alternative<step::InFlight>(scenario_.steps[i].what) &&
                e.async_scheduling != config::AsyncScheduling::kOn)
                faults_.add("'in_flight' without engine.async_scheduling: on");
        }
        if (!scenario_.steps.empty()) faults_.move_to(scenario_.steps.front().origin);
        if (e.num_speculative_tokens > 0 && e.async_scheduling == config::AsyncScheduling::kOn)
            faults_.add("async_scheduling: on beside num_speculative_tokens: drafts follow from tokens that are back");
        check_block_counts(scenario_, root, faults);
        check_model(scenario_.model, root, faults_);
    }

  private:
    // What is only there where tokens have a text.
    void needs_text(const std::string& key) {
        if (scenario_.model.vocabulary.empty())
            faults_.add("'" + key + "' without model.vocabulary: tokens have no text");
    }

    void text_rules(const Arrival& a) {
        if (!a.stop.empty()) needs_text("stop");
        if (a.stop.size() > kMaxStops)
            faults_.add("'stop' has " + std::to_string(a.stop.size()) + " strings, expected at most " +
                        std::to_string(kMaxStops));
        for (const std::string& stop : a.stop)
            if (stop.empty() || stop.size() > kMaxStopBytes)
                faults_.add("'stop' has a string of " + std::to_string(stop.size()) + " bytes, expected 1 to " +
                            std::to_string(kMaxStopBytes));
        if (!a.structured_outputs) return;
        needs_text("structured_outputs");
        totals_.add_grammar();
        const grammar::StructuredOutputs& s = *a.structured_outputs;
        size_t bytes = 0;
        for (const auto& text : {s.regex, s.json, s.grammar}) bytes += text.value_or("").size();
        for (const std::string& choice : s.choice) bytes += choice.size();
        if (bytes > kMaxGrammarBytes)
            faults_.add("'structured_outputs' has " + std::to_string(bytes) + " bytes, expected at most " +
                        std::to_string(kMaxGrammarBytes));
    }

    void draft(size_t i) {
        if (scenario_.engine.num_speculative_tokens == 0) faults_.add("'draft' without engine.num_speculative_tokens");
        const bool after = i > 0 && (std::holds_alternative<step::Output>(scenario_.steps[i - 1].what) ||
                                     std::holds_alternative<step::Run>(scenario_.steps[i - 1].what));
        if (!after)
            faults_.add("'draft' stands directly after the 'output' or 'run' after which the proposer is asked");
    }

    void names_in(const step::Add& what) {
        for (const Arrival& a : what.requests) {
            faults_.move_to(a.origin);
            if (a.id.empty()) continue; // reported already
            totals_.add(a);
            if (a.id.size() > kLongestId)
                faults_.add("'id' has " + std::to_string(a.id.size()) + " bytes, expected at most " +
                            std::to_string(kLongestId));
            if (a.stop_token_ids.size() > kMaxEndTokens)
                too_many_end_tokens(faults_, "stop_token_ids", a.stop_token_ids.size());
            text_rules(a);
            if (a.id.size() <= kLongestId && !totals_.too_many_sequences()) names_.add(a);
        }
    }
    void names_in(const step::Output& what) { names_.check_keys(what.tokens); }
    void names_in(const step::Draft& what) {
        names_.check_keys(what.paths);
        const uint32_t max = scenario_.speculative.max_paths;
        for (const auto& [name, paths] : what.paths)
            if (paths.size() > max)
                faults_.add("'draft' has " + std::to_string(paths.size()) + " paths for '" + config::printable(name) +
                            "', expected at most speculative.max_paths of " + std::to_string(max));
    }
    void names_in(const step::Abort& what) {
        names_.check(what.ids);
        for (const std::string& name : what.ids) names_.check_request(name);
    }
    void names_in(const step::InFlight& what) { names_.check(what.ids); }
    void names_in(const step::Expect& what) {
        for (const Expectation& e : what.expectations) {
            faults_.move_to(e.origin);
            if (e.subject == Subject::kDecoded) needs_text("decoded");
            if (e.subject == Subject::kEvictedNext && scenario_.kv_policy)
                faults_.add("'evicted_next' beside kv_policy, which chooses when a block is needed (what it chose: "
                            "kv_events: {removed: [...]})");
            if (const auto* names = std::get_if<Names>(&e.value)) names_.check(*names);
            else if (const auto* counts = std::get_if<Counts>(&e.value)) names_.check_keys(*counts);
            else if (const auto* words = std::get_if<Words>(&e.value)) names_.check_keys(*words);
            else if (const auto* endings = std::get_if<Endings>(&e.value)) names_.check_keys(*endings);
            else if (const auto* list = std::get_if<BlockList>(&e.value)) names_.check_blocks(list->names);
            else if (const auto* blocks = std::get_if<BlockCounts>(&e.value))
                for (const auto& [name, ignored] : blocks->counts) names_.check_block(name);
            else if (const auto* events = std::get_if<KvEvents>(&e.value)) {
                for (const auto& [kind, amount] : events->by_kind)
                    if (const auto* listed = std::get_if<Names>(&amount)) names_.check_blocks(*listed);
            } else if (const auto* texts = std::get_if<Texts>(&e.value)) names_.check_keys(*texts);
        }
    }
    template <class Other>
    void names_in(const Other&) {}

    const Scenario& scenario_;
    LocatedFaults faults_;
    KnownNames names_;
    FileTotals totals_;
};

}  // namespace

void check_whole_file(const Scenario& s, const config::Node& root, config::Faults& faults) {
    WholeFile(s, faults).check(root, faults);
}

}  // namespace patchbay::scenario
