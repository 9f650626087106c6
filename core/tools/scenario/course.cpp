#include "scenario/course.hpp"

#include <algorithm>
#include <utility>

namespace patchbay::scenario {

const Step& Course::now() const { return steps_[std::min(at_, steps_.size() - 1)]; }

void Course::count_down(const step::Run& run) {
    left_ = left_ == 0 ? run.steps : left_;
    left_ -= 1;
    if (left_ == 0) at_ += 1;
}

bool Course::count_down(const step::Drain& drain) {
    left_ = left_ == 0 ? drain.max_steps : left_ - 1;
    return left_ > 0;
}

void Course::differ(const std::string& what, const std::string& expected, const std::string& got) {
    differ(now().origin, what, expected, got);
}

void Course::differ(const Step& step, const std::string& what, const std::string& expected, const std::string& got) {
    keep({step.origin, static_cast<size_t>(&step - steps_.data()) + 1, what, expected, got});
}

void Course::differ(const config::Origin& origin, const std::string& what, const std::string& expected,
                    const std::string& got) {
    keep({origin, at_ + 1, what, expected, got});
}

void Course::keep(Difference d) {
    if (!difference_) difference_ = std::move(d);
}

}  // namespace patchbay::scenario
