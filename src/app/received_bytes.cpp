#include "received_bytes.hpp"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace chexnet {

uint64_t received_bytes(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0
             ? info.tcpi_bytes_received
             : 0;
}

}  // namespace chexnet
