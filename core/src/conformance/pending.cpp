#include "conformance/check.hpp"
namespace patchbay::conformance {
const Suite kProposer{}, kAttention{}, kModel{}, kDevice{};
}
