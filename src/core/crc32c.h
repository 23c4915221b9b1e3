#pragma once
// CRC-32C (Castagnoli), as in RFC 3720 (iSCSI) appendix B.4: polynomial 0x1EDC6F41, reflected,
// initialized to all ones and inverted at the end.

#include <cstdint>
#include <string_view>

namespace bamtrain {

uint32_t crc32c(std::string_view bytes);

}  // namespace bamtrain
