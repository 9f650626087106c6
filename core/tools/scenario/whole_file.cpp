#include "scenario/whole_file.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>

#include "base/suggest.hpp"
#include "config/document.hpp"
#include "scenario/blocks.hpp"

namespace patchbay::scenario {
namespace {

constexpr size_t kLongestId = 64;     // bytes
constexpr size_t kMaxEndTokens = 16; // of a request, and of the model: each token is held against them
constexpr size_t kMaxStops = 16, kMaxStopBytes = 256, kMaxGrammarBytes = 4096; // of a request
constexpr uint64_t kMaxGuesses = 10; // at names that do not exist

class WholeFile {
  public:
    WholeFile(const Scenario& s, const config::Node& root, config::Faults& faults)
        : scenario_(s), root_(root), faults_(faults) {}

    void check() {
        const config::EngineSettings& e = scenario_.engine;
        for (size_t i = 0; i < scenario_.steps.size(); ++i) {
            origin_ = &scenario_.steps[i].origin;
            steps_of(scenario_.steps[i]);
            std::visit([this](const auto& what) { names_in(what); }, scenario_.steps[i].what);
            if (std::holds_alternative<step::Draft>(scenario_.steps[i].what)) draft(i);
            if (std::holds_alternative<step::InFlight>(scenario_.steps[i].what) &&
                e.async_scheduling != config::AsyncScheduling::kOn)
                fault("'in_flight' without engine.async_scheduling: on");
        }
        origin_ = scenario_.steps.empty() ? nullptr : &scenario_.steps.front().origin;
        if (e.num_speculative_tokens > 0 && e.async_scheduling == config::AsyncScheduling::kOn)
            fault("async_scheduling: on beside num_speculative_tokens: drafts follow from tokens that are back");
        blocks();
        model();
    }

  private:
    void model() {
        const Model& m = scenario_.model;
        if (m.eos.size() > kMaxEndTokens) {
            origin_ = &root_.at("model.eos_token_ids")->origin;
            too_many_end_tokens("eos_token_ids", m.eos.size());
        }
        const bool slides = std::ranges::find(m.layer_types, "sliding_attention") != m.layer_types.end();
        if (m.layer_types.empty() || slides == (m.sliding_window > 0)) return;
        origin_ = &root_.at("model.layer_types")->origin;
        fault(slides ? "'layer_types' has a layer of sliding_attention, and there is no sliding_window"
                     : "'layer_types' has no layer of sliding_attention for the sliding_window");
    }

    // What is only there where tokens have a text.
    void needs_text(const std::string& key) {
        if (scenario_.model.vocabulary.empty())
            fault("'" + key + "' without model.vocabulary: tokens have no text");
    }

    void text_rules(const Arrival& a) {
        if (!a.stop.empty()) needs_text("stop");
        if (a.stop.size() > kMaxStops)
            fault("'stop' has " + std::to_string(a.stop.size()) + " texts, expected at most " +
                  std::to_string(kMaxStops));
        for (const std::string& stop : a.stop)
            if (stop.empty() || stop.size() > kMaxStopBytes)
                fault("'stop' has a text of " + std::to_string(stop.size()) + " bytes, expected 1 to " +
                      std::to_string(kMaxStopBytes));
        if (!a.structured_outputs) return;
        needs_text("structured_outputs");
        count(grammars_, 1, scenario_.limits.grammars, "the file has", "requests with structured_outputs");
        const grammar::StructuredOutputs& s = *a.structured_outputs;
        size_t bytes = 0;
        for (const auto& text : {s.regex, s.json, s.grammar}) bytes += text.value_or("").size();
        for (const std::string& choice : s.choice) bytes += choice.size();
        if (bytes > kMaxGrammarBytes)
            fault("'structured_outputs' has " + std::to_string(bytes) + " bytes, expected at most " +
                  std::to_string(kMaxGrammarBytes));
    }

    void fault(const std::string& text) { faults_.add(origin_ ? *origin_ : config::Origin{}, text); }

    void too_many_end_tokens(const char* key, size_t got) {
        fault("'" + std::string(key) + "' has " + std::to_string(got) + " tokens, expected at most " +
              std::to_string(kMaxEndTokens));
    }

    // Reported where the sum goes beyond what is allowed, once.
    void count(uint64_t& sum, uint64_t more, uint64_t most, const std::string& who, const std::string& what) {
        const bool before = sum > most;
        sum += more;
        if (before || sum <= most) return;
        fault(who + " " + std::to_string(sum) + " " + what + " up to here, expected at most " + std::to_string(most));
    }

    void blocks() {
        const config::EngineSettings& e = scenario_.engine;
        if (!std::has_single_bit(e.block_size))
            faults_.add(root_.at("engine.block_size")->origin,
                        "'block_size' is " + std::to_string(e.block_size) + ", expected a power of two");
        for (const auto& [key, what, blocks] : {std::tuple("engine.num_blocks", "the blocks hold ", e.num_blocks),
                                                {"engine.num_swap_blocks", "those of host memory hold ",
                                                 e.num_swap_blocks}}) {
            const uint64_t room = uint64_t{blocks} * e.block_size;
            const config::Node* given = root_.at(key);
            if (room > scenario_.limits.block_tokens)
                faults_.add(given ? given->origin : root_.origin,
                            what + std::to_string(room) + " tokens, expected at most " +
                                std::to_string(scenario_.limits.block_tokens));
        }
    }

