#include "text/chat_template/value.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace patchbay::text::chat {
namespace {

struct Measure { // of a list or dict, by what is in it
    uint32_t depth = 1;
    uint64_t weight = 1;

    void add(const Value& v) {
        depth = std::max(depth, depth_of(v) + 1);
        weight += weight_of(v);
        if (depth > kMaxValueDepth) refuse("lists and dicts are nested more than " + std::to_string(depth) + " deep");
        if (weight > kMaxValueWeight) refuse("a list or dict is too large");
    }
};

std::shared_ptr<const ListData> list_of(Values items, bool tuple, bool group = false) {
    Measure measure;
    for (const Value& item : items) measure.add(item);
    return std::make_shared<const ListData>(ListData{std::move(items), tuple, measure.depth, measure.weight, group});
}

}  // namespace

void refuse(std::string text) { throw TemplateError{std::move(text)}; }

const Value& defined(const Value& v) {
    if (const auto* undefined = v.as<Undefined>()) refuse(*undefined->why);
    return v;
}

Value Value::undefined(std::string why) {
    Value out;
    out.data_ = Undefined{std::make_shared<const std::string>(std::move(why))};
    return out;
}

Value Value::list(Values items) {
    Value out;
    out.data_ = list_of(std::move(items), false);
    return out;
}

Value Value::tuple(Values items) {
    Value out;
    out.data_ = list_of(std::move(items), true);
    return out;
}

Value Value::group(Value grouper, Values items) {
    Value out;
    out.data_ = list_of({std::move(grouper), list(std::move(items))}, true, true);
    return out;
}

Value Value::dict(std::vector<std::pair<Value, Value>> items) {
    Measure measure;
    for (const auto& [key, value] : items) measure.add(key), measure.add(value);
    Value out;
    out.data_ = std::make_shared<const DictData>(DictData{std::move(items), measure.depth, measure.weight});
    return out;
}

Value from_json(const nlohmann::ordered_json& json) {
    using Type = nlohmann::ordered_json::value_t;
    switch (json.type()) {
        case Type::boolean: return json.get<bool>();
        case Type::number_integer: return json.get<int64_t>();
        case Type::number_unsigned:
            if (const auto n = json.get<uint64_t>(); n > INT64_MAX) return LargeInteger{n};
            return json.get<int64_t>();
        case Type::number_float: return json.get<double>();
        case Type::string: return json.get<std::string>();
        case Type::array: {
            Values items;
            for (const auto& item : json) items.push_back(from_json(item));
            return Value::list(std::move(items));
        }
        case Type::object: {
            std::vector<std::pair<Value, Value>> items;
            for (const auto& [key, value] : json.items()) items.emplace_back(key, from_json(value));
            return Value::dict(std::move(items));
        }
        default: return {};
    }
}

bool is_true(const Value& v) {
    if (v.is_none() || v.is_undefined()) return false;
    if (const bool* b = v.as<bool>()) return *b;
    if (const int64_t* i = v.as<int64_t>()) return *i != 0;
    if (const double* d = v.as<double>()) return *d != 0;
    if (const std::string* s = v.string()) return !s->empty();
    if (const ListData* l = v.list()) return !l->items.empty();
    if (const DictData* d = v.dict()) return !d->items.empty();
    return true;
}

std::string type_name(const Value& v) {
    if (v.is_none()) return "NoneType";
    if (v.is_undefined()) return "Undefined";
    if (v.as<bool>()) return "bool";
    if (v.as<int64_t>() || v.as<LargeInteger>()) return "int";
    if (v.as<double>()) return "float";
    if (v.string()) return "str";
    if (v.list()) return v.list()->tuple ? "tuple" : "list";
    if (v.dict()) return "dict";
    if (v.space()) return "Namespace";
    return v.loop() ? "LoopContext" : "function";
}

double number_of(const Value& v) {
    if (const bool* b = v.as<bool>()) return *b ? 1 : 0;
    if (const int64_t* i = v.as<int64_t>()) return static_cast<double>(*i);
    if (const LargeInteger* i = v.as<LargeInteger>()) return static_cast<double>(i->value);
    return *v.as<double>();
}

uint32_t depth_of(const Value& v) {
    if (const ListData* l = v.list()) return l->depth;
    if (const DictData* d = v.dict()) return d->depth;
    return 0;
}

uint64_t weight_of(const Value& v) {
    if (const ListData* l = v.list()) return l->weight;
    if (const DictData* d = v.dict()) return d->weight;
    return v.string() ? 1 + v.string()->size() / 16 : 1;
}

