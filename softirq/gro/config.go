package gro

import (
	"errors"
	"fmt"

	"napisim/model"
)

// GSORule says what happens to a packet that is already a superframe when it
// arrives: one from LRO, from hardware GRO or from a virtual machine.
type GSORule uint8

// The rules, by version.
const (
	// GSOBypass lets it pass and leaves its flow alone, even if segments of that
	// flow are held and are overtaken (up to v4.12).
	GSOBypass GSORule = iota
	// GSOFlush lets it pass after its flow was completed (v4.19 to v6.1; later for
	// packets from an untrusted source, SKB_GSO_DODGY).
	GSOFlush
	// GSOMerge merges it as a unit when its segments have the size of the held ones
	// (v6.3 and later, and stable releases of v6.1).
	GSOMerge

	numGSORules
)

// gsoRuleNames are the spellings of the rules.
var gsoRuleNames = [numGSORules]string{GSOBypass: "bypass", GSOFlush: "flush", GSOMerge: "merge"}

// String returns the rule's name.
func (r GSORule) String() string {
	if r < numGSORules {
		return gsoRuleNames[r]
	}
	return fmt.Sprintf("GSORule(%d)", uint8(r))
}

// UDPRule says which chained and merged datagrams a kernel can make. Each rule includes
// those before it.
type UDPRule uint8

// The rules, by version.
const (
	// UDPNone aggregates no datagrams outside of tunnels (up to v4.20).
	UDPNone UDPRule = iota
	// UDPSocket merges those of a socket that asked for it by UDP_GRO (v5.0).
	UDPSocket
	// UDPFragList chains those that no such socket takes, if the device has rx-gro-list
	// (NETIF_F_GRO_FRAGLIST, v5.6).
	UDPFragList
	// UDPForward merges those for which no socket was found, if the device has
	// rx-udp-gro-forwarding (NETIF_F_GRO_UDP_FWD, v5.12).
	UDPForward
	// UDPTCPFragList chains segments of TCP, too, for which there is no local socket, with
	// rx-gro-list, and compares the IP headers of datagrams (v6.10).
	UDPTCPFragList

	numUDPRules
)

// udpRuleNames are the values of the behaviour udp_gro.
var udpRuleNames = [numUDPRules]string{
	UDPNone: "none", UDPSocket: "socket", UDPFragList: "frag_list", UDPForward: "forward", UDPTCPFragList: "tcp_frag_list",
}

// String returns the rule's name.
func (r UDPRule) String() string {
	if r < numUDPRules {
		return udpRuleNames[r]
	}
	return fmt.Sprintf("UDPRule(%d)", uint8(r))
}

// Sockets is what GRO asks of the transport protocols. The answers may change between
// packets, as sockets are opened and closed.
type Sockets interface {
	// UDPSocket reports whether a UDP socket takes the flow, and whether it asked for
	// merged datagrams (UDP_GRO). The kernel does not look as long as no socket of the
	// host has asked (udp_encap_needed_key): then nothing is found.
	UDPSocket(flow model.FlowID) (found, gro bool)
	// TCPEstablished reports whether the flow is a connection of this host.
	TCPEstablished(flow model.FlowID) bool
}

// Limits of a Config. The greatest bucket count is the width of gro_bitmask, the
// greatest size is GRO_MAX_SIZE.
const (
	maxBuckets = 64
	maxSKBs    = 1 << 12
	maxSize    = 8 * 65535
	maxFrags   = 45

	// legacyMaxSize is GRO_LEGACY_MAX_SIZE, which only TCP may exceed.
	legacyMaxSize = 65536
	// maxDatagrams is UDP_GRO_CNT_MAX; fraglist GRO of TCP has the same limit.
	maxDatagrams = 64
)

