// Memory that the host's part of a step needs, asked for ahead. Between the parts of two steps the weights of a whole
// model pass the caches; what was there is gone, and would come back line by line, each when it is first used. So the
// code of all steps lies beside one another in a section of its own. Used by the engine, and by whoever waits for it.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#if defined(__ELF__)
// In front of the definition of a function that most steps run most of, unless it is a template.
#define PB_STEP_TEXT [[gnu::section("patchbay_step")]]
#else
#define PB_STEP_TEXT
#endif

namespace patchbay {

using Memory = std::span<const std::byte>;
inline constexpr size_t kCacheLine = 64; // bytes

template <class T>
Memory memory_of(const T& object) {
    return std::as_bytes(std::span<const T, 1>(&object, 1));
}

// Adds the first bytes of an array of `bytes`: what a step of few sequences touches of it.
void list_front(std::vector<Memory>& to, const void* array, size_t bytes);
template <class... T>
void list_fronts(std::vector<Memory>& to, const std::vector<T>&... arrays) {
    (list_front(to, arrays.data(), arrays.capacity() * sizeof(T)), ...);
}
// Adds the last element, and where the next one comes if there is room for it.
template <class T>
void list_back(std::vector<Memory>& to, const std::vector<T>& array) {
    const size_t last = array.size() - (array.empty() ? 0 : 1);
    list_front(to, array.data() + last, std::min<size_t>(array.capacity() - last, 2) * sizeof(T));
}

Memory step_text(); // empty where linkers do not tell

// Into the second-level cache, with what finds its pages. Never faults. Costs a line what an instruction does where it
// is there, and elsewhere a small part of what waiting for it would.
inline void ask_for(Memory what) {
    for (size_t at = 0; at < what.size(); at += kCacheLine) __builtin_prefetch(what.data() + at, 0, 2);
}

}  // namespace patchbay