namespace {

// Of one with many members, by key, so that it is not looked through for each. Only templates make keys that are no
// strings, so these are few.
struct Members {
    explicit Members(const DictData& dict) {
        for (const auto& item : dict.items)
            if (item.first.string()) texts.emplace_back(*item.first.string(), &item.second);
            else others.push_back(&item);
        std::ranges::sort(texts);
    }
    const Value* find(const Value& key) const {
        if (key.string()) {
            const auto at = std::ranges::lower_bound(texts, std::string_view(*key.string()), {}, &Text::first);
            return at == texts.end() || at->first != *key.string() ? nullptr : at->second;
        }
        const auto at = std::ranges::find_if(others, [&](const auto* item) { return equal(item->first, key); });
        return at == others.end() ? nullptr : &(*at)->second;
    }
    using Text = std::pair<std::string_view, const Value*>;
    std::vector<Text> texts; // sorted
    std::vector<const std::pair<Value, Value>*> others;
};

// Of numbers that are no floats, one of them large.
int order_of_large(const Value& a, const Value& b) {
    const LargeInteger *const x = a.as<LargeInteger>(), *const y = b.as<LargeInteger>();
    if (!x || !y) return x ? 1 : -1;
    return x->value < y->value ? -1 : x->value > y->value;
}

bool equal_dicts(const DictData& a, const DictData& b) {
    constexpr size_t kFew = 8;
    if (a.items.size() != b.items.size()) return false;
    std::optional<Members> of_b;
    if (b.items.size() > kFew) of_b.emplace(b);
    return std::ranges::all_of(a.items, [&](const auto& item) {
        const Value* const other = of_b ? of_b->find(item.first) : find(b, item.first);
        return other && equal(item.second, *other);
    });
}

}  // namespace

bool equal(const Value& a, const Value& b) {
    if (a.is_number() && b.is_number()) {
        if (a.as<double>() || b.as<double>()) return number_of(a) == number_of(b);
        if (a.as<LargeInteger>() || b.as<LargeInteger>())
            return a.as<LargeInteger>() && b.as<LargeInteger>() && order_of_large(a, b) == 0;
        const auto whole = [](const Value& v) { return v.as<bool>() ? int64_t(*v.as<bool>()) : *v.as<int64_t>(); };
        return whole(a) == whole(b);
    }
    if (a.string() && b.string()) return *a.string() == *b.string();
    if (a.list() && b.list())
        return a.list()->tuple == b.list()->tuple &&
               std::equal(a.list()->items.begin(), a.list()->items.end(), b.list()->items.begin(),
                          b.list()->items.end(), equal);
    if (a.dict() && b.dict()) return equal_dicts(*a.dict(), *b.dict());
    if (a.space() || b.space()) return a.space() == b.space();
    if (a.callable() || b.callable()) return a.callable() == b.callable();
    return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

int compare(const Value& a, const Value& b) {
    if (a.is_number() && b.is_number()) {
        if (a.as<int64_t>() && b.as<int64_t>()) {
            const int64_t x = *a.as<int64_t>(), y = *b.as<int64_t>();
            return x < y ? -1 : x > y;
        }
        const bool large = a.as<LargeInteger>() || b.as<LargeInteger>();
        if (large && !a.as<double>() && !b.as<double>()) return order_of_large(a, b);
        return number_of(a) < number_of(b) ? -1 : number_of(a) > number_of(b);
    }
    if (a.string() && b.string()) return a.string()->compare(*b.string());
    if (a.list() && b.list()) {
        const Values &x = a.list()->items, &y = b.list()->items;
        for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
            if (!equal(x[i], y[i])) return compare(x[i], y[i]);
        return x.size() < y.size() ? -1 : x.size() > y.size();
    }
    defined(a), defined(b);
    refuse("'<' is not supported between '" + type_name(a) + "' and '" + type_name(b) + "'");
}

const Value* find(const DictData& dict, const Value& key) {
    for (const auto& [k, v] : dict.items)
        if (equal(k, key)) return &v;
    return nullptr;
}

void DictMaker::set(Value key, Value value) {
    size_t at = items_.size();
    if (key.string()) at = texts_.try_emplace(*key.string(), at).first->second;
    else for (at = 0; at < items_.size() && !equal(items_[at].first, key);) at += 1;
    if (at < items_.size()) items_[at].second = std::move(value);
    else items_.emplace_back(std::move(key), std::move(value));
}

}  // namespace patchbay::text::chat
