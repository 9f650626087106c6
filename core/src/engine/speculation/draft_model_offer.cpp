#include "engine/speculation/draft_model_offer.hpp"

namespace patchbay::engine {

DraftModelOffer::DraftModelOffer(DraftModel* loaded)
    : loaded_(loaded), service_{sizeof(pb_runner), PB_RUNNER_REVISION, this,
                                [](void* ctx, const pb_runner_load* what, pb_runner_facts* facts, pb_str* why) {
                                    return static_cast<DraftModelOffer*>(ctx)->load(*Whole(what), facts, why);
                                },
                                [](void* ctx, pb_runner_batch* batch, pb_str* why) {
                                    return static_cast<DraftModelOffer*>(ctx)->forward(batch, why);
                                }} {}

pb_status DraftModelOffer::load(const pb_runner_load& what, pb_runner_facts* facts, pb_str* why) {
    if (!loaded_)
        return refuse(PB_UNSUPPORTED, why,
                      "the engine was started without a draft model, whose KV would lie in the same pages "
                      "(start it with this proposer)");
    const auto wanted = settings_of(what);
    if (wanted != loaded_->opened().settings()) {
        const auto path = wanted.find("path");
        return refuse(PB_UNSUPPORTED, why,
                      "the draft model " + (path == wanted.end() ? "of these settings" : "'" + path->second + "'") +
                      " is not the one that the engine was started with, '" + loaded_->opened().identity() + "'");
    }
    taken_ = true;
    copy_out(facts, loaded_->opened().facts());
    return PB_OK;
}

pb_status DraftModelOffer::forward(pb_runner_batch* batch, pb_str* why) {
    if (!taken_) return refuse(PB_INVALID, why, "no model was loaded that could be run");
    const pb_runner& its = loaded_->service();
    return its.forward(its.ctx, batch, why);
}

pb_status DraftModelOffer::refuse(pb_status status, pb_str* why, std::string text) {
    why_ = std::move(text);
    *why = {why_.data(), why_.size()};
    return status;
}

}  // namespace patchbay::engine
