#include "serve/loop_control.hpp"

#include "engine/engine_control.hpp"
#include "serve/served_model.hpp"

namespace patchbay::serve {

Result<std::unique_ptr<LoopControl>> LoopControl::start(LoopControlOptions options, engine::Engine& engine,
                                                        metrics::Metrics& metrics) {
    std::unique_ptr<LoopControl> out(new LoopControl(engine, metrics));
    LoopControl& self = *out;
    const std::string path = options.admin.requested.model.path;
    Controlled controlled{self.engine_,
                          self.journal_,
                          self.metrics_,
                          [shown = ShownModel{default_model_name(path), path, engine.facts()}] { return shown; },
                          std::move(options.task),
                          std::move(options.version),
                          std::move(options.drain),
                          [&self] { return HttpResponse{200, self.metrics_.text(), kMetricsType}; },
                          [&self](const std::string& change) { self.note(change); }};
    PB_TRY(self.admin_, Admin::start(std::move(options.admin), std::move(controlled)));
    return out;
}

LoopControl::LoopControl(engine::Engine& engine, metrics::Metrics& metrics)
    : observed_(engine), engine_(engine), journal_(engine.facts().plugins, engine.control().configuration()),
      metrics_(metrics) {
    observed_.observe(*this);
}

LoopControl::~LoopControl() { end(); }

void LoopControl::on_end(const engine::StepReport& report) { journal_.on_step(report); }

void LoopControl::end() {
    observed_.stop_observing(*this);
    engine_.end();
    if (admin_) admin_->stop();
}

void LoopControl::note(const std::string& change) {
    const std::lock_guard lock(mutex_);
    changes_.push_back(change);
}

std::vector<std::string> LoopControl::changes() const {
    const std::lock_guard lock(mutex_);
    return changes_;
}

}  // namespace patchbay::serve
