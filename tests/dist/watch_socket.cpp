#include "dist/watch_socket.h"

#include <poll.h>

#include <cstring>
#include <string>
#include <thread>

#include "catch.h"

namespace bamtrain {
namespace {

/// Waits until something can be read.
void wait_for(const WatchSocket& socket) {
  pollfd p = {socket.descriptor(), POLLIN, 0};
  REQUIRE(::poll(&p, 1, 20000) == 1);
}

/// A listening socket and its address, as rank 0 has them.
struct Listener {
  WatchAddress address;
  std::string why;
  WatchSocket socket = listen_for_peers(4, &address, &why);

  Listener() { REQUIRE(socket.open()); }
  /// Accepts a connection and its first message.
  WatchSocket accept(WatchMessage* hello) const {
    wait_for(socket);
    WatchSocket peer = accept_peer(socket);
    wait_for(peer);
    bool closed = false;
    const auto m = peer.receive(&closed);
    REQUIRE(m.has_value());
    *hello = *m;
    return peer;
  }
};

WatchMessage message_of(const WatchAddress& address, WatchKind kind, int rank) {
  WatchMessage m;
  std::copy(std::begin(address.token), std::end(address.token), m.token);
  m.kind = kind;
  m.rank = rank;
  put_text(m.state.doing, "MPI_Wait of training");
  return m;
}

TEST_CASE("a process that connects says who it is, and is welcomed") {
  const Listener rank_0;
  WatchMessage hello, welcome;
  WatchSocket accepted;
  std::thread answers([&] {
    accepted = rank_0.accept(&hello);
    accepted.send(message_of(rank_0.address, WatchKind::welcome, 0));
  });
  std::string why;
  WatchSocket socket =
      connect_to(rank_0.address, message_of(rank_0.address, WatchKind::hello, 3), &welcome, &why);
  answers.join();
  REQUIRE(socket.open());
  CHECK(hello.kind == WatchKind::hello);
  CHECK(hello.rank == 3);
  CHECK(std::string(hello.state.doing) == "MPI_Wait of training");
  CHECK(welcome.rank == 0);
  // Several messages stay apart, and the end shows.
  socket.send(message_of(rank_0.address, WatchKind::beat, 3));
  socket.send(message_of(rank_0.address, WatchKind::goodbye, 3));
  bool closed = false;
  for (const WatchKind kind : {WatchKind::beat, WatchKind::goodbye}) {
    wait_for(accepted);
    const auto m = accepted.receive(&closed);
    REQUIRE(m.has_value());
    CHECK(m->kind == kind);
  }
  CHECK_FALSE(accepted.receive(&closed).has_value());
  CHECK_FALSE(closed);
  socket.close();
  wait_for(accepted);
  CHECK_FALSE(accepted.receive(&closed).has_value());
  CHECK(closed);
}

TEST_CASE("who does not know the run's token is not taken for rank 0") {
  const Listener stranger;
  WatchMessage hello, welcome;
  std::thread answers([&] {
    WatchSocket accepted = stranger.accept(&hello);
    accepted.send(message_of({}, WatchKind::welcome, 0));
    wait_for(accepted);  // until the caller hangs up
  });
  WatchAddress address = stranger.address;
  address.count = 1;  // the loopback
  std::string why;
  const WatchSocket socket =
      connect_to(address, message_of(address, WatchKind::hello, 1), &welcome, &why);
  answers.join();
  CHECK_FALSE(socket.open());
  CHECK(why.find("no connection to rank 0 at 127.0.0.1, port ") == 0);
}

TEST_CASE("a rank 0 that nobody reaches is named with its addresses") {
  WatchAddress address;
  {
    const Listener gone;
    address = gone.address;
  }
  REQUIRE(address.count >= 1);
  WatchMessage welcome;
  std::string why;
  CHECK_FALSE(connect_to(address, message_of(address, WatchKind::hello, 1), &welcome, &why).open());
  INFO(why);
  CHECK(why.find("no connection to rank 0 at 127.0.0.1") == 0);
  CHECK(why.find("Connection refused") != std::string::npos);
}

TEST_CASE("long texts are shortened, and addresses written as people do") {
  WatchMessage m;
  put_text(m.text, std::string(1000, 'x'));
  CHECK(std::strlen(m.text) == sizeof m.text - 1);
  put_text(m.host, "node7");
  CHECK(std::string(m.host) == "node7");
  WatchAddress address;
  address.port = 0x1234;  // in the network's order
  address.count = 2;
  address.of[0].s6_addr[10] = address.of[0].s6_addr[11] = 0xff;
  address.of[0].s6_addr[12] = 10;
  address.of[0].s6_addr[15] = 7;
  address.of[1].s6_addr[0] = 0xfd;
  address.of[1].s6_addr[15] = 1;
  CHECK(address.describe() == "10.0.0.7 or fd00::1, port 13330");
}

}  // namespace
}  // namespace bamtrain
