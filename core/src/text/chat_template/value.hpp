// Values of a chat template, as Python would have them: plain data shared by reference, and what can be called. Used by
// the evaluation of templates, on one thread.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace patchbay::text::chat {

// What ends a parse or a render; caught where the result leaves this folder. line 0: not known yet.
struct TemplateError {
    std::string text;
    uint32_t line = 0;
};

class Value;
using Values = std::vector<Value>;

struct ListData {
    Values items;
    bool tuple = false;
    uint32_t depth = 1;  // of nesting
    uint64_t weight = 1; // values and 16 bytes of text, shared ones for each place where they are
    bool group = false;  // a tuple of two, which are also its .grouper and its .list
};

struct DictData {
    std::vector<std::pair<Value, Value>> items; // in order of insertion
    uint32_t depth = 1;
    uint64_t weight = 1;
};

struct Arguments {
    Values positional;
    std::vector<std::pair<std::string, Value>> named;
};

struct Namespace; // a template's namespace(); owned by the render
struct Loop;      // of a for statement; likewise
struct Callable { // a macro, a function or a bound method
    std::string name;
    std::function<Value(Arguments&)> call;
};

// What a name that was never set, or an attribute that is not there, evaluates to. Prints as nothing; why: what is said
// where something is done with it.
struct Undefined {
    std::shared_ptr<const std::string> why;
};
struct None {};

// An integer of a request above 2^63 - 1: printed, converted and compared; arithmetic refuses it.
struct LargeInteger {
    uint64_t value;
};

// What a value's pointer of this kind points to; null: it holds something else.
template <class Pointer, class... Kinds>
auto held(const std::variant<Kinds...>& data) {
    const Pointer* const pointer = std::get_if<Pointer>(&data);
    return pointer ? std::to_address(*pointer) : nullptr;
}

class Value {
    using ListRef = std::shared_ptr<const ListData>;
    using DictRef = std::shared_ptr<const DictData>;

  public:
    Value() : data_(None{}) {}
    Value(bool b) : data_(b) {}
    Value(int64_t i) : data_(i) {}
    Value(LargeInteger i) : data_(i) {}
    Value(double d) : data_(d) {}
    Value(std::string s) : data_(std::make_shared<const std::string>(std::move(s))) {}
    Value(const char* s) : Value(std::string(s)) {}
    template <class T>
        requires std::same_as<T, Namespace> || std::same_as<T, Loop>
    Value(T* of_the_render) : data_(of_the_render) {}
    Value(Callable c) : data_(std::make_shared<const Callable>(std::move(c))) {}
    static Value undefined(std::string why);
    static Value list(Values items);
    static Value tuple(Values items);
    static Value group(Value grouper, Values items); // of the filter groupby
    static Value dict(std::vector<std::pair<Value, Value>> items);

    template <class T>
    const T* as() const { return std::get_if<T>(&data_); }
    bool is_undefined() const { return as<Undefined>(); }
    bool is_none() const { return as<None>(); }
    bool is_number() const { return as<bool>() || as<int64_t>() || as<LargeInteger>() || as<double>(); }
    // Null: it is something else.
    const std::string* string() const { return held<std::shared_ptr<const std::string>>(data_); }
    const ListData* list() const { return held<ListRef>(data_); }
    const DictData* dict() const { return held<DictRef>(data_); }
    const Callable* callable() const { return held<std::shared_ptr<const Callable>>(data_); }
    Namespace* space() const { return held<Namespace*>(data_); }
    Loop* loop() const { return held<Loop*>(data_); }

  private:
    using Data = std::variant<None, Undefined, bool, int64_t, LargeInteger, double, std::shared_ptr<const std::string>,
                              ListRef, DictRef, Namespace*, Loop*, std::shared_ptr<const Callable>>;
    Data data_;
};

struct Namespace {
    std::vector<std::pair<std::string, Value>> fields;
};

struct Loop {
    const Values* items = nullptr;
    size_t index0 = 0;
    Value looked_at{}; // by loop.changed(): a tuple; none: nothing yet
};

Value from_json(const nlohmann::ordered_json&);

inline constexpr uint32_t kMaxValueDepth = 200;
inline constexpr uint64_t kMaxValueWeight = 4u << 20;
uint32_t depth_of(const Value&);  // of nesting; 0: neither a list nor a dict
uint64_t weight_of(const Value&); // what a walk over all of it costs

bool is_true(const Value&);          // bool()
std::string type_name(const Value&); // Python's: "str", "dict", …
double number_of(const Value&);      // of is_number()
bool equal(const Value&, const Value&); // in time that grows as the smaller one's weight does, but for its logarithm
// Below 0, 0, above 0; throws where Python does.
int compare(const Value&, const Value&);
const Value* find(const DictData&, const Value& key); // null: not there; looks through all

class DictMaker { // a dict by its items, of which the last one with a key counts
  public:
    void set(Value key, Value value);
    size_t size() const { return items_.size(); }
    Value made() { return Value::dict(std::move(items_)); }
    std::vector<std::pair<Value, Value>> items() { return std::move(items_); }

  private:
    std::vector<std::pair<Value, Value>> items_;
    std::map<std::string, size_t, std::less<>> texts_; // places of keys that are strings
};

std::string text_of(const Value&);     // str()
std::string python_repr(const Value&); // repr()
std::string python_float(double);
struct JsonStyle { // json.dumps()'s, of Python
    std::optional<std::string> indent{}; // of each level; nothing: all in one line
    std::string between_items = ", ", after_keys = ": ";
    bool sort_keys = false, ascii = false;
};
std::string json_of(const Value&, const JsonStyle&);

[[noreturn]] void refuse(std::string text);
// The value, or a refusal where it is undefined.
const Value& defined(const Value&);

}  // namespace patchbay::text::chat
