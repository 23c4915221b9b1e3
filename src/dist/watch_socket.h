#pragma once
// Messages between the watchdogs of a run's processes, over TCP.

#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bamtrain {

enum class WatchKind : int32_t {
  hello,    // of a process to rank 0, first
  welcome,  // the answer
  beat,     // I am alive
  late,     // to rank 0: a wait has passed its limit
  failed,   // this process ends with an error that it has told
  end,      // of rank 0: end with `code`
  goodbye,  // this process ends as it should
};

/// What a process is doing.
struct WatchedState {
  int64_t step = 0;
  uint64_t waits = 0;  // begun so far
  int32_t waiting = 0;
  char doing[100] = {};  // the phase, and where it waits the operation
};

struct WatchMessage {
  unsigned char token[16] = {};  // of the run: strangers do not know it
  WatchKind kind = WatchKind::beat;
  int32_t rank = 0, code = 0, process = 0;
  char host[64] = {};
  WatchedState state;
  char text[400] = {};  // late: the wait
};

/// Copies text into an array, shortened where it does not fit.
template <size_t kSize>
void put_text(char (&to)[kSize], const std::string& text) {
  text.copy(to, kSize - 1);
  to[std::min(text.size(), kSize - 1)] = 0;
}

/// A connection that sends and receives whole messages and never waits.
class WatchSocket {
 public:
  WatchSocket() = default;
  explicit WatchSocket(int descriptor) : descriptor_(descriptor) {}
  WatchSocket(WatchSocket&& other) noexcept;
  WatchSocket& operator=(WatchSocket&& other) noexcept;
  ~WatchSocket();

  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  void close();
  /// A message that cannot be sent at once is lost.
  void send(const WatchMessage& message);
  /// The next message; none: nothing whole has arrived. `closed` is set where nothing will.
  std::optional<WatchMessage> receive(bool* closed);

 private:
  int descriptor_ = -1;
  std::vector<char> received_;
  bool blocked_ = false;  // a part of a message was sent
};

/// Where rank 0 listens: what all processes are told.
struct WatchAddress {
  static constexpr int kMost = 16;

  unsigned char token[16] = {};
  in_port_t port = 0;
  int32_t count = 0;
  in6_addr of[kMost] = {};  // IPv4 ones mapped

  /// For messages: "10.0.0.1 or 10.0.0.2, port 40123".
  std::string describe() const;
};

/// A socket that listens on a free port of all addresses. Fills in `address`. Not open: `why`.
WatchSocket listen_for_peers(int most, WatchAddress* address, std::string* why);
/// A connection that has waited in the queue of a listening socket; not open: none.
WatchSocket accept_peer(const WatchSocket& listening);
/// Connects to rank 0 and exchanges `hello` for a welcome. Not open: `why`.
WatchSocket connect_to(const WatchAddress& address, const WatchMessage& hello,
                       WatchMessage* welcome, std::string* why);

}  // namespace bamtrain
