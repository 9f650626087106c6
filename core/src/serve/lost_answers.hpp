// Last words to the clients whose answers are under way when a fault ends the process: an error in place of a stream
// that just stops. What a signal's handler reads and sends lies in a fixed table, without memory of the heap or locks.
#pragma once
#include <cstddef>
#include <string>

namespace patchbay::serve {

enum class AnswerState {
    kNone,    // no answer is due
    kSending, // bytes of one are being sent: nothing can be said until they are
    kAwaited, // a request is there, and nothing of its answer was sent
    kStream   // the last chunk of a stream of events was sent whole
};

class LostAnswer { // of one connection
  public:
    explicit LostAnswer(int fd);
    ~LostAnswer();
    LostAnswer(const LostAnswer&) = delete;
    LostAnswer& operator=(const LostAnswer&) = delete;
    void set(AnswerState);
    // What is said in place of the usual words, where no part of the answer was sent; while none is due.
    void say(const std::string& message);

  private:
    size_t entry_; // kEntries: the table was full
    std::string own_; // as it is sent; empty: the usual words
};

// From a signal's handler, or at exit: sends each its error, once what is being sent is whole, for which it waits a
// tenth of a second. From then on nothing else may be begun.
void answer_all_lost();
bool lost_answers_are_sent();

}  // namespace patchbay::serve
