#include "scenario/load.hpp"

#include "config/plugin_slot.hpp"
#include "config/show.hpp"
#include "scenario/values.hpp"
#include "scenario/whole_file.hpp"

namespace patchbay::scenario {
namespace {

constexpr const char* kPolicySchema =
    R"({"anyOf": [{"type": "string"}, {"type": "object", "properties": {"plugin": {"type": "string"}}}]})";

// ---- steps -------------------------------------------------------------------------------------

template <class Read> // void read(const Node&, Step&, Faults&)
void add_step(Table<Step>& t, KeyInfo info, Read read) {
    const std::string name = info.name;
    t.custom(std::move(info), [name, read](const Node* given, Step& out, Faults& faults) {
        if (!given) return Node{};
        out.name = name;
        out.origin = given->origin;
        read(*given, out, faults);
        return Node{};
    });
}

// {} means none of what must be named in full. Elsewhere it would hold always.
bool may_be_empty(Subject subject) { return subject == Subject::kScheduled || subject == Subject::kFinished; }

void check_named(const Node& node, const SubjectInfo& subject, Faults& faults) {
    if (may_be_empty(subject.subject) || node.kind != NodeKind::kMap || !node.entries.empty()) return;
    const bool events = subject.subject == Subject::kKvEvents;
    faults.add(node.origin, "'" + std::string(subject.name) + "' names nothing, and so expects nothing" +
                                (events ? " (to expect none: {stored: 0, removed: 0, cleared: 0})" : ""));
}

step::Expect read_expect(const Node& node, Faults& faults) {
    step::Expect out;
    if (!config::is_section(node, "'expect'", faults)) return out;
    std::vector<KeyInfo> known;
    for (const SubjectInfo& s : subjects()) known.push_back({.name = s.name});
    config::check_unknown_keys(node, known, {}, faults);
    for (const Entry& entry : node.entries)
        for (const SubjectInfo& s : subjects()) {
            if (s.name != entry.key) continue;
            out.expectations.push_back({s.subject, read_value(entry.value, s, faults), entry.key_origin});
            check_named(entry.value, s, faults);
        }
    if (out.expectations.empty()) faults.add(node.origin, "'expect' expects nothing");
    return out;
}

KeyInfo whole(const char* name, double min, double max, const char* unit, const char* description) {
    return {.name = name, .type = ValueType::kInt, .description = description, .unit = unit, .min = min, .max = max};
}

Table<Step> step_table(const host::Registry* registry) { // null: for its keys alone
    Table<Step> t;
    const auto requests = std::make_shared<const Table<Arrival>>(request_table());
    KeyInfo add{.name = "add", .type = ValueType::kList, .description = "requests arrive, in this order"};
    add.children.push_back({.name = "request", .type = ValueType::kMap, .children = requests->keys()});
    add_step(t, add, [requests](const Node& node, Step& out, Faults& faults) {
        step::Add what;
        if (node.kind != NodeKind::kList) wrong(node, "add", "a list of requests", faults);
        for (const Node& item : node.items) {
            if (!config::is_section(item, "an item of 'add'", faults)) continue;
            what.requests.emplace_back().origin = item.origin;
            requests->read(item, what.requests.back(), faults);
        }
        out.what = std::move(what);
    });
    add_step(t, other("output", map_of(kTokensSchema),
                      "the step is back: what the model sampled, drafts that it accepts first; synthetic tokens for "
                      "those who are not named"),
             [](const Node& node, Step& out, Faults& faults) {
                 out.what = step::Output{read_texts(node, "output", faults)};
             });
    add_step(t, other("draft", map_of(kPathsSchema),
                      "what the proposer drafts after the output above it: a chain, or a list of them, the likeliest "
                      "first"),
             [](const Node& node, Step& out, Faults& faults) {
                 out.what = step::Draft{read_trees(node, "draft", faults)};
             });
    add_step(t, other("abort", kIdsSchema, "these requests are aborted"),
             [](const Node& node, Step& out, Faults& faults) {
                 out.what = step::Abort{read_names(node, "abort", faults)};
             });
    add_step(t, other("swap", kPolicySchema, "another scheduler takes the slot before the next step"),
             [registry](const Node& node, Step& out, Faults& faults) {
                 out.what = step::Swap{config::read_choice(node, "scheduler", *registry, faults)};
             });
    const KeyInfo reset{.name = "reset_prefix_cache", .type = ValueType::kEnum,
                        .description = "the prefix cache is forgotten; refused: it is not, as blocks are in use",
                        .choices = {"done", "refused"}};
    add_step(t, reset, [reset](const Node& node, Step& out, Faults& faults) {
        out.what = step::ResetPrefixCache{config::read_word(node, reset, faults).value_or(0) == 0 ? Answer::kDone
                                                                                                 : Answer::kRefused};
    });
    add_step(t, other("in_flight", kIdsSchema,
                      "the step, which has these requests, stays on the device while the next one is planned"),
             [](const Node& node, Step& out, Faults& faults) {
                 out.what = step::InFlight{read_names(node, "in_flight", faults)};
             });
    KeyInfo expect{.name = "expect", .type = ValueType::kMap, .description = "what must be so now"};
    for (const SubjectInfo& s : subjects()) {
        std::string schema = schema_of(s.shape);
        if (schema.starts_with(R"({"type": "object")") && !may_be_empty(s.subject))
            schema.insert(schema.size() - 1, R"(, "minProperties": 1)");
        expect.children.push_back(other(s.name, std::move(schema), s.description));
    }
    add_step(t, expect, [](const Node& node, Step& out, Faults& faults) { out.what = read_expect(node, faults); });
    const KeyInfo run = whole("run", 1, kMaxSteps, "steps", "so many steps come back, with synthetic tokens");
    add_step(t, run, [run](const Node& node, Step& out, Faults& faults) {
        out.what = step::Run{static_cast<uint32_t>(config::read_uint(node, run, faults).value_or(1))};
    });
    const KeyInfo drain = whole("drain", 1, kMaxSteps, "steps",
                                "steps come back with synthetic tokens until every request has ended: at most so many");
    add_step(t, drain, [drain](const Node& node, Step& out, Faults& faults) {
        out.what = step::Drain{static_cast<uint32_t>(config::read_uint(node, drain, faults).value_or(1))};
    });
    const KeyInfo wait = whole("wait_ms", 1, kMaxMs, "ms", "time passes on the scenario's clock");
    add_step(t, wait, [wait](const Node& node, Step& out, Faults& faults) {
        out.what = step::Wait{config::read_uint(node, wait, faults).value_or(1)};
    });
    return t;
}

std::vector<Step> read_steps(const Node& node, const Table<Step>& table, Faults& faults) {
    std::vector<Step> out;
    if (node.kind != NodeKind::kList) wrong(node, "steps", "a list of steps", faults);
    for (const Node& item : node.items) {
        if (item.kind != NodeKind::kMap) {
            faults.add(item.origin, "a step is " + item.describe() + ", expected one key with its value");
            continue;
        }
        if (item.entries.size() != 1)
            faults.add(item.origin, "a step has " + std::to_string(item.entries.size()) +
                                        " keys, expected one (begin each step with '- ')");
        table.read(item, out.emplace_back(), faults);
        if (out.back().origin.line == 0) out.pop_back(); // its key is unknown
    }
    return out;
}

// ---- the file ----------------------------------------------------------------------------------

Table<config::EngineSettings> engine_table() {
    using E = config::EngineSettings;
    using config::AsyncScheduling;
    Table<E> t;
    t.key("block_size", &E::block_size, {1, 256, "tokens"}, "tokens in a KV page; a power of two")
        .key("num_blocks", &E::num_blocks, {1, 1 << 20, "pages"}, "KV pages, all usable; 1000 where it is left out")
        .key("max_num_batched_tokens", &E::max_num_batched_tokens, {1, kMaxTokens, "tokens"}, "token budget of a step")
        .key("max_num_seqs", &E::max_num_seqs, {1, 65536, "sequences"}, "sequences that run at once")
        .key("max_model_len", &E::max_model_len, {0, kMaxTokens, "tokens"}, "of a request; 0: what the pages hold")
        .key("enable_chunked_prefill", &E::enable_chunked_prefill, "let a prompt be computed over several steps")
        .key("long_prefill_token_threshold", &E::long_prefill_token_threshold, {0, kMaxTokens, "tokens"},
             "most prompt tokens of one request in a step; 0: no limit")
        .key("enable_prefix_caching", &E::enable_prefix_caching, "reuse the KV blocks of equal prefixes")
        .key("watermark", &E::watermark, {0, 0.5, ""}, "share of pages kept free when a request is admitted")
        .key("adaptive_watermark", &E::adaptive_watermark, "keep more pages free while requests are preempted")
        .key("reserve_full_sequence", &E::reserve_full_sequence,
             "admit a request only when there are free pages for all its tokens")
        .word("preemption_mode", &E::preemption_mode,
              {{"recompute", config::PreemptionMode::kRecompute},
               {"swap", config::PreemptionMode::kSwap},
               {"auto", config::PreemptionMode::kAuto}},
              "what becomes of a preempted request's KV")
        .key("num_swap_blocks", &E::num_swap_blocks, {0, 1 << 20, "pages"},
             "KV pages in host memory, with preemption_mode: swap and auto; 1000 where it is left out")
        .key("num_speculative_tokens", &E::num_speculative_tokens, {0, 64, "tokens"}, "drafts a sequence and step")
        .key("max_waiting", &E::max_waiting, {0, 1u << 31, "requests"},
             "requests that may wait; further ones are refused; 0: no limit")
        .word("async_scheduling", &E::async_scheduling, {{"off", AsyncScheduling::kOff}, {"on", AsyncScheduling::kOn}},
              "plan a step while the one before is in flight");
    return t;
}

Table<config::SpeculationSettings> speculation_table() {
    Table<config::SpeculationSettings> t;
    t.key("max_paths", &config::SpeculationSettings::max_paths, {1, 16, "paths"},
          "chains that a sequence's drafts may branch into; 1: no branches");
    return t;
}

struct File {
    config::EngineSettings engine;
    config::SpeculationSettings speculative;
    Model model;
    Scenario scenario;
};

Table<File> file_table(const host::Registry* registry) {
    Table<File> t;
    t.custom(other("description", R"({"type": "string"})", "what the file shows, for its readers"),
             [](const Node* given, File&, Faults& faults) {
                 if (given && given->kind != NodeKind::kScalar) wrong(*given, "description", "a string", faults);
                 return Node{};
             });
    t.custom(other("policy", kPolicySchema, "the scheduler: a name, or {plugin: NAME, …} with its own keys; fcfs"),
             [registry](const Node* given, File& out, Faults& faults) {
                 if (given) out.scenario.policy = config::read_choice(*given, "scheduler", *registry, faults);
                 return Node{};
             });
    t.custom(other("kv_policy", kPolicySchema, "which cached block is evicted: a name, or {plugin: NAME, …}; none"),
             [registry](const Node* given, File& out, Faults& faults) {
                 if (given) out.scenario.kv_policy = config::read_choice(*given, "kv_policy", *registry, faults);
                 return Node{};
             });
    t.section("engine", &File::engine, engine_table(), "sizes and switches, as in an engine's configuration");
    t.section("speculative", &File::speculative, speculation_table(), "how drafts are verified");
    t.section("model", &File::model, model_table(), "what the engine must know of the model that is not there");
    t.custom(whole("step_ms", 0, 1e6, "ms", "time that a step takes on the scenario's clock; 1 where it is left out"),
             [](const Node* given, File& out, Faults& faults) {
                 const KeyInfo info = whole("step_ms", 0, 1e6, "ms", "");
                 if (given)
                     out.scenario.step_ms = static_cast<uint32_t>(config::read_uint(*given, info, faults).value_or(1));
                 return Node{};
             });
    const auto steps = std::make_shared<const Table<Step>>(step_table(registry));
    std::string one = config::json_schema_of(steps->keys());
    one.insert(one.size() - 1, R"(, "minProperties": 1, "maxProperties": 1)");
    t.custom(other("steps", R"({"type": "array", "items": )" + one + "}", "what happens, in order; each has one key"),
             [steps](const Node* given, File& out, Faults& faults) {
                 if (given) out.scenario.steps = read_steps(*given, *steps, faults);
                 return Node{};
             })
        .required();
    return t;
}

}  // namespace

Result<Scenario> load(const Node& root, const host::Registry& registry, const Limits& limits) {
    Faults faults;
    File file;
    file.engine.watermark = 0;
    file_table(&registry).read(root, file, faults);
    Scenario& out = file.scenario;
    out.limits = limits;
    out.engine = file.engine;
    out.speculative = file.speculative;
    if (out.engine.num_blocks == 0) out.engine.num_blocks = 1000;
    if (out.engine.num_swap_blocks == 0) out.engine.num_swap_blocks = 1000;
    out.model = std::move(file.model);
    check_whole_file(out, root, faults);
    if (faults.any()) return faults.failure();
    return out;
}

std::string json_schema() { return config::json_schema("Patchbay scenario", file_table(nullptr).keys()); }

}  // namespace patchbay::scenario