// Config holds what differs between kernel versions, and the constants that a
// patch might want to change. It does not change once a Table was made from it.
type Config struct {
	// Buckets is GRO_HASH_BUCKETS, a power of two up to 64: 8 since v4.19, 1 for the
	// single list of earlier kernels. Zero is a fault.
	Buckets int
	// MaxSKBs is MAX_GRO_SKBS, the number of skbs held in one bucket: 8 in every
	// version. Zero is a fault.
	MaxSKBs int
	// MaxSize is what IP header, transport header and payload of a superframe of IPv4
	// stay below, in bytes, MaxSizeIPv6 the same for IPv6. SetSizes derives them from the
	// settings of a device. Only TCP may exceed 65536. Zero is a fault.
	MaxSize, MaxSizeIPv6 int
	// MaxFrags is MAX_SKB_FRAGS: 17, and up to 45 by configuration since v6.4. An
	// skb that finds no room is chained, not flushed. Zero is a fault.
	MaxFrags int
	// HeadTruesize is SKB_TRUESIZE of the head that a driver copies headers into
	// when the payload lies in page fragments, in bytes; it is given back when such
	// an skb is merged. 1280 for a head of 1 KiB. Zero is a fault.
	HeadTruesize int
	// GSO is the rule for packets that arrive as superframes; the zero value is that
	// of kernels up to v4.12.
	GSO GSORule
	// MatchRecycle refuses to merge skbs whose pages go back to different owners, as
	// kernels since v6.3 do (pp_recycle). If false, only skbs that both have pages
	// must agree: the model's skb has one owner, while pages of earlier kernels each
	// knew their own.
	MatchRecycle bool
	// MatchCWR compares the CWR flag like other flags (v6.19). If false, a held skb
	// with CWR still takes segments without it.
	MatchCWR bool
	// FixedIDWithoutDF accepts a constant IP ID of packets without DF, too (v6.19).
	FixedIDWithoutDF bool
	// UDP is what the kernel can do with datagrams; the zero value is nothing.
	UDP UDPRule
	// FragList is the feature rx-gro-list of the device, UDPForward rx-udp-gro-forwarding.
	FragList, UDPForward bool
	// Sockets answers for the sockets of the host; nil stands for a host without.
	Sockets Sockets
}

// DefaultConfig returns the values of v6.12 with 4 KiB pages.
func DefaultConfig() Config {
	return Config{
		Buckets:      8,
		MaxSKBs:      8,
		MaxSize:      legacyMaxSize,
		MaxSizeIPv6:  legacyMaxSize,
		MaxFrags:     model.MaxSKBFrags,
		HeadTruesize: 1024 + model.SKBHead,
		GSO:          GSOMerge,
		MatchRecycle: true,
		UDP:          UDPTCPFragList,
	}
}

// Validate returns every fault of the configuration, or nil.
func (c Config) Validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	inRange := func(name string, v, low, high int) {
		check(low <= v && v <= high, "gro: %s is %d, want %d to %d", name, v, low, high)
	}
	inRange("Buckets", c.Buckets, 1, maxBuckets)
	check(c.Buckets&(c.Buckets-1) == 0, "gro: Buckets is %d, want a power of two", c.Buckets)
	inRange("MaxSKBs", c.MaxSKBs, 1, maxSKBs)
	inRange("MaxSize", c.MaxSize, 1, maxSize)
	inRange("MaxSizeIPv6", c.MaxSizeIPv6, 1, maxSize)
	inRange("MaxFrags", c.MaxFrags, model.MaxSKBFrags, maxFrags)
	inRange("HeadTruesize", c.HeadTruesize, model.SKBHead+model.SharedInfo, maxSize)
	check(c.GSO < numGSORules, "gro: GSO is %d, want bypass, flush or merge", uint8(c.GSO))
	check(c.UDP < numUDPRules, "gro: UDP is %d, which is no rule", uint8(c.UDP))
	check(!c.FragList || c.UDP >= UDPFragList, "rx-gro-list: the kernel has no such feature (udp_gro is %v)", c.UDP)
	check(!c.UDPForward || c.UDP >= UDPForward, "rx-udp-gro-forwarding: the kernel has no such feature (udp_gro is %v)", c.UDP)
	return errors.Join(faults...)
}
