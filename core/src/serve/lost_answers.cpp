#include "serve/lost_answers.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <string>

#include "serve/error_reply.hpp"
#include "serve/http_answer.hpp"

namespace patchbay::serve {
namespace {

constexpr size_t kEntries = 8192; // more connections get no last words

struct Entry {
    std::atomic<int> fd{-1};
    std::atomic<AnswerState> state{AnswerState::kNone};
    std::atomic<const std::string*> own{nullptr}; // in place of the usual words; null: those
};
std::array<Entry, kEntries> entries;
std::atomic<size_t> next_entry{0};
std::atomic<bool> sent{false};

std::string body_of(const std::string& message) { return error_json(fail(StatusCode::kUnavailable, message)); }
std::string whole_of(const std::string& body) { return whole_answer({.status = 503, .body = body}, Ending::kClose); }

struct LastWords { // as they are sent
    std::string whole, chunk;

    LastWords() {
        const std::string body = body_of("a fault has ended the server, most likely of a plugin; this answer is lost "
                                         "(send the request again)");
        whole = whole_of(body);
        chunk = chunk_of("data: " + body + "\n\n");
        chunk += kLastChunk;
    }
};
std::atomic<const LastWords*> words{nullptr};

void send_to(int fd, const std::string& text) {
    (void)!send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

LostAnswer::LostAnswer(int fd) : entry_(kEntries) {
    static const LastWords prepared;
    words = &prepared;
    for (size_t tried = 0; tried < kEntries && entry_ == kEntries; ++tried) {
        const size_t at = next_entry++ % kEntries;
        int none = -1;
        if (entries[at].fd.compare_exchange_strong(none, fd)) entry_ = at;
    }
}

LostAnswer::~LostAnswer() {
    if (entry_ == kEntries) return;
    entries[entry_].state = AnswerState::kNone;
    entries[entry_].own = nullptr;
    entries[entry_].fd = -1;
}

void LostAnswer::set(AnswerState state) {
    if (entry_ < kEntries) entries[entry_].state = state;
}

void LostAnswer::say(const std::string& message) {
    if (entry_ == kEntries) return;
    entries[entry_].own = nullptr;
    own_ = whole_of(body_of(message));
    entries[entry_].own = &own_;
}

void answer_all_lost() {
    if (sent.exchange(true) || !words.load()) return;
    constexpr int kRounds = 100;
    bool sending = true;
    for (int round = 0; round < kRounds && sending; ++round) {
        if (round > 0) poll(nullptr, 0, 1); // a millisecond
        sending = false;
        for (Entry& e : entries) {
            const AnswerState state = e.state;
            sending = sending || state == AnswerState::kSending;
            if (state != AnswerState::kAwaited && state != AnswerState::kStream) continue;
            const std::string* const own = e.own;
            if (state == AnswerState::kStream) send_to(e.fd, words.load()->chunk);
            else send_to(e.fd, own ? *own : words.load()->whole);
            e.state = AnswerState::kNone;
        }
    }
}

bool lost_answers_are_sent() { return sent; }

}  // namespace patchbay::serve
