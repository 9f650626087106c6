// The parts that compute, alike on all ranks: device, model and attention are chosen, checked against each other, and
// made one runner. Used by Engine::create and by the ranks that serve it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "execution/model_choice.hpp"
#include "parallel/session.hpp"
#include "runner/model_runner.hpp"

namespace patchbay::execution {

Result<pb_device_info> info_of(const host::Device&);

struct ModelParts {
    pb_device_info device_info = sized<pb_device_info>();
    ModelChoice model;
    std::string identity; // of the model's files; "dummy" where none are read
    host::Device device;
    host::Model component;
    host::Attention attention;

    std::vector<parallel::Fact> facts() const; // that must be equal on all ranks
};

Result<ModelParts> choose_parts(const config::EngineConfig&, const host::Registry&, const host::Services&);
// Takes the components out of the parts. ranks: null: this one only. draft: a draft model, or null. sampler: where it
// runs on the device, whose memory it shares; else null.
Result<std::unique_ptr<runner::ModelRunner>> load_runner(const config::EngineConfig&, ModelParts&,
                                                         runner::Ranks* ranks, Clock&,
                                                         runner::DraftModel* draft = nullptr,
                                                         const host::Component* sampler = nullptr);

}  // namespace patchbay::execution
