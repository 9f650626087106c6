#include "runner/model_facts.hpp"

#include <string>
#include <vector>

namespace patchbay::runner {

bool is_head(const host::Component& model) { return model.extension<pb_draft_head>() != nullptr; }

Result<pb_model_facts> read_facts(const host::Component& model, const weights::FlatConfig& flat,
                                  const ConfigReader& reader) {
    std::vector<pb_setting> items;
    for (const auto& [key, value] : flat) items.push_back({{key.data(), key.size()}, {value.data(), value.size()}});
    const pb_model_config config{sizeof(pb_model_config), static_cast<uint32_t>(items.size()), items.data(),
                                 reader.size, reader.rank, reader.max_length, 0};
    pb_model_facts facts = sized<pb_model_facts>();
    PB_CHECK(host::checked<&pb_model::load_config>(model, &config, &facts));
    if (facts.vocab_size == 0 || (facts.layer_count == 0 && !is_head(model)))
        return fail("model '" + std::string(model.type().name) + "' reports no layers or no vocabulary");
    return facts;
}

}  // namespace patchbay::runner
