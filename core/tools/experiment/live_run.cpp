#include "experiment/live_run.hpp"

namespace patchbay::experiment {

void mark_running(const Shown& shown, const std::string& variant, bool is_running) {
    if (!shown.metrics) return;
    shown.metrics->gauge("patchbay_experiment_info", {{"experiment", shown.experiment}, {"variant", variant}})
        .Set(is_running);
}

LiveRun::LiveRun(const Shown& shown, const std::string& variant, const RunSlot& slot, size_t run, size_t runs,
                 RowSink* sink)
    : shown_(shown), variant_(variant), slot_(slot), run_(run), runs_(runs), sink_(sink) {
    if (shown_.metrics) plugins_.emplace(*shown_.metrics);
}

LiveRun::~LiveRun() { mark_running(shown_, variant_, false); }

void LiveRun::on_engine(const engine::EngineFacts& facts) {
    if (!shown_.metrics) return;
    engine_.emplace(*shown_.metrics, facts, shown_.version);
    mark_running(shown_, variant_, true);
}

void LiveRun::on_progress(size_t finished, size_t of) {
    if (shown_.progress) shown_.progress({run_, runs_, &variant_, slot_.repeat, finished, of});
}

void LiveRun::on_request(engine::RequestId id, uint64_t arrival_ns, uint32_t prompt_tokens, uint32_t n) {
    if (engine_) engine_->on_request(id, arrival_ns, prompt_tokens, n);
}

void LiveRun::on_output(const engine::RequestOutput& output) {
    if (engine_) engine_->on_output(output);
}

void LiveRun::on_step(const engine::StepReport& report) {
    if (engine_) engine_->on_end(report);
}

void LiveRun::on_rows(Rows rows) {
    if (sink_) sink_->take(rows);
    for (NumberedRequest& r : rows.requests) {
        if (r.number >= requests_.size()) requests_.resize(r.number + 1);
        requests_[r.number] = std::move(r.request);
    }
}

void LiveRun::add(const std::string& kind, const std::string& component, const std::string& name, double amount) {
    if (plugins_) plugins_->add(kind, component, name, amount);
}

void LiveRun::set(const std::string& kind, const std::string& component, const std::string& name, double value) {
    if (plugins_) plugins_->set(kind, component, name, value);
}

}  // namespace patchbay::experiment
