// Functions that every template can call: range, dict, namespace, strftime_now, raise_exception.
#pragma once
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "text/chat_template/builtins.hpp"

namespace patchbay::text::chat {

// They use the budget and the namespaces, where they put those that they make, as long as they are called.
std::vector<Callable> global_functions(Budget&, std::deque<Namespace>&,
                                       std::function<std::string(const std::string&)> date);

}  // namespace patchbay::text::chat
