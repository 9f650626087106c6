#include "scenario/known_names.hpp"

#include <vector>

#include "base/suggest.hpp"
#include "scenario/blocks.hpp"

namespace patchbay::scenario {
namespace {

constexpr uint64_t kMaxGuesses = 10; // at names that do not exist

}  // namespace

void KnownNames::add(const Arrival& a) {
    for (uint32_t i = 0; i < a.sequences(); ++i)
        if (const std::string name = a.name_of(i); !outputs_.insert(name).second)
            faults_.add("'" + config::printable(name) + "' was added before");
    requests_.insert(a.id);
}

void KnownNames::check(const std::string& name) {
    if (outputs_.contains(name)) return;
    const bool guess = unknown_++ < kMaxGuesses; // each looks at all names
    faults_.add("no request '" + config::printable(name) + "' was added before" +
                (guess ? did_you_mean(name, std::vector<std::string>(outputs_.begin(), outputs_.end())) : ""));
}

void KnownNames::check(const Names& names) {
    for (const std::string& name : names) check(name);
}

void KnownNames::check_block(const std::string& text) {
    if (block_name(text, [this](const std::string& request) { return outputs_.contains(request); })) return;
    const auto any = block_name(text, [](const std::string&) { return true; });
    if (any) return check(any->request);
    faults_.add("'" + config::printable(text) + "' names no block, expected a request and a number such as a/0");
}

void KnownNames::check_blocks(const Names& names) {
    if (names.size() > Blocks::kMaxListed)
        faults_.add(std::to_string(names.size()) + " blocks, expected at most " + std::to_string(Blocks::kMaxListed));
    for (const std::string& name : names) check_block(name);
}

void KnownNames::check_request(const std::string& name) {
    if (outputs_.contains(name) && !requests_.contains(name))
        faults_.add("'" + name + "' is one output of several, which are aborted together");
}

}  // namespace patchbay::scenario
