// A scenario file as plain data: an engine without a model, and what happens to it step by step. Read by
// scenario/load.hpp, played by scenario/play.hpp; docs/scenarios.md describes the file.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/document.hpp"
#include "config/engine_config.hpp"
#include "engine/request/request.hpp"

namespace patchbay::scenario {

using engine::TokenId;
using Tokens = std::vector<TokenId>;
using Names = std::vector<std::string>; // of requests
using Words = std::map<std::string, std::string>;
using Endings = std::map<std::string, engine::FinishReason>;
using Texts = std::map<std::string, Tokens>;
using Trees = std::map<std::string, std::vector<Tokens>>; // of drafts, by their paths

// As a file expects one: `3`, `">= 3"`, `"<= 9"` or `2..5`, both ends included. What an engine has is exactly one.
struct Number {
    static constexpr uint64_t kMax = uint64_t{1} << 40;
    uint64_t low = 0, high = 0;

    Number() = default;
    Number(uint64_t exact) : low(exact), high(exact) {}
    Number(uint64_t from, uint64_t to) : low(from), high(to) {}
    bool operator==(const Number&) const = default;
    bool holds(const Number& other) const { return low <= other.low && other.high <= high; }
};
using Counts = std::map<std::string, Number>;

struct Prompt {
    uint32_t made_up = 0; // so many tokens in front, which no other request has
    TokenId repeated = 0;
    uint32_t times = 0;   // that it stands after them
    Tokens tokens;        // after these

    uint64_t length() const { return uint64_t{made_up} + times + tokens.size(); }
};

struct Arrival { // a request that is added
    std::string id;
    Prompt prompt;
    int32_t priority = 0;
    uint32_t tenant = 0;
    uint64_t arrival_ms = 0, deadline_ms = 0; // on the scenario's clock; 0: now, none
    uint32_t n = 1; // outputs: `a` is the first one of request a, `a.1` the second
    uint32_t beam_width = 0; // beams, likewise; outputs are the first n
    uint32_t max_tokens = 16, min_tokens = 0, expected_output_tokens = 0;
    Tokens stop_token_ids;
    std::vector<std::string> stop;
    std::optional<grammar::StructuredOutputs> structured_outputs;
    bool ignore_eos = false, skip_reading_prefix_cache = false, include_stop_str_in_output = false;
    std::string salt;    // whose cached blocks it may share: requests with the same one
    std::string refused; // a part of the text with which the engine refuses it; empty: it does not
    config::Origin origin;

    uint32_t sequences() const { return beam_width > n ? beam_width : n; }
    std::string name_of(uint32_t output) const { return output == 0 ? id : id + "." + std::to_string(output); }
};

enum class Subject { // what can be expected
    kScheduled, kPreempted, kWaiting, kRunning, kFinished, kInFlight, kComputed, kCachedTokens, kDrafts, kPreemptions,
    kStopReason, kText, kDecoded, kSum, kCount, kFreeBlocks, kCachedBlocks, kHitTokens, kQueryTokens, kDraftedTokens,
    kAcceptedTokens, kSteps, kPlanFaults, kPolicy, kSwapped, kFreeSwapBlocks, kReferences, kEvictedNext, kKvEvents,
    kKvPolicyFaults
};
using Totals = std::map<Subject, Number>; // over all requests that a subject names
struct BlockList { // by names as scenario/blocks.hpp has them
    Names names;
    bool operator==(const BlockList&) const = default;
};
struct BlockCounts {
    Counts counts; // by such names
    bool operator==(const BlockCounts&) const = default;
};
struct KvEvents { // stored, removed, cleared: how many, or of which blocks, in order
    std::map<std::string, std::variant<Number, Names>> by_kind;
    bool operator==(const KvEvents&) const = default;
};
using Value = std::variant<Number, std::string, Names, Counts, Words, Endings, Texts, Totals, BlockList, BlockCounts,
                           KvEvents>;
struct Expectation {
    Subject subject;
    Value value;
    config::Origin origin;
};

enum class Answer { kDone, kRefused };

namespace step { // what one can say
struct Add { std::vector<Arrival> requests; };
struct Output { Texts tokens; };
struct Draft { Trees paths; };
struct Abort { Names ids; };
struct Swap { config::PluginChoice scheduler; };
struct ResetPrefixCache { Answer answer = Answer::kDone; };
struct InFlight { Names ids; };
struct Expect { std::vector<Expectation> expectations; };
struct Run { uint32_t steps = 0; };
struct Drain { uint32_t max_steps = 0; };
struct Wait { uint64_t ms = 0; };
} // namespace step

struct Step {
    std::variant<std::monostate, step::Add, step::Output, step::Draft, step::Abort, step::Swap, step::ResetPrefixCache,
                 step::InFlight, step::Expect, step::Run, step::Drain, step::Wait>
        what;
    std::string name; // its key
    config::Origin origin;
};

struct Limits { // of one file: it ends in bounded time and memory, whatever it says
    uint64_t block_tokens = 1 << 24;           // that its KV blocks hold, and those in host memory
    uint64_t prompt_tokens = 1 << 24;          // of all prompts, once for each output
    uint64_t sequences = 1 << 16;              // outputs and beams of all requests
    uint64_t steps = 1'000'000;                // together with those of `run` and `drain`
    uint64_t wait_ms = 1'000'000'000'000;      // together
    uint64_t swaps = 64;                       // each starts another process
    uint64_t grammars = 32;                    // requests with structured_outputs: each may compile one, for a second
    uint64_t work = uint64_t{1} << 26;         // while it is played: tokens computed, and what work.hpp counts
};

using Vocabulary = std::map<TokenId, std::string>; // the text of some tokens

struct Model { // what the engine must know of one
    Tokens eos;
    uint32_t sliding_window = 0;          // tokens; 0: attention sees all
    std::vector<std::string> layer_types; // as in its config.json; empty: one layer
    Vocabulary vocabulary;                // empty: there is no text
};

struct Scenario {
    Limits limits;
    config::PluginChoice policy{"fcfs", {}};
    std::optional<config::PluginChoice> kv_policy; // none: the page unused the longest is evicted first
    config::EngineSettings engine;
    config::SpeculationSettings speculative;
    uint32_t step_ms = 1; // that a step takes on the scenario's clock
    Model model;
    std::vector<Step> steps;
};

inline constexpr uint32_t kVocabSize = 32'000; // of tokens in prompts; also of what is sampled, unless it is a fault

}  // namespace patchbay::scenario
