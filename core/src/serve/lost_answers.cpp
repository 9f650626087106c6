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
};
std::array<Entry, kEntries> entries;
std::atomic<size_t> next_entry{0};
std::atomic<bool> sent{false};

struct LastWords { // as they are sent
    std::string whole, chunk;

    LastWords() {
        const std::string body =
            error_json(fail(StatusCode::kUnavailable, "a fault has ended the server, most likely of a plugin; this "
                                                      "answer is lost (send the request again)"));
        whole = whole_answer({.status = 503, .body = body}, Ending::kClose);
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
    entries[entry_].fd = -1;
}

void LostAnswer::set(AnswerState state) {
    if (entry_ < kEntries) entries[entry_].state = state;
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
            send_to(e.fd, state == AnswerState::kAwaited ? words.load()->whole : words.load()->chunk);
            e.state = AnswerState::kNone;
        }
    }
}

bool lost_answers_are_sent() { return sent; }

}  // namespace patchbay::serve
