#include "engine/output/output_state.hpp"

#include "engine/output/output_text.hpp"

namespace patchbay::engine {

OutputState::OutputState() = default;
OutputState::OutputState(OutputState&&) noexcept = default;
OutputState& OutputState::operator=(OutputState&&) noexcept = default;
OutputState::~OutputState() = default;

}  // namespace patchbay::engine
