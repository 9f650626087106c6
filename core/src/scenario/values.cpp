#include "scenario/values.hpp"

namespace patchbay::scenario {

using config::Entry;
using config::Faults;
using config::KeyInfo;
using config::Node;
using config::NodeKind;
using config::ValueType;

std::string map_of(const std::string& value) { return R"({"type": "object", "additionalProperties": )" + value + "}"; }

std::string schema_of(const Value& shape) {
    struct Of {
        std::string operator()(uint64_t) const { return R"({"type": "integer", "minimum": 0})"; }
        std::string operator()(const std::string&) const { return R"({"type": "string"})"; }
        std::string operator()(const Names&) const { return kIdsSchema; }
        std::string operator()(const Counts&) const { return map_of(R"({"type": "integer", "minimum": 0})"); }
        std::string operator()(const Words&) const {
            return map_of(R"({"enum": ["stop", "length", "abort", "error"]})");
        }
        std::string operator()(const Texts&) const { return map_of(kTokensSchema); }
    };
    return std::visit(Of{}, shape);
}

KeyInfo other(std::string name, std::string schema, std::string meaning) {
    return {.name = std::move(name), .type = ValueType::kOther, .meaning = std::move(meaning),
            .json_schema = std::move(schema)};
}

void wrong(const Node& node, const std::string& name, const std::string& expected, Faults& faults) {
    faults.add(node.origin, "'" + name + "' is " + node.describe() + ", expected " + expected);
}

Tokens read_tokens(const Node& node, const std::string& name, Faults& faults) {
    Tokens out;
    if (node.kind != NodeKind::kList) wrong(node, name, "a list of token ids", faults);
    const KeyInfo info{.name = name, .type = ValueType::kInt, .min = -2147483648.0, .max = 2147483647.0};
    for (const Node& item : node.items)
        if (const auto token = config::read_int(item, info, faults)) out.push_back(static_cast<TokenId>(*token));
    return out;
}

Names read_names(const Node& node, const std::string& name, Faults& faults) {
    Names out;
    if (node.kind != NodeKind::kList) wrong(node, name, "a list of requests", faults);
    for (const Node& item : node.items) {
        if (item.kind != NodeKind::kScalar) wrong(item, name, "the id of a request", faults);
        else out.push_back(item.text);
    }
    return out;
}

namespace {

uint64_t read_count(const Node& node, const std::string& name, Faults& faults) {
    const KeyInfo info{.name = name, .type = ValueType::kInt, .min = 0, .max = 0x1p40};
    return config::read_uint(node, info, faults).value_or(0);
}

template <class Map, class Read>
Map read_map(const Node& node, const std::string& name, Faults& faults, Read&& read) {
    Map out;
    if (node.kind != NodeKind::kMap) wrong(node, name, "a map of requests", faults);
    for (const Entry& entry : node.entries) out[entry.key] = read(entry.value, name + "." + entry.key, faults);
    return out;
}

std::string read_reason(const Node& node, const std::string& name, Faults& faults) {
    const KeyInfo info{.name = name, .type = ValueType::kEnum, .choices = {"stop", "length", "abort", "error"}};
    const auto index = config::read_word(node, info, faults);
    return index ? info.choices[*index] : "";
}

}  // namespace

Texts read_texts(const Node& node, const std::string& name, Faults& faults) {
    return read_map<Texts>(node, name, faults, read_tokens);
}

Trees read_trees(const Node& node, const std::string& name, Faults& faults) {
    const auto paths = [](const Node& of, const std::string& key, Faults& all) {
        std::vector<Tokens> out;
        if (of.kind != NodeKind::kList || of.items.empty() || of.items[0].kind != NodeKind::kList)
            return std::vector<Tokens>{read_tokens(of, key, all)};
        for (const Node& path : of.items) out.push_back(read_tokens(path, key, all));
        return out;
    };
    return read_map<Trees>(node, name, faults, paths);
}

Value read_value(const Node& node, const SubjectInfo& subject, Faults& faults) {
    struct Read {
        const Node& node;
        const std::string name;
        Faults& faults;
        Value operator()(uint64_t) const { return read_count(node, name, faults); }
        Value operator()(const std::string&) const {
            if (node.kind != NodeKind::kScalar) wrong(node, name, "a name", faults);
            return node.text;
        }
        Value operator()(const Names&) const { return read_names(node, name, faults); }
        Value operator()(const Counts&) const { return read_map<Counts>(node, name, faults, read_count); }
        Value operator()(const Words&) const { return read_map<Words>(node, name, faults, read_reason); }
        Value operator()(const Texts&) const { return read_texts(node, name, faults); }
    };
    return std::visit(Read{node, subject.name, faults}, subject.shape);
}

const std::vector<SubjectInfo>& subjects() {
    static const std::vector<SubjectInfo> all = {
        {Subject::kScheduled, "scheduled", Counts{}, "tokens that the step computes, of all that it has; {}: nobody"},
        {Subject::kPreempted, "preempted", Names{}, "who was preempted for the step, in the order of the plan"},
        {Subject::kWaiting, "waiting", Names{}, "who waits, the first in the queue first"},
        {Subject::kRunning, "running", Names{}, "who runs, in order of admission"},
        {Subject::kFinished, "finished", Words{}, "who has ended since this was last asked, and why"},
        {Subject::kInFlight, "in_flight", Counts{}, "tokens of steps that are not back, of these"},
        {Subject::kComputed, "computed", Counts{}, "tokens whose KV is there, of these"},
        {Subject::kCachedTokens, "cached_tokens", Counts{}, "prompt tokens that came from the prefix cache, of these"},
        {Subject::kDrafts, "drafts", Counts{}, "drafts that wait to be verified, of these"},
        {Subject::kPreemptions, "preemptions", Counts{}, "how often these were preempted"},
        {Subject::kText, "text", Texts{}, "the output so far, of these"},
        {Subject::kFreeBlocks, "free_blocks", uint64_t{}, "KV blocks that nobody holds, cached ones too"},
        {Subject::kCachedBlocks, "cached_blocks", uint64_t{}, "of these, the ones that can be found again"},
        {Subject::kHitTokens, "hit_tokens", uint64_t{}, "tokens that were found cached, counted once a request"},
        {Subject::kQueryTokens, "query_tokens", uint64_t{}, "tokens that were looked for, counted once a request"},
        {Subject::kPlanFaults, "plan_faults", uint64_t{}, "plans that were refused so far"},
        {Subject::kSwapped, "swapped", Names{}, "who waits with KV in host memory, the first in the queue first"},
        {Subject::kFreeSwapBlocks, "free_swap_blocks", uint64_t{}, "KV blocks in host memory that nobody holds"},
        {Subject::kPolicy, "policy", std::string{}, "the scheduler that has the slot"},
    };
    return all;
}

bool is_of_plan(Subject s) { return s == Subject::kScheduled || s == Subject::kPreempted; }

}  // namespace patchbay::scenario
