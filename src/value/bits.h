// Hashes and roundings of float32 and of words, without branches: of one element, or of a vector of
// them (an extension of GCC's and Clang's). docs/fingerprint.md defines them.
#pragma once

#include <cstdint>

namespace joulediff::value {

#define JD_INLINE [[gnu::always_inline]] inline

constexpr std::uint32_t kSeeds[2] = {0x9E3779B9u, 0x7F4A7C15u};
constexpr std::uint32_t kMagnitude = 0x7FFFFFFFu;  // of a float32: all but its sign
constexpr std::uint32_t kInfinity = 0x7F800000u;

template <class U>
JD_INLINE U fmix(U x) {
  x ^= x >> 16;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  x ^= x >> 16;
  return x;
}

// To nearest, ties to even, dropping `shift` bits (1 to 24).
template <class U, class Shift>
JD_INLINE U round_off(U x, Shift shift) {
  return (x + ((U{} + 1u) << (shift - 1u)) - 1u + ((x >> shift) & 1u)) >> shift;
}

// Of the bits of a float32: canonical ones (one NaN, no negative zero), of itself and rounded.
template <class U>
JD_INLINE U float32_bits(U bits) {
  const U magnitude = bits & kMagnitude;
  const U number = magnitude == 0u ? U{} : bits;
  return magnitude > kInfinity ? U{} + 0x7FC00000u : number;
}

template <class U>
JD_INLINE U with_sign(U magnitude16, U bits32) {
  return magnitude16 == 0u ? U{} : magnitude16 | ((bits32 >> 16) & 0x8000u);
}

template <class U>
JD_INLINE U bf16_bits(U bits) {
  const U magnitude = bits & kMagnitude;
  const U number = with_sign<U>(round_off(magnitude, 16u), bits);
  return magnitude > kInfinity ? U{} + 0x7FC0u : number;
}

template <class U>
JD_INLINE U fp16_bits(U bits) {
  const U magnitude = bits & kMagnitude;
  const U places = 126u - (magnitude >> 23);  // of a mantissa that becomes subnormal
  const U shift = places - 1u < 24u ? places : U{} + 1u;
  const U normal = round_off<U>(magnitude - (112u << 23), 13u);
  const U subnormal = round_off<U>((magnitude & 0x7FFFFFu) | 0x800000u, shift);
  U rounded = magnitude >= 0x38800000u ? normal : subnormal;     // 2^-14
  rounded = magnitude <= 0x33000000u ? U{} : rounded;            // 2^-25
  rounded = magnitude >= 0x477FF000u ? U{} + 0x7C00u : rounded;  // 65520
  const U number = with_sign<U>(rounded, bits);
  return magnitude > kInfinity ? U{} + 0x7E00u : number;
}

}  // namespace joulediff::value
