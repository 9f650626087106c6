#include "simulation/alone_fixture.hpp"

#include "scenario/scripted_engine.hpp"

namespace patchbay::engine::testing {

Result<std::unique_ptr<Alone>> Alone::create(config::EngineConfig like, const host::Registry& registry, TokenId end) {
    like.engine = {};
    like.engine.threads = 1;
    like.engine.num_blocks = 256;
    like.scheduler = {"fcfs", {}};
    std::unique_ptr<Alone> out(new Alone(end));
    PB_TRY(out->engine_, scenario::create_scripted(like, registry, out->clock_, {*out, {}, nullptr}));
    return out;
}

Result<std::vector<RequestOutput>> Alone::run(Request r) {
    std::vector<RequestOutput> out(r.sampling.n);
    r.arrival_ns = 0;
    r.on_output = [&](const RequestOutput& o) { out.at(o.index) = o; }; // all of it at once
    PB_CHECK(engine_->add_request(std::move(r)));
    while (engine_->has_unfinished()) {
        PB_TRY(const StepReport step, engine_->step());
        if (step.preemption.preemptions > 0) return fail("a request that is alone is preempted");
    }
    return out;
}

}  // namespace patchbay::engine::testing
