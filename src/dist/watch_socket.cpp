#include "dist/watch_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace bamtrain {

namespace {

constexpr std::chrono::seconds kConnect(10);

std::string reason() { return std::strerror(errno); }

/// Beats are few and small: no delay.
void prepare(int descriptor) {
  const int yes = 1;
  (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  (void)::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
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
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
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

/// A socket that begins to connect to one address; not open: it cannot.
WatchSocket begin_to_connect(const in6_addr& address, in_port_t port) {
  Endpoint to(address, port);
  WatchSocket socket = to.socket();
  if (!socket.open()) return socket;
  prepare(socket.descriptor());
  if (::connect(socket.descriptor(), to.get(), to.size) != 0 && errno != EINPROGRESS) {
    socket.close();
  }
  return socket;
}

/// Raises the limit of open files for `most` connections, as far as it may be.
void allow_descriptors(int most) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  constexpr rlim_t kOthers = 256;
  limit.rlim_cur =
      std::min(limit.rlim_max, std::max(limit.rlim_cur, static_cast<rlim_t>(most) + kOthers));
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
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
  allow_descriptors(most);
  WatchSocket socket = listen_on(in6addr_any, most, &address->port);
  if (!socket.open()) socket = listen_on(mapped({INADDR_ANY}), most, &address->port);
  constexpr auto kToken = static_cast<ssize_t>(sizeof address->token);
  if (!socket.open() || ::getrandom(address->token, sizeof address->token, 0) != kToken) {
    *why = "rank 0 cannot listen: " + reason();
    socket.close();
    address->port = 0;
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

/// All addresses are called at once: the first that answers as rank 0 is it.
WatchSocket connect_to(const WatchAddress& address, const WatchMessage& hello,
                       WatchMessage* welcome, std::string* why) {
  using Clock = std::chrono::steady_clock;
  std::vector<WatchSocket> calls;
  for (int n = 0; n < address.count; ++n) {
    calls.push_back(begin_to_connect(address.of[n], address.port));
  }
  std::vector<bool> greeted(calls.size(), false);
  std::string last = "no answer";
  for (const Clock::time_point end = Clock::now() + kConnect; Clock::now() < end;) {
    std::vector<pollfd> polled;
    for (size_t n = 0; n < calls.size(); ++n) {
      polled.push_back(
          {calls[n].descriptor(), static_cast<short>(greeted[n] ? POLLIN : POLLOUT), 0});
    }
    constexpr int kMilliseconds = 100;
    if (::poll(polled.data(), polled.size(), kMilliseconds) <= 0) {
      if (std::none_of(calls.begin(), calls.end(), [](const WatchSocket& s) { return s.open(); })) {
        break;
      }
      continue;
    }
    for (size_t n = 0; n < calls.size(); ++n) {
      WatchSocket& call = calls[n];
      if (polled[n].revents == 0) continue;
      if (!greeted[n]) {
        int error = 0;
        socklen_t size = sizeof error;
        (void)::getsockopt(call.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0) {
          last = std::strerror(error);
          call.close();
          continue;
        }
        call.send(hello);
        greeted[n] = true;
        continue;
      }
      bool closed = false;
      const std::optional<WatchMessage> answer = call.receive(&closed);
      if (answer && answer->kind == WatchKind::welcome &&
          std::equal(std::begin(answer->token), std::end(answer->token), address.token)) {
        *welcome = *answer;
        return std::move(call);
      }
      if (answer || closed) call.close();
    }
  }
  *why = "no connection to rank 0 at " + address.describe() + ": " + last;
  return WatchSocket();
}

}  // namespace bamtrain
