// The weights of a model under test, drawn at random so that what they multiply keeps its size.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "conformance/check.hpp"
#include "conformance/reference_device.hpp"

namespace patchbay::conformance {

class DrawnWeights {
  public:
    explicit DrawnWeights(uint64_t seed) : seed_(seed) {}
    Result<> draw(const host::Component& model, const pb_model_facts&);

    size_t count() const { return specs_.size(); }
    const pb_weight_spec& spec(size_t index) const { return specs_[index]; }
    pb_weight& at(size_t index) { return *weights_[index]; } // one that others are tied to is the same for all
    const pb_weight& at(size_t index) const { return *weights_[index]; }
    pb_weight* const* handles() const { return handles_.data(); }

  private:
    uint64_t seed_;
    std::vector<pb_weight_spec> specs_;
    std::vector<std::shared_ptr<pb_weight>> weights_;
    std::vector<pb_weight*> handles_;
};

}  // namespace patchbay::conformance
