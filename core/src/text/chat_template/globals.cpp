#include "text/chat_template/globals.hpp"

#include <cstdint>
#include <utility>

namespace patchbay::text::chat {
namespace {

Value range(Budget& budget, const Arguments& given) {
    constexpr int64_t kMaxRange = 100'000; // as Jinja's sandbox has it
    const ArgumentReader a("range", given);
    const bool from = a.places() > 1;
    const int64_t start = from ? a.integer(0, "start", 0) : 0, stop = a.integer(from ? 1 : 0, "stop", 0);
    const int64_t step = a.integer(2, "step", 1);
    if (step == 0) refuse("range: the step is 0");
    Values out;
    for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
        if (static_cast<int64_t>(out.size()) == kMaxRange) refuse("range: more than 100000 numbers");
        out.emplace_back(i);
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    budget.steps(out.size());
    return Value::list(std::move(out));
}

std::vector<std::pair<Value, Value>> fields_of(Budget& budget, Arguments& given) {
    DictMaker out;
    if (given.positional.size() > 1) refuse("dict and namespace take one dict or list of pairs");
    for (const Value& from : given.positional) {
        if (from.dict())
            for (const auto& [key, value] : from.dict()->items) out.set(key, value);
        else
            for (const Value& part : items_of(budget, defined(from))) {
                const Values pair = items_of(budget, part);
                if (pair.size() != 2) refuse("dict and namespace take a dict or a list of pairs");
                budget.steps(pair.front().string() ? 1 : out.size());
                out.set(pair.front(), pair.back());
            }
    }
    for (auto& [name, value] : given.named) out.set(name, std::move(value));
    budget.steps(8 * out.size());
    return out.items();
}

}  // namespace

std::vector<Callable> global_functions(Budget& budget, std::deque<Namespace>& namespaces,
                                       std::function<std::string(const std::string&)> date) {
    return {
        {"raise_exception",
         [](Arguments& given) -> Value {
             refuse(given.positional.empty() ? "raise_exception" : text_of(given.positional.front()));
         }},
        {"strftime_now",
         [date = std::move(date)](Arguments& given) -> Value {
             return date(ArgumentReader("strftime_now", given).text(0, "format"));
         }},
        {"range", [&budget](Arguments& given) { return range(budget, given); }},
        {"dict", [&budget](Arguments& given) { return Value::dict(fields_of(budget, given)); }},
        {"namespace",
         [&budget, &namespaces](Arguments& given) -> Value {
             Namespace& made = namespaces.emplace_back();
             for (auto& [name, value] : fields_of(budget, given))
                 made.fields.emplace_back(text_of(name), std::move(value));
             return &made;
         }},
    };
}

}  // namespace patchbay::text::chat
