#include "cli/commands.hpp"

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "base/suggest.hpp"
#include "cli/plugin_dirs.hpp"
#include "cli/print_table.hpp"
#include "host/plugin_list.hpp"

namespace patchbay::cli {
namespace {

using json = nlohmann::json;

struct ModelsOptions {
    std::vector<std::string> plugin_dirs;
    std::string architecture;
    bool as_json = false;
};

struct Served { // an architecture and the model plugin that serves it
    std::string architecture, plugin, summary;
};

std::vector<Served> served(const host::Registry& registry) {
    std::vector<Served> out;
    std::set<std::string> seen; // the first plugin that serves it is taken
    for (const host::ListedComponent& l : host::list_components(registry, "model"))
        for (const std::string& name : l.component->architectures)
            if (l.fault.empty() && seen.insert(name).second)
                out.push_back({name, l.component->name, l.component->summary});
    return out;
}

struct Key {
    pb_key_use use = PB_KEY_READ;
    std::string name, values, note;
};

const char* word_of(pb_key_use use) {
    return use == PB_KEY_READ ? "read" : use == PB_KEY_IGNORED ? "ignored" : "limited";
}

std::string in_words(const Key& k) {
    std::string out;
    if (k.use == PB_KEY_LIMITED) out = k.values.empty() ? "refused" : "only " + k.values;
    if (k.use == PB_KEY_IGNORED && !k.note.empty())
        out = "warned about" + (k.values.empty() ? "" : " unless " + k.values);
    return k.note.empty() ? out : out + ": " + k.note;
}

// By name, the first of a name.
Result<std::vector<Key>> keys_of(const host::Registry& registry, const Served& of) {
    PB_TRY(const host::Model model, registry.model(of.plugin, {}, {}));
    std::vector<Key> out;
    if (!model.extension<pb_model_config_keys>()) return out;
    const auto put = [](void* ctx, const pb_config_key* key) {
        const auto text = [](pb_str s) { return std::string(s.data, s.size); };
        auto& all = *static_cast<std::vector<Key>*>(ctx);
        const Key one{key->use, text(key->name), text(key->values), text(key->note)};
        for (const Key& other : all)
            if (other.name == one.name) return;
        all.push_back(one);
    };
    PB_CHECK(model.checked<&pb_model_config_keys::each>(pb_str{of.architecture.data(), of.architecture.size()}, &out,
                                                        +put));
    return out;
}

json to_json(const Served& s) {
    return {{"architecture", s.architecture}, {"plugin", s.plugin}, {"summary", s.summary}};
}

void print_all(const std::vector<Served>& all, bool as_json) {
    if (as_json) {
        json out = json::array();
        for (const Served& s : all) out.push_back(to_json(s));
        std::cout << out.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
        return;
    }
    std::vector<std::vector<std::string>> rows = {{"ARCHITECTURE", "PLUGIN", "MODELS"}};
    for (const Served& s : all) rows.push_back({s.architecture, s.plugin, s.summary});
    print_table(rows);
}

Result<> print_one(const host::Registry& registry, const Served& s, bool as_json) {
    PB_TRY(const std::vector<Key> keys, keys_of(registry, s));
    if (as_json) {
        json out = to_json(s);
        out["keys"] = json::array();
        for (const Key& k : keys)
            out["keys"].push_back({{"name", k.name}, {"use", word_of(k.use)}, {"values", k.values}, {"note", k.note}});
        std::cout << out.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
        return {};
    }
    std::cout << printable(s.architecture) << ": " << s.plugin << ", " << printable(s.summary) << '\n';
    if (keys.empty()) std::cout << "the plugin does not say what it does with the keys of config.json\n";
    std::vector<std::vector<std::string>> rows = {{"KEY", "", ""}};
    for (const pb_key_use use : {PB_KEY_READ, PB_KEY_LIMITED, PB_KEY_IGNORED})
        for (const Key& k : keys)
            if (k.use == use) rows.push_back({k.name, word_of(use), in_words(k)});
    if (!keys.empty()) print_table(rows);
    return {};
}

Result<> print_models(const ModelsOptions& o) {
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    const std::vector<Served> all = served(registry);
    if (o.architecture.empty()) {
        print_all(all, o.as_json);
        for (const std::string& remark : registry.remarks())
            if (!o.as_json) std::cout << "left out: " << printable_message(remark) << '\n';
        return {};
    }
    std::vector<std::string> names;
    for (const Served& s : all) {
        if (s.architecture == o.architecture) return print_one(registry, s, o.as_json);
        names.push_back(s.architecture);
    }
    return unsupported("no model plugin serves architecture '" + printable(o.architecture) + "'" +
                       did_you_mean(o.architecture, names) + " (patchbay models lists them)" + left_out(registry));
}

}  // namespace

void add_models_command(Commands& commands) {
    const auto options = std::make_shared<ModelsOptions>();
    CLI::App* app = commands.app.add_subcommand(
        "models", "List the architectures that can be served, or how one reads each key of its config.json");
    app->footer("Examples:\n  patchbay models\n  patchbay models Qwen3ForCausalLM");
    app->add_option("ARCHITECTURE", options->architecture, "architecture as in config.json: Qwen3ForCausalLM");
    add_plugin_dirs(*app, options->plugin_dirs);
    app->add_flag("--json", options->as_json, "as JSON");
    set_action(commands, app, options, {print_models, print_error});
}

}  // namespace patchbay::cli
