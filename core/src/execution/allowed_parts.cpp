#include "execution/allowed_parts.hpp"

#include <string>

#include "config/slots.hpp"
#include "execution/model_choice.hpp"

namespace patchbay::execution {

void check_allowed_plugins(const config::Loaded& loaded, const host::Registry& all, config::Faults& faults) {
    const config::EngineConfig& c = loaded.config;
    if (!c.allowed_plugins) return;
    const host::Registry registry = all.restricted_to(*c.allowed_plugins);
    const auto check = [&](const std::string& kind, const std::string& plugin) {
        const config::Node *named = loaded.effective.at(kind + ".plugin"), *section = loaded.effective.find(kind);
        const config::Node* const place = named ? named : section;
        if (const auto found = registry.find(kind, plugin); !found)
            faults.add(place ? place->origin : config::Origin{}, found.error());
    };
    for (const config::SlotInfo& slot : config::slots())
        if (const config::PluginChoice* const choice = slot.of(c)) check(slot.kind, choice->plugin);
    if (c.model.plugin != "auto") return check("model", c.model.plugin);
    if (const auto model = choose_model(c, all, Numbers::kSome)) check("model", model->plugin);
}

}  // namespace patchbay::execution