    // Steps of the engine that it may ask for.
    void steps_of(const Step& s) {
        const Limits& most = scenario_.limits;
        uint64_t steps = 1;
        if (const auto* run = std::get_if<step::Run>(&s.what)) steps = run->steps;
        if (const auto* drain = std::get_if<step::Drain>(&s.what)) steps = drain->max_steps;
        count(steps_, steps, most.steps, "the file has", "steps, those of 'run' and 'drain' too,");
        if (const auto* wait = std::get_if<step::Wait>(&s.what))
            count(waited_, wait->ms, most.wait_ms, "the file waits for", "ms");
        if (std::holds_alternative<step::Swap>(s.what)) count(swaps_, 1, most.swaps, "the file has", "swaps");
    }

    void draft(size_t i) {
        if (scenario_.engine.num_speculative_tokens == 0) fault("'draft' without engine.num_speculative_tokens");
        const bool after = i > 0 && (std::holds_alternative<step::Output>(scenario_.steps[i - 1].what) ||
                                     std::holds_alternative<step::Run>(scenario_.steps[i - 1].what));
        if (!after) fault("'draft' stands directly after the 'output' or 'run' after which the proposer is asked");
    }

    void known(const std::string& name) {
        if (seen_.contains(name)) return;
        const bool guess = unknown_++ < kMaxGuesses; // each looks at all names
        fault("no request '" + config::printable(name) + "' was added before" +
              (guess ? did_you_mean(name, std::vector<std::string>(seen_.begin(), seen_.end())) : ""));
    }
    void block_known(const std::string& text) {
        if (block_name(text, [this](const std::string& request) { return seen_.contains(request); })) return;
        const auto any = block_name(text, [](const std::string&) { return true; });
        if (any) return known(any->request);
        fault("'" + config::printable(text) + "' names no block, expected a request and a number such as a/0");
    }
    void blocks_known(const Names& names) {
        if (names.size() > Blocks::kMaxListed)
            fault(std::to_string(names.size()) + " blocks, expected at most " + std::to_string(Blocks::kMaxListed));
        for (const std::string& name : names) block_known(name);
    }
    void all_known(const Names& names) {
        for (const std::string& name : names) known(name);
    }
    template <class Map>
    void keys_known(const Map& map) {
        for (const auto& [name, value] : map) known(name);
    }

    void names_in(const step::Add& what) {
        for (const Arrival& a : what.requests) {
            origin_ = &a.origin;
            if (a.id.empty()) continue; // reported already
            count(sequences_, a.sequences(), scenario_.limits.sequences, "the requests have", "outputs and beams");
            count(prompt_tokens_, a.prompt.length() * a.sequences(), scenario_.limits.prompt_tokens,
                  "the prompts of all outputs have", "tokens");
            if (a.id.size() > kLongestId)
                fault("'id' has " + std::to_string(a.id.size()) + " bytes, expected at most " +
                      std::to_string(kLongestId));
            if (a.stop_token_ids.size() > kMaxEndTokens)
                too_many_end_tokens("stop_token_ids", a.stop_token_ids.size());
            text_rules(a);
            if (a.id.size() > kLongestId || sequences_ > scenario_.limits.sequences) continue;
            for (uint32_t i = 0; i < a.sequences(); ++i)
                if (const std::string name = a.name_of(i); !seen_.insert(name).second)
                    fault("'" + config::printable(name) + "' was added before");
            requests_.insert(a.id);
        }
    }
    void names_in(const step::Output& what) { keys_known(what.tokens); }
    void names_in(const step::Draft& what) {
        keys_known(what.paths);
        const uint32_t most = scenario_.speculative.max_paths;
        for (const auto& [name, paths] : what.paths)
            if (paths.size() > most)
                fault("'draft' has " + std::to_string(paths.size()) + " paths for '" + config::printable(name) +
                      "', expected at most speculative.max_paths of " + std::to_string(most));
    }
    void names_in(const step::Abort& what) {
        all_known(what.ids);
        for (const std::string& name : what.ids)
            if (seen_.contains(name) && !requests_.contains(name))
                fault("'" + name + "' is one output of several, which are aborted together");
    }
    void names_in(const step::InFlight& what) { all_known(what.ids); }
    void names_in(const step::Expect& what) {
        for (const Expectation& e : what.expectations) {
            origin_ = &e.origin;
            if (e.subject == Subject::kDecoded) needs_text("decoded");
            if (const auto* names = std::get_if<Names>(&e.value)) all_known(*names);
            else if (const auto* counts = std::get_if<Counts>(&e.value)) keys_known(*counts);
            else if (const auto* words = std::get_if<Words>(&e.value)) keys_known(*words);
            else if (const auto* endings = std::get_if<Endings>(&e.value)) keys_known(*endings);
            else if (const auto* list = std::get_if<BlockList>(&e.value)) blocks_known(list->names);
            else if (const auto* blocks = std::get_if<BlockCounts>(&e.value))
                for (const auto& [name, ignored] : blocks->counts) block_known(name);
            else if (const auto* events = std::get_if<KvEvents>(&e.value)) {
                for (const auto& [kind, amount] : events->by_kind)
                    if (const auto* listed = std::get_if<Names>(&amount)) blocks_known(*listed);
            } else if (const auto* texts = std::get_if<Texts>(&e.value)) keys_known(*texts);
        }
    }
    template <class Other>
    void names_in(const Other&) {}

    const Scenario& scenario_;
    const config::Node& root_;
    config::Faults& faults_;
    const config::Origin* origin_ = nullptr;
    std::set<std::string> seen_, requests_; // seen: outputs
    uint64_t prompt_tokens_ = 0, sequences_ = 0, steps_ = 0, waited_ = 0, swaps_ = 0, grammars_ = 0, unknown_ = 0;
};

}  // namespace

void check_whole_file(const Scenario& s, const config::Node& root, config::Faults& faults) {
    WholeFile(s, root, faults).check();
}

}  // namespace patchbay::scenario
