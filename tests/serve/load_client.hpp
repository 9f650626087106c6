// Thousands of clients of one server on one thread: each sends a request and reads its stream, or goes away on the way.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace patchbay::serve::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true; // everything takes much longer
#else
inline constexpr bool kIsSanitized = false;
#endif

struct LoadRequest {
    std::string body;           // of POST /v1/completions, streaming
    size_t leave_after = SIZE_MAX; // bytes of the answer after which the client resets its connection; 0: at once
};

struct LoadAnswer {
    std::string stream;            // all that came, without HTTP's head and chunk sizes
    bool left = false, closed_early = false; // by the client; by the server, before the stream's end
    std::vector<uint64_t> event_ns; // when each of its events came, by the steady clock
};

// Runs all of them, at most `at_once` at a time, until each has its answer or has left. Throws std::runtime_error where
// no connection can be had or nothing at all comes for a minute.
std::vector<LoadAnswer> run_load(uint16_t port, const std::vector<LoadRequest>&, size_t at_once);

// The token ids of a stream in order; throws where an event is torn or the stream does not end as it must.
std::vector<int32_t> streamed_tokens(const std::string& stream);

// Lets this process open so many files, or as many as it may: returns how many it may open then.
size_t allow_open_files(size_t count);
size_t open_files(); // of this process, now

}  // namespace patchbay::serve::testing
