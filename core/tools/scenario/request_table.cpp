// What an item of `add` can say, and what it cannot.
#include "scenario/values.hpp"

namespace patchbay::scenario {
namespace {

void read_run(const Node& node, Prompt& out, Faults& faults) {
    const Tokens run = read_tokens(node, "repeat", faults);
    if (run.size() != 2 || run[1] < 1 || run[1] > kMaxTokens)
        return faults.add(node.origin,
                          "'repeat' is " + node.describe() + ", expected [token, times], times 1 to 1048576");
    out.repeated = run[0];
    out.times = static_cast<uint32_t>(run[1]);
}

Prompt read_prompt(const Node& node, Faults& faults) {
    Prompt out;
    if (node.kind == NodeKind::kScalar) {
        const KeyInfo info{.name = "prompt", .type = ValueType::kInt, .min = 0, .max = kMaxTokens};
        out.made_up = static_cast<uint32_t>(config::read_uint(node, info, faults).value_or(0));
        return out;
    }
    if (node.kind != NodeKind::kMap) {
        wrong(node, "prompt", "a number of tokens, or a map of ids, repeat and then", faults);
        return out;
    }
    const std::vector<KeyInfo> known = {{.name = "ids"}, {.name = "repeat"}, {.name = "then"}};
    config::check_unknown_keys(node, known, {}, faults);
    const Node *ids = node.find("ids"), *repeat = node.find("repeat"), *then = node.find("then");
    if (ids && repeat) faults.add(repeat->origin, "'repeat' beside 'ids', expected one of them");
    if (!ids && !repeat) faults.add(node.origin, "'prompt' has neither 'ids' nor 'repeat'");
    if (ids) out.tokens = read_tokens(*ids, "ids", faults);
    if (repeat) read_run(*repeat, out, faults);
    const Tokens rest = then ? read_tokens(*then, "then", faults) : Tokens{};
    out.tokens.insert(out.tokens.end(), rest.begin(), rest.end());
    return out;
}

constexpr const char* kPromptSchema = R"({"anyOf": [{"type": "integer", "minimum": 0, "maximum": 1048576},
    {"type": "object", "properties": {"ids": {"type": "array", "items": {"type": "integer"}},
     "repeat": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
     "then": {"type": "array", "items": {"type": "integer"}}}, "additionalProperties": false}]})";

config::Table<grammar::StructuredOutputs> structure_table() {
    using S = grammar::StructuredOutputs;
    config::Table<S> t;
    t.values("choice", &S::choice, {}, "texts of which the output is one")
        .key("regex", &S::regex, "regular expression that the whole output matches")
        .key("json", &S::json, "text of a JSON Schema")
        .key("grammar", &S::grammar, "text of a grammar, GBNF or Lark");
    return t;
}

void add_structure(Table<Arrival>& t) {
    const auto table = std::make_shared<const config::Table<grammar::StructuredOutputs>>(structure_table());
    KeyInfo info{.name = "structured_outputs",
                 .type = ValueType::kMap,
                 .description = "the form of its output: one of choice, regex, json and grammar; with model.vocabulary",
                 .children = table->keys()};
    t.custom(std::move(info), [table](const Node* given, Arrival& out, Faults& faults) {
        if (!given || !config::is_section(*given, "'structured_outputs'", faults)) return Node{};
        auto& asked = out.structured_outputs.emplace();
        table->read(*given, asked, faults);
        const int forms = asked.json.has_value() + asked.regex.has_value() + !asked.choice.empty() +
                          asked.grammar.has_value();
        if (forms != 1)
            faults.add(given->origin, "'structured_outputs' has " + std::to_string(forms) +
                                          " forms, expected one of choice, regex, json and grammar");
        return Node{};
    });
}

// What other engines can do and this one cannot: named as such, in place of "unknown key".
void refuse(Table<Arrival>& t, const char* name, const std::string& why) {
    t.custom(other(name, R"({"not": {}})", why), [name, why](const Node* given, Arrival&, Faults& faults) {
        if (given) faults.add(given->origin, "'" + std::string(name) + "' is not in this engine: " + why);
        return Node{};
    });
}

}  // namespace

config::Table<Arrival> request_table() {
    Table<Arrival> t;
    t.key("id", &Arrival::id, "what the file calls it: a word").required();
    t.custom(other("prompt", kPromptSchema,
                   "so many tokens that no other request has; or {ids: […]}; or {repeat: [token, times]}; and after "
                   "these {…, then: […]}"),
             [](const Node* given, Arrival& out, Faults& faults) {
                 if (given) out.prompt = read_prompt(*given, faults);
                 return Node{};
             })
        .required();
    t.key("priority", &Arrival::priority, "lower runs first, where the policy asks")
        .key("tenant", &Arrival::tenant, "whose it is, where the policy asks")
        .key("arrival_ms", &Arrival::arrival_ms, {0, kMaxMs, "ms"}, "on the scenario's clock; 0: now")
        .key("deadline_ms", &Arrival::deadline_ms, {0, kMaxMs, "ms"}, "on the scenario's clock; 0: none")
        .key("n", &Arrival::n, {1, engine::kMaxOutputs, "outputs"}, "of one prompt: a, a.1, a.2, …")
        .key("beam_width", &Arrival::beam_width, {0, kMaxBeams, "beams"},
             "beam search: beams a, a.1, a.2, …, of which each goes on with candidates of its own; 0: none")
        .key("skip_reading_prefix_cache", &Arrival::skip_reading_prefix_cache,
             "its prompt is computed though it is cached, as with prompt_logprobs")
        .key("max_tokens", &Arrival::max_tokens, {1, kMaxTokens, "tokens"}, "output after which it ends")
        .key("min_tokens", &Arrival::min_tokens, {0, kMaxTokens, "tokens"}, "output before which nothing stops it")
        .key("expected_output_tokens", &Arrival::expected_output_tokens, {0, kMaxTokens, "tokens"},
             "what its sender says it will make; 0: not said")
        .values("stop_token_ids", &Arrival::stop_token_ids, {0, kVocabSize - 1, ""}, "tokens that end it")
        .key("ignore_eos", &Arrival::ignore_eos, "the engine's end tokens do not end it")
        .values("stop", &Arrival::stop, {}, "texts that end it; with model.vocabulary")
        .key("include_stop_str_in_output", &Arrival::include_stop_str_in_output, "its text ends with that one")
        .key("salt", &Arrival::salt, "it shares cached blocks only with requests that have the same")
        .key("refused", &Arrival::refused, "the engine refuses it, with a text in which this is found");
    add_structure(t);
    refuse(t, "best_of", "outputs are chosen by logits, and there are none without a model");
    refuse(t, "prompt_logprobs", "there are no logits without a model (use skip_reading_prefix_cache)");
    refuse(t, "logprobs", "there are no logits without a model");
    return t;
}

}  // namespace patchbay::scenario
