#include "text/chat_template/ordering_filters.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "text/chat_template/operators.hpp"
#include "text/chat_template/strings.hpp"

namespace patchbay::text::chat {

Value by_path(Budget& budget, const Value& of, const Value& path, const Value* missing) {
    const auto part_of = [&](const Value& whole, const Value& key) {
        Value found = item(budget, whole, key);
        return found.is_undefined() && missing ? *missing : found;
    };
    if (path.is_none()) return of;
    if (!path.string()) return part_of(of, path);
    Value at = of;
    size_t from = 0;
    while (true) {
        const size_t end = std::min(path.string()->find('.', from), path.string()->size());
        const std::string part = path.string()->substr(from, end - from);
        const bool number = !part.empty() && part.size() < 10 &&
                            std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
        at = part_of(at, number ? Value(static_cast<int64_t>(std::stol(part))) : Value(part));
        if (end == path.string()->size()) return at;
        from = end + 1;
    }
}

namespace {

using Read = ArgumentReader;

Value without_case(const Value& v) { return v.string() ? Value(lower(*v.string())) : v; }

// What a filter compares of a value: all of it, or an attribute; strings in lower case, unless that matters.
Value key_of(Budget& budget, const Value& v, const Value* attribute, bool case_sensitive,
             const Value* missing = nullptr) {
    const Value seen = attribute && !attribute->is_none() ? by_path(budget, v, *attribute, missing) : v;
    if (!case_sensitive) budget.steps(weight_of(seen) / 8);
    return case_sensitive ? seen : without_case(seen);
}

using Keyed = std::vector<std::pair<Value, Value>>; // what is compared, and the value

void sort_by_keys(Budget& budget, Keyed& all, bool reverse) {
    uint64_t weight = 0;
    for (const auto& [key, value] : all) weight += weight_of(key);
    budget.steps(weight * 8);
    std::stable_sort(all.begin(), all.end(), [&](const auto& x, const auto& y) {
        return reverse ? compare(y.first, x.first) < 0 : compare(x.first, y.first) < 0;
    });
}

Value in_order(Budget& budget, Keyed all, bool reverse) {
    sort_by_keys(budget, all, reverse);
    Values out;
    for (auto& [key, value] : all) out.push_back(std::move(value));
    return Value::list(std::move(out));
}

Value extreme(Budget& budget, const Value& v, const Read& a, bool largest) {
    const bool case_sensitive = a.flag(0, "case_sensitive", false);
    const Value* attribute = a.find(1, "attribute");
    std::optional<std::pair<Value, Value>> best; // what is compared, and the value
    for (Value& part : items_of(budget, v)) {
        Value key = key_of(budget, part, attribute, case_sensitive);
        if (!best || apply_comparison(budget, largest ? ">" : "<", key, best->first))
            best.emplace(std::move(key), std::move(part));
    }
    return best ? best->second : Value::undefined("there is no least or largest item of nothing");
}

}  // namespace

Value sorted_members(Budget& budget, const Value& v, const ArgumentReader& a) {
    if (!v.dict()) refuse("dictsort takes a dict, got " + type_name(defined(v)));
    const bool case_sensitive = a.flag(0, "case_sensitive", false), reverse = a.flag(2, "reverse", false);
    const bool by_value = a.find(1, "by") && a.text(1, "by") == "value";
    Keyed all;
    for (const auto& [key, value] : v.dict()->items)
        all.emplace_back(key_of(budget, by_value ? value : key, nullptr, case_sensitive), Value::tuple({key, value}));
    return in_order(budget, std::move(all), reverse);
}

Value sorted(Budget& budget, const Value& v, const ArgumentReader& a) {
    const bool reverse = a.flag(0, "reverse", false), case_sensitive = a.flag(1, "case_sensitive", false);
    const Value* attribute = a.find(2, "attribute");
    Values paths; // "a,b": first by a, then by b
    if (attribute && attribute->string())
        for (size_t from = 0, end = 0; end < attribute->string()->size(); from = end + 1) {
            end = std::min(attribute->string()->find(',', from), attribute->string()->size());
            paths.emplace_back(attribute->string()->substr(from, end - from));
        }
    Keyed all;
    for (Value& part : items_of(budget, v)) {
        Values keys;
        for (const Value& path : paths) keys.push_back(key_of(budget, part, &path, case_sensitive));
        Value key = paths.empty() ? key_of(budget, part, attribute, case_sensitive) : Value::list(std::move(keys));
        all.emplace_back(std::move(key), std::move(part));
    }
    return in_order(budget, std::move(all), reverse);
}

Value grouped(Budget& budget, const Value& v, const ArgumentReader& a) {
    const Value& attribute = a.need(0, "attribute");
    const Value* missing = a.find(1, "default");
    if (missing && missing->is_none()) missing = nullptr;
    const bool case_sensitive = a.flag(2, "case_sensitive", false);
    Keyed all;
    for (Value& part : items_of(budget, v)) {
        Value key = key_of(budget, part, &attribute, case_sensitive, missing);
        all.emplace_back(std::move(key), std::move(part));
    }
    sort_by_keys(budget, all, false);
    Values out;
    for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
        Values group;
        while (end < all.size() && apply_comparison(budget, "==", all[begin].first, all[end].first))
            group.push_back(all[end++].second);
        if (end == begin) group.push_back(all[end++].second); // a key that is not equal to itself
        Value grouper = key_of(budget, group.front(), &attribute, true, missing); // the first one's, as it is written
        out.push_back(Value::group(std::move(grouper), std::move(group)));
    }
    return Value::list(std::move(out));
}

Value without_repeats(Budget& budget, const Value& v, const ArgumentReader& a) {
    const bool case_sensitive = a.flag(0, "case_sensitive", false);
    const Value* attribute = a.find(1, "attribute");
    std::set<std::string, std::less<>> texts;
    Values others, out; // keys that are seen
    for (Value& part : items_of(budget, v)) {
        Value key = key_of(budget, part, attribute, case_sensitive);
        if (key.string()) {
            budget.steps(weight_of(key));
            if (texts.insert(*key.string()).second) out.push_back(std::move(part));
            continue;
        }
        const auto known = [&](const Value& o) { return apply_comparison(budget, "==", o, key); };
        if (std::ranges::any_of(others, known)) continue;
        others.push_back(std::move(key));
        out.push_back(std::move(part));
    }
    return Value::list(std::move(out));
}

Value least(Budget& budget, const Value& v, const ArgumentReader& a) { return extreme(budget, v, a, false); }
Value greatest(Budget& budget, const Value& v, const ArgumentReader& a) { return extreme(budget, v, a, true); }

}  // namespace patchbay::text::chat
