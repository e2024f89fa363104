package traffic

import (
	"math/bits"
	"net/netip"

	"napisim/model"
)

// Tuple is the 4-tuple of a flow over IPv4.
type Tuple struct {
	Src, Dst netip.AddrPort
}

// FlowTuple returns the synthetic tuple of a flow: one of 32768 source addresses
// and 16384 source ports of the networks that RFC 2544 reserves for benchmarks,
// towards the discard port of one receiver, as pktgen sends. Every FlowID that is
// not negative has a tuple of its own.
func FlowTuple(flow model.FlowID) Tuple {
	const (
		sources   = 1 << 15
		firstPort = 49152
		discard   = 9
	)
	// Neighbouring flows differ in the address, as those of many clients do.
	host, port := uint32(flow)%sources, uint32(flow)/sources
	return Tuple{
		Src: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, byte(host >> 8), byte(host)}), uint16(firstPort+port%(1<<14))),
		Dst: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 19, byte(port >> 14), 1}), discard),
	}
}

// RSSKey is the secret key of a Toeplitz hash.
type RSSKey [40]byte

// DefaultRSSKey returns the key of Microsoft's verification suite ("RSS hashing
// verification", Windows driver documentation), which many drivers use as well.
func DefaultRSSKey() RSSKey {
	return RSSKey{
		0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
		0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
		0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
		0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
	}
}

// Hash returns the RSS hash of t over addresses and ports, as NICs compute it for
// TCP over IPv4, and for UDP where 4-tuple hashing is on (ethtool -N rx-flow-hash
// udp4 sdfn).
func (k *RSSKey) Hash(t Tuple) uint32 {
	src, dst := t.Src.Addr().As4(), t.Dst.Addr().As4()
	input := [12]byte{}
	copy(input[0:], src[:])
	copy(input[4:], dst[:])
	input[8], input[9] = byte(t.Src.Port()>>8), byte(t.Src.Port())
	input[10], input[11] = byte(t.Dst.Port()>>8), byte(t.Dst.Port())
	return k.toeplitz(input[:])
}

// HashAddresses returns the RSS hash over the addresses alone, which is what most
// NICs compute for UDP unless told otherwise.
func (k *RSSKey) HashAddresses(t Tuple) uint32 {
	src, dst := t.Src.Addr().As4(), t.Dst.Addr().As4()
	return k.toeplitz(append(src[:], dst[:]...))
}

// toeplitz: for each bit of the input that is set, the 32 bits of the key that start
// at the same place are added without carry.
func (k *RSSKey) toeplitz(input []byte) uint32 {
	var hash uint32
	for i, b := range input {
		window := uint64(k[i])<<32 | uint64(k[i+1])<<24 | uint64(k[i+2])<<16 | uint64(k[i+3])<<8 | uint64(k[i+4])
		for b != 0 {
			bit := bits.LeadingZeros8(b)
			hash ^= uint32(window >> (8 - bit))
			b &^= 0x80 >> bit
		}
	}
	return hash
}
