#pragma once
// CRC-32C (Castagnoli), as RFC 3720 (iSCSI) appendix B.4 has it: polynomial 0x1EDC6F41, reflected,
// all ones before and inverted after.

#include <cstdint>
#include <string_view>

namespace bamtrain {

uint32_t crc32c(std::string_view bytes);

}  // namespace bamtrain
