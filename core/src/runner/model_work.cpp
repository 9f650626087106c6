#include "runner/model_work.hpp"

#include <cmath>

namespace patchbay::runner {

double ModelWork::params_of_token() const {
    double out = static_cast<double>(linear_params);
    for (const ExpertWork& e : experts) out += e.share * static_cast<double>(e.params);
    return out;
}

double ModelWork::bytes_of_pass(double tokens) const {
    double out = static_cast<double>(linear_bytes);
    for (const ExpertWork& e : experts) out += (1 - std::pow(1 - e.share, tokens)) * static_cast<double>(e.bytes);
    return out;
}

}  // namespace patchbay::runner
