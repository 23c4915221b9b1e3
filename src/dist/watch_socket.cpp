#include "dist/watch_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace bamtrain {

namespace {

constexpr int kConnectMilliseconds = 3000;  // for each address
constexpr int kWelcomeMilliseconds = 10000;

std::string reason() { return std::strerror(errno); }

/// Beats are few and small: no delay.
void prepare(int descriptor) {
  const int yes = 1;
  (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  (void)::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

bool ready(int descriptor, short events, int milliseconds) {
  pollfd p = {descriptor, events, 0};
  return ::poll(&p, 1, milliseconds) == 1;
}

in6_addr mapped(in_addr v4) {
  in6_addr v6 = {};
  v6.s6_addr[10] = v6.s6_addr[11] = 0xff;
  std::memcpy(&v6.s6_addr[12], &v4, sizeof v4);
  return v6;
}

/// An address with a port, as the system's calls take it.
struct Endpoint {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  Endpoint(const in6_addr& address, in_port_t port) {
    if (IN6_IS_ADDR_V4MAPPED(&address)) {
      auto& to = reinterpret_cast<sockaddr_in&>(storage);
      to.sin_family = AF_INET;
      std::memcpy(&to.sin_addr, &address.s6_addr[12], sizeof to.sin_addr);
      to.sin_port = port;
      size = sizeof to;
    } else {
      auto& to = reinterpret_cast<sockaddr_in6&>(storage);
      to.sin6_family = AF_INET6;
      to.sin6_addr = address;
      to.sin6_port = port;
      size = sizeof to;
    }
  }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  WatchSocket socket() const {
    return WatchSocket(::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
};

/// The loopback first: most processes of a run are on rank 0's node.
void list_addresses(WatchAddress* to) {
  const auto add = [to](const in6_addr& a) {
    if (to->count < WatchAddress::kMost) to->of[to->count++] = a;
  };
  add(mapped({htonl(INADDR_LOOPBACK)}));
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return;
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    if (i->ifa_addr->sa_family == AF_INET) {
      const in_addr a = reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr;
      if (a.s_addr != htonl(INADDR_LOOPBACK)) add(mapped(a));
    } else if (i->ifa_addr->sa_family == AF_INET6) {
      const in6_addr& a = reinterpret_cast<const sockaddr_in6*>(i->ifa_addr)->sin6_addr;
      // A link-local address means another interface on every node.
      if (!IN6_IS_ADDR_LOOPBACK(&a) && !IN6_IS_ADDR_LINKLOCAL(&a)) add(a);
    }
  }
  ::freeifaddrs(all);
}

/// A connected socket to one address; not open: none.
WatchSocket connect_once(const in6_addr& address, in_port_t port) {
  Endpoint to(address, port);
  WatchSocket socket = to.socket();
  if (!socket.open()) return socket;
  prepare(socket.descriptor());
  if (::connect(socket.descriptor(), to.get(), to.size) == 0) return socket;
  int error = errno;
  socklen_t size = sizeof error;
  if (error == EINPROGRESS) {
    error = ETIMEDOUT;
    if (ready(socket.descriptor(), POLLOUT, kConnectMilliseconds)) {
      (void)::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error != 0) {
    socket.close();
    errno = error;
  }
  return socket;
}

/// A socket that listens on a free port of all addresses of a family; not open: none.
WatchSocket listen_on(const in6_addr& any, int most, in_port_t* port) {
  Endpoint at(any, 0);
  WatchSocket socket = at.socket();
  const int no = 0;
  if (socket.open() && at.storage.ss_family == AF_INET6) {
    (void)::setsockopt(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  }
  if (!socket.open() || ::bind(socket.descriptor(), at.get(), at.size) != 0 ||
      ::listen(socket.descriptor(), most) != 0 ||
      ::getsockname(socket.descriptor(), at.get(), &at.size) != 0) {
    socket.close();
    return socket;
  }
  prepare(socket.descriptor());
  *port = at.storage.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(at.storage).sin_port
                                          : reinterpret_cast<sockaddr_in6&>(at.storage).sin6_port;
  return socket;
}

}  // namespace

WatchSocket::WatchSocket(WatchSocket&& other) noexcept { *this = std::move(other); }
WatchSocket& WatchSocket::operator=(WatchSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(received_, other.received_);
  std::swap(blocked_, other.blocked_);
  return *this;
}
WatchSocket::~WatchSocket() { close(); }

void WatchSocket::close() {
  if (open()) ::close(std::exchange(descriptor_, -1));
}

void WatchSocket::send(const WatchMessage& message) {
  if (!open() || blocked_) return;
  const ssize_t sent = ::send(descriptor_, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
  blocked_ = sent > 0 && sent != static_cast<ssize_t>(sizeof message);
}

std::optional<WatchMessage> WatchSocket::receive(bool* closed) {
  *closed = false;
  while (received_.size() < sizeof(WatchMessage)) {
    char part[sizeof(WatchMessage)];
    const ssize_t n =
        ::recv(descriptor_, part, sizeof(WatchMessage) - received_.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      *closed = n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
      return std::nullopt;
    }
    received_.insert(received_.end(), part, part + n);
  }
  WatchMessage message;
  std::memcpy(static_cast<void*>(&message), received_.data(), sizeof message);
  received_.clear();
  return message;
}

std::string WatchAddress::describe() const {
  std::string text;
  for (int n = 0; n < count; ++n) {
    char name[INET6_ADDRSTRLEN] = {};
    const bool v4 = IN6_IS_ADDR_V4MAPPED(&of[n]);
    ::inet_ntop(v4 ? AF_INET : AF_INET6, &of[n].s6_addr[v4 ? 12 : 0], name, sizeof name);
    text += (n == 0 ? "" : n + 1 < count ? ", " : " or ") + std::string(name);
  }
  return text + ", port " + std::to_string(ntohs(port));
}

WatchSocket listen_for_peers(int most, WatchAddress* address, std::string* why) {
  WatchSocket socket = listen_on(in6addr_any, most, &address->port);
  if (!socket.open()) socket = listen_on(mapped({INADDR_ANY}), most, &address->port);
  constexpr auto kToken = static_cast<ssize_t>(sizeof address->token);
  if (!socket.open() || ::getrandom(address->token, sizeof address->token, 0) != kToken) {
    *why = "rank 0 cannot listen: " + reason();
    socket.close();
    return socket;
  }
  list_addresses(address);
  return socket;
}

WatchSocket accept_peer(const WatchSocket& listening) {
  WatchSocket socket(::accept4(listening.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.open()) prepare(socket.descriptor());
  return socket;
}

WatchSocket connect_to(const WatchAddress& address, const WatchMessage& hello,
                       WatchMessage* welcome, std::string* why) {
  std::string last = "nobody listens";
  for (int n = 0; n < address.count; ++n) {
    WatchSocket socket = connect_once(address.of[n], address.port);
    if (!socket.open()) {
      last = reason();
      continue;
    }
    socket.send(hello);
    while (ready(socket.descriptor(), POLLIN, kWelcomeMilliseconds)) {
      bool closed = false;
      const std::optional<WatchMessage> answer = socket.receive(&closed);
      if (closed) break;
      if (!answer) continue;
      if (answer->kind == WatchKind::welcome &&
          std::equal(std::begin(answer->token), std::end(answer->token), address.token)) {
        *welcome = *answer;
        return socket;
      }
      break;
    }
    last = "no answer of rank 0";
  }
  *why = "no connection to rank 0 at " + address.describe() + ": " + last;
  return WatchSocket();
}

}  // namespace bamtrain
