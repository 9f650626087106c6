#include "runner/attention_in_use.hpp"

#include <algorithm>

namespace patchbay::runner {

Result<> AttentionInUse::check(const host::Component& attention) const {
    if (!device_.computes() && !attention.table<pb_attention>()->cost)
        return fail(StatusCode::kUnsupported, attention.label() + (" does not say what it costs on device '" +
                                                                   device_.name + "', which computes nothing"));
    for (const Attending& model : models_) PB_CHECK(model.layers->check_pages(attention));
    return {};
}

Result<bool> AttentionInUse::use(const host::Component& attention) {
    bool reads = true;
    for (size_t i = 0; i < models_.size(); ++i) {
        const Result<bool> bound = models_[i].layers->rebind(attention);
        if (!bound) {
            for (size_t before = 0; before < i; ++before) {
                (void)models_[before].layers->rebind(*current_); // which is bound still
                models_[before].layers->unbind_other();
            }
            return bound;
        }
        reads = reads && *bound;
    }
    current_ = &attention;
    for (const Attending& model : models_) model.renew_graphs();
    return reads;
}

bool AttentionInUse::keeps(const host::Component& attention) const {
    return std::ranges::all_of(models_, [&](const Attending& model) { return model.layers->keeps(attention); });
}

void AttentionInUse::forget() {
    for (const Attending& model : models_) model.layers->unbind_other();
}

void AttentionInUse::end() {
    for (const Attending& model : models_) model.layers->unbind();
}

}  // namespace patchbay::runner
