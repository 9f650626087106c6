#include "experiment/sampling_table.hpp"

#include <concepts>
#include <memory>
#include <utility>

#include "engine/request/parameters.hpp"

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

void add_structure(config::Table<engine::SamplingParams>& t, const engine::ParameterInfo& p) {
    const auto table = std::make_shared<config::Table<grammar::StructuredOutputs>>(structure_table());
    config::KeyInfo info{.name = p.name,
                         .type = config::ValueType::kMap,
                         .description = std::string(p.key_help) + ": one of " + grammar::StructuredOutputs::kForms,
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

template <class T>
config::Table<T> keys_of();

// Adds the key of a parameter by the type of what it sets.
template <class T>
struct KeyAdder {
    config::Table<T>& table;
    const engine::ParameterInfo& info;

    template <class V>
    void operator()(V T::*field) const {
        if constexpr (engine::kHasRows<V>) table.section(info.name, field, keys_of<V>(), info.key_help);
        else table.key(info.name, field, bounds(), info.key_help);
    }
    template <class V>
    void operator()(std::vector<V> T::*field) const { table.values(info.name, field, bounds(), info.key_help); }
    void operator()(EarlyStopping T::*field) const {
        std::vector<config::Word<EarlyStopping>> words;
        for (const auto& [text, value] : engine::kEarlyStoppingWords) words.push_back({text, value});
        table.word(info.name, field, std::move(words), info.key_help);
    }
    void operator()(std::optional<grammar::StructuredOutputs> T::*) const {
        if constexpr (std::same_as<T, engine::SamplingParams>) add_structure(table, info);
    }
    // No parameter of these types has a key yet.
    void operator()(std::optional<std::vector<text::TokenId>> T::*) const {}
    void operator()(std::map<text::TokenId, float> T::*) const {}

    Bounds bounds() const { return {info.low, info.high, info.unit}; }
};

template <class T>
config::Table<T> keys_of() {
    config::Table<T> t;
    for (const engine::ParameterRow<T>& row : engine::rows_of<T>())
        if (row.info.key_help) std::visit(KeyAdder<T>{t, row.info}, row.field);
    return t;
}

}  // namespace

config::Table<engine::SamplingParams> sampling_table() { return keys_of<engine::SamplingParams>(); }

}  // namespace patchbay::experiment
