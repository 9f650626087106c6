// What a plugin is given for one call. Bytes without meaning follow each struct and array: reading on gives nonsense,
// and who writes on is found. After the call all of it is overwritten, and stays where it is until the object goes, so
// that a plugin that kept a pointer reads nonsense too, and crashes nothing by it.
#pragma once
#include <cstddef>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "host/component.hpp"
#include "patchbay/sizes.hpp"

namespace patchbay::conformance {

class LentMemory {
  public:
    enum class After { kOverwritten, kLeft /* as a host may do, that has no other use for it yet */ };
    explicit LentMemory(After after = After::kOverwritten) : after_(after) {}
    LentMemory(const LentMemory&) = delete;
    LentMemory& operator=(const LentMemory&) = delete;

    template <class T>
    T* lend(const T* values, size_t count) {
        return reinterpret_cast<T*>(place(values, count * sizeof(T)));
    }
    template <class T>
    T* lend(const T& value) {
        return lend(&value, 1);
    }
    template <class T>
    T* lend(const std::vector<T>& values) {
        return lend(values.data(), values.size());
    }
    // Records as a newer host lays them out, `stride` bytes apart. Between them lies what means nothing to the plugin;
    // 0: its later fields, of a plugin that knows them.
    template <class T>
    T* lend_apart(const std::vector<T>& values, size_t stride, std::byte between) {
        std::vector<std::byte> bytes(values.size() * stride, between);
        for (size_t i = 0; i < values.size(); ++i) std::memcpy(bytes.data() + i * stride, &values[i], sizeof(T));
        return reinterpret_cast<T*>(place(bytes.data(), bytes.size()));
    }
    // The call is over. False: something was written past the end of what was lent for it.
    bool end_call();

  private:
    std::byte* place(const void* bytes, size_t size);

    After after_;
    std::deque<std::vector<std::byte>> blocks_;
    size_t ended_ = 0; // blocks of calls that are over
};

// The struct that a function fills, whose last argument it is: filled<&pb_model::kv_spec, pb_kv_spec>(c, layer).
template <auto Function, class T, class... Args>
Result<T> filled(const host::Component& component, Args... args) {
    LentMemory memory;
    T* const out = memory.lend(sized<T>());
    PB_CHECK(host::checked<Function>(component, args..., out));
    const T copy = *out;
    if (!memory.end_call() || copy.struct_size != sizeof(T))
        return fail(std::string(host::call_name<Function>()) +
                    " writes past the end of what it fills: see its struct_size");
    return copy;
}

}  // namespace patchbay::conformance
